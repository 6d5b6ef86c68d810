//! The probe on its bench: a guest that does whatever it is told, under limits and grants that
//! differ from trial to trial.

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    Code, Grants, Limits, LoadError, Plugin, PluginSource, Receipt, Sandbox, component_bytes,
};
use futures::future::BoxFuture;
use std::borrow::Cow;
use std::time::{Duration, Instant};

const PROBE: &str = include_str!("probes/probe.wat");
/// How late a cut may come on a machine that does other things as well.
const LATE_MAX: Duration = Duration::from_secs(1);

/// A sandbox with the probe in it.
pub(super) struct Bench {
    pub(super) sandbox: Sandbox,
    /// The probe with the limit of fuel, and without.
    counted: Plugin,
    uncounted: Plugin,
}

/// What a call of the probe came to.
pub(super) struct Called {
    /// The answer's texts; or what the model is told of the failure.
    pub(super) text: String,
    /// What ended the call; `answer` if the probe did.
    pub(super) ended_by: String,
    pub(super) receipt: Receipt,
    pub(super) took: Duration,
}

/// A call that runs until it is let go.
pub(super) struct Held<'a> {
    call: BoxFuture<'a, Called>,
    abort: AbortSignal,
}

impl Bench {
    /// Compiles the probe. `Err` is why it cannot be loaded.
    pub(super) async fn set_up(sandbox: &Sandbox) -> Result<Self, String> {
        let load = async |limits: Limits| {
            let plugin = Plugin::load(sandbox, source(PROBE.into()), limits, Grants::default());
            plugin.await.map_err(|problem| format!("the probe cannot be loaded: {problem}"))
        };
        Ok(Self {
            sandbox: sandbox.clone(),
            counted: load(Limits::default()).await?,
            uncounted: load(Limits { fuel: None, ..Limits::default() }).await?,
        })
    }

    /// The probe under these terms.
    pub(super) async fn probe(&self, limits: Limits, grants: Grants) -> Result<Plugin, LoadError> {
        let probe = if limits.fuel.is_some() { &self.counted } else { &self.uncounted };
        probe.under("probe", limits, grants).await
    }

    /// One call under these limits, without grants.
    pub(super) async fn limited(&self, limits: Limits, task: &str) -> Called {
        self.granted(limits, Grants::default(), task).await
    }

    /// One call under these terms.
    pub(super) async fn granted(&self, limits: Limits, grants: Grants, task: &str) -> Called {
        match self.probe(limits, grants).await {
            Ok(probe) => call(&probe, task).await,
            Err(problem) => Called::unloaded(&problem),
        }
    }

    /// Loads a component made for the occasion.
    pub(super) async fn load(&self, bytes: Vec<u8>, limits: Limits) -> Result<Plugin, LoadError> {
        Plugin::load(&self.sandbox, source(bytes), limits, Grants::default()).await
    }
}

fn source(code: Vec<u8>) -> PluginSource {
    PluginSource { name: "probe".into(), code: Code::Bytes(code), sha256: None, accept_text: true }
}

/// A component from its text.
pub(super) fn component(text: &str) -> Result<Vec<u8>, String> {
    let bytes = component_bytes(text.as_bytes(), true);
    bytes.map(Cow::into_owned).map_err(|problem| problem.to_string())
}

/// One call of the probe, its progress taken.
pub(super) async fn call(probe: &Plugin, task: &str) -> Called {
    call_until(probe, task, AbortSignal::new()).await
}

async fn call_until(probe: &Plugin, task: &str, abort: AbortSignal) -> Called {
    let (progress, updates) = Progress::channel();
    let started = Instant::now();
    let mut running = Box::pin(probe.call_tool("run", task, progress, abort));
    let outcome = loop {
        tokio::select! { biased;
            outcome = &mut running => break outcome,
            _ = updates.next() => {}
        }
    };
    Called::new(outcome, started.elapsed())
}

