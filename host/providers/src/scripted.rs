//! A model that answers from a script: a JSON list of answers, one per model call.
//!
//! Answers may refer to what earlier calls came to (`${results.c1}`), so that a run over real
//! files says something true without any network. See [`Script`] for the format.

mod answer;
mod play;
mod reference;

pub use answer::{Answer, Block, Pause, Script, ScriptError, StreamShape, Tokens};

use cofferdam_agent::AbortSignal;
use cofferdam_agent::model::{Model, Request, Step};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The name that answers of this model carry as their provider.
pub const PROVIDER: &str = "scripted";

/// Plays a [`Script`], one answer per model call.
pub struct Scripted {
    script: Arc<Script>,
    next: Arc<AtomicUsize>,
    steps: Arc<dyn Steps>,
}

/// What a script's steps (`before`, `after_start`, `pauses`) do. The default, [`Timed`], knows how
/// to wait; a test bench may know more.
pub trait Steps: Send + Sync {
    /// Refuses a step that it does not know, when the script is read.
    fn check(&self, step: &Value) -> Result<(), String>;

    /// Carries out one step. Ends early on abort only if the step says so.
    fn run<'a>(&'a self, step: &'a Value, abort: &'a AbortSignal) -> BoxFuture<'a, ()>;
}

/// Knows `{"sleep_ms": n}` and `{"wait_for_abort": true}`; an abort ends both.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timed;

impl Scripted {
    /// A model that plays `script` from its beginning.
    pub fn new(script: Script) -> Result<Self, ScriptError> {
        Self::with_steps(script, Arc::new(Timed))
    }

    /// The same, with steps of the caller's own.
    pub fn with_steps(script: Script, steps: Arc<dyn Steps>) -> Result<Self, ScriptError> {
        script.check_steps(&*steps)?;
        Ok(Self { script: Arc::new(script), next: Arc::default(), steps })
    }

    /// How many answers have been used up.
    pub fn used(&self) -> usize {
        self.next.load(Ordering::Relaxed).min(self.script.answers.len())
    }
}

impl Model for Scripted {
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        // An aborted call uses up no answer: the next run finds it where it was.
        if abort.is_cancelled() {
            return play::aborted();
        }
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(answer) = self.script.answers.get(at) else {
            return play::failed(format!(
                "the script has {} answers and this is model call {}: add an answer to the script",
                self.script.answers.len(),
                at + 1
            ));
        };
        match reference::resolve(answer, &request.messages) {
            Ok(answer) => play::play(answer, self.steps.clone(), abort),
            Err(problem) => play::failed(format!("answer {} of the script {problem}", at + 1)),
        }
    }
}

impl Steps for Timed {
    fn check(&self, step: &Value) -> Result<(), String> {
        let known = step.get("sleep_ms").is_some_and(Value::is_u64)
            || step.get("wait_for_abort") == Some(&Value::Bool(true));
        if known && step.as_object().is_some_and(|fields| fields.len() == 1) {
            return Ok(());
        }
        Err(format!("{step} is no step: use {{\"sleep_ms\": N}} or {{\"wait_for_abort\": true}}"))
    }

    fn run<'a>(&'a self, step: &'a Value, abort: &'a AbortSignal) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match step.get("sleep_ms").and_then(Value::as_u64) {
                Some(ms) => {
                    let wait = tokio::time::sleep(std::time::Duration::from_millis(ms));
                    futures::future::select(Box::pin(wait), Box::pin(abort.cancelled())).await;
                }
                None => abort.cancelled().await,
            }
        })
    }
}

#[cfg(test)]
mod tests;