/// Starts a call that reports when it runs, and leaves it running.
pub(super) async fn hold<'a>(probe: &'a Plugin, task: &'a str) -> Result<Held<'a>, String> {
    let abort = AbortSignal::new();
    let (progress, updates) = Progress::channel();
    let started = Instant::now();
    let mut running = Box::pin(probe.call_tool("run", task, progress, abort.clone()));
    tokio::select! { biased;
        outcome = &mut running => {
            let called = Called::new(outcome, started.elapsed());
            return Err(format!("a call that should go on ended: {called}"));
        }
        _ = updates.next() => {}
    }
    let call = Box::pin(async move {
        let outcome = running.await;
        drop(updates);
        Called::new(outcome, started.elapsed())
    });
    Ok(Held { call, abort })
}

impl Held<'_> {
    /// Aborts the call. The answer says how long it took to end from then on.
    pub(super) async fn end(self) -> Called {
        let started = Instant::now();
        self.abort.cancel();
        let called = self.call.await;
        Called { took: started.elapsed(), ..called }
    }
}

impl Called {
    fn new(outcome: Outcome, took: Duration) -> Self {
        let receipt = outcome.receipt.as_ref().and_then(|receipt| receipt.as_any().downcast_ref());
        let (text, ended_by) = match outcome.answer {
            Ok(result) => (texts(&result.content), "answer".into()),
            Err(failure) => (failure.message, failure.ended_by),
        };
        Self { text, ended_by, receipt: receipt.cloned().unwrap_or_default(), took }
    }

    /// The probe did not come as far as the call: a limit bit when it was asked for its tools.
    fn unloaded(problem: &LoadError) -> Self {
        let ended_by = match problem {
            LoadError::ListTools(failure) => failure.ended_by,
            _ => "not loaded",
        };
        Self {
            text: problem.to_string(),
            ended_by: ended_by.into(),
            receipt: Receipt::default(),
            took: Duration::ZERO,
        }
    }

    /// That the probe answered.
    pub(super) fn answered(&self, what: &str) -> Result<&str, String> {
        if self.ended_by == "answer" {
            Ok(&self.text)
        } else {
            Err(format!("{what} should have been let through, and {self}"))
        }
    }

    /// That the call ended in this way, with these words.
    pub(super) fn ended(&self, what: &str, ended_by: &str, words: &str) -> Result<(), String> {
        if self.ended_by == ended_by && self.text.contains(words) {
            Ok(())
        } else {
            Err(format!("{what} should have been stopped ({ended_by}, {words}), and {self}"))
        }
    }

    /// That the probe was refused something, with these words in the refusal.
    pub(super) fn refused(&self, what: &str, words: &str) -> Result<(), String> {
        if self.ended_by != "answer" && self.receipt.refusals.iter().any(|r| r.contains(words)) {
            Ok(())
        } else {
            Err(format!("{what} should have been refused ({words}), and {self}"))
        }
    }

    /// That the end came after so many milliseconds, not before and not much later.
    pub(super) fn after(&self, what: &str, ms: u64) -> Result<String, String> {
        let due = Duration::from_millis(ms);
        // The clocks of two threads may differ by a tick.
        if self.took + Duration::from_millis(2) >= due && self.took <= due + LATE_MAX {
            Ok(format!("{what} after {}", millis(self.took)))
        } else {
            Err(format!("{what} after {}, and the limit is {ms} ms", millis(self.took)))
        }
    }
}

impl std::fmt::Display for Called {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = cofferdam_sandbox::text::visible(&self.text, 200);
        match &*self.ended_by {
            "answer" => write!(f, "the probe answered `{text}`"),
            ended_by => write!(f, "it ended with {ended_by}: {text}"),
        }
    }
}

fn texts(content: &[Content]) -> String {
    let text = |block: &Content| match block {
        Content::Text(text) => text.clone(),
        Content::Image(_) => String::new(),
    };
    content.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn millis(duration: Duration) -> String {
    match duration.as_micros() {
        micros if micros < 10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        micros => format!("{} ms", micros / 1_000),
    }
}
