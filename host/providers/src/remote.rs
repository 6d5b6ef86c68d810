//! A model behind a server: one request, one stream of steps, one last message, whatever happens.

use crate::draft::{Draft, Ending, Stop};
use crate::endpoint::{Endpoint, Patience};
use crate::events::{Event, Events};
use crate::http::{EndpointError, Failure, Http};
use crate::wire::{Call, Decoder, Flow};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::model::{Model, Request, Retry, Secret, Step};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Shown in place of a credential.
const MASK: &str = "[credential]";
/// Shorter ones would be found in words that have nothing to do with them.
const MASKED_BYTES_MIN: usize = 6;
/// Characters of an event that is none, shown.
const EVENT_CHARS_MAX: usize = 200;

/// A model behind a server. Needs tokio's timers and I/O.
pub struct Remote {
    endpoint: Arc<Endpoint>,
    http: Http,
}

impl Remote {
    /// A model at this endpoint. Nothing is sent yet.
    pub fn new(endpoint: Endpoint) -> Result<Self, EndpointError> {
        let http = Http::new(&endpoint)?;
        Ok(Self { endpoint: Arc::new(endpoint), http })
    }
}

impl Model for Remote {
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        let answering = Answering {
            endpoint: self.endpoint.clone(),
            http: self.http.clone(),
            draft: Draft::new(&request.messages),
            decoder: self.endpoint.wire.decoder(),
            secret: None,
            stage: Stage::Prepare(request),
            retries: VecDeque::new(),
            abort,
        };
        futures::stream::unfold(answering, async |mut answering| {
            Some((answering.next().await?, answering))
        })
        .boxed()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}

/// One model call under way.
struct Answering {
    endpoint: Arc<Endpoint>,
    http: Http,
    draft: Draft,
    decoder: Box<dyn Decoder>,
    /// Held for the call, to be sent and to be kept out of what is shown.
    secret: Option<Secret>,
    stage: Stage,
    /// Steps that come before those of the draft.
    retries: VecDeque<Step>,
    abort: AbortSignal,
}

enum Stage {
    Prepare(Request),
    Send {
        call: Call,
        retries: u32,
    },
    Wait {
        call: Call,
        retries: u32,
        wait: Duration,
    },
    /// Events are boxed: the state that is moved about stays small.
    Read(Box<Events>),
    Over,
}

impl Answering {
    /// The next step; `None` after the last. An abort drops the connection before anything else.
    async fn next(&mut self) -> Option<Step> {
        loop {
            let over = matches!(self.stage, Stage::Over);
            if !over && self.abort.is_cancelled() {
                self.end(Ending { stop: Stop::Aborted, raw: None });
            }
            if let Some(step) = self.retries.pop_front().or_else(|| self.draft.next_step()) {
                return Some(step);
            }
            if over {
                return None;
            }
            let abort = self.abort.clone();
            // Being dropped half way leaves `Stage::Over`, and the check above goes on from there.
            let stage = std::mem::replace(&mut self.stage, Stage::Over);
            match abort.run_until_cancelled(self.advance(stage)).await {
                Some(stage) => self.stage = stage,
                None => self.end(Ending { stop: Stop::Aborted, raw: None }),
            }
        }
    }

    async fn advance(&mut self, stage: Stage) -> Stage {
        match stage {
            Stage::Prepare(request) => self.prepare(request).await,
            Stage::Send { call, retries } => self.send(call, retries).await,
            Stage::Wait { call, retries, wait } => {
                tokio::time::sleep(wait).await;
                Stage::Send { call, retries }
            }
            Stage::Read(events) => self.read(events).await,
            Stage::Over => Stage::Over,
        }
    }

    /// Asks for the credential of this call, unless the loop brought one.
    async fn prepare(&mut self, request: Request) -> Stage {
        self.secret = match &request.credential {
            Some(secret) => Some(secret.clone()),
            None => match self.endpoint.credential.resolve().await {
                Ok(secret) => secret,
                Err(problem) => return self.fail(problem.to_string()),
            },
        };
        Stage::Send { call: Call::new(&self.endpoint, &request), retries: 0 }
    }

    async fn send(&mut self, call: Call, retries: u32) -> Stage {
        let patience = self.endpoint.patience;
        match self.http.send(&call, self.secret.as_ref(), &patience).await {
            Ok(response) => Stage::Read(Box::new(Events::of(response, patience.idle))),
            Err(failure) => match again(&failure, retries, &patience) {
                Ok(wait) => {
                    self.retries.push_back(Step::Retry(Retry {
                        retry: retries + 1,
                        retries_max: patience.retries_max,
                        wait,
                        problem: masked(failure.problem, self.secret.as_ref()),
                    }));
                    Stage::Wait { call, retries: retries + 1, wait }
                }
                Err(why) => self.fail(format!("{}{why}", failure.problem)),
            },
        }
    }

    async fn read(&mut self, mut events: Box<Events>) -> Stage {
        match events.next().await {
            Some(Ok(event)) => {
                self.draft.start();
                match self.event(&event) {
                    Flow::More => Stage::Read(events),
                    Flow::Stated => {
                        events.ending_is_known();
                        Stage::Read(events)
                    }
                    Flow::Over => {
                        let ended = self.ended("the stream broke".into());
                        // Read to the end, if it is there already, the connection can serve again.
                        let _ = events.next().now_or_never();
                        ended
                    }
                }
            }
            Some(Err(problem)) => self.ended(problem),
            None => self.ended(
                "the stream ended before the answer did, without a finish reason: the server or \
                 something on the way cut it"
                    .into(),
            ),
        }
    }

    fn event(&mut self, event: &Event) -> Flow {
        if event.data.trim() == "[DONE]" {
            return Flow::Over;
        }
        match serde_json::from_str::<Value>(&event.data) {
            Ok(mut data) => {
                // Some servers name the kind of an event in the frame only.
                if let (Value::Object(fields), false) = (&mut data, event.name.is_empty()) {
                    fields.entry("type").or_insert_with(|| event.name.as_str().into());
                }
                self.decoder.event(&data, &mut self.draft)
            }
            // Half an event at the end of the bytes: the rule for streams that are cut applies.
            Err(_) if event.unclosed => Flow::More,
            Err(_) => {
                let shown: String = event.data.chars().take(EVENT_CHARS_MAX).collect();
                let stop = Stop::Failed(match event.name.as_str() {
                    "error" => shown,
                    _ => format!("the server sent an event that is no JSON: {shown}"),
                });
                self.end(Ending { stop, raw: None });
                Flow::Over
            }
        }
    }

    /// Ends with what was stated, or with `otherwise` if nothing was. How the bytes ended does not
    /// matter once the answer's ending was stated.
    fn ended(&mut self, otherwise: String) -> Stage {
        let ending = self.decoder.ending(&mut self.draft);
        self.end(ending.unwrap_or(Ending { stop: Stop::Failed(otherwise), raw: None }));
        Stage::Over
    }

    fn fail(&mut self, problem: String) -> Stage {
        self.end(Ending { stop: Stop::Failed(problem), raw: None });
        Stage::Over
    }

    /// The only way to the last step. Taken twice, the first counts.
    fn end(&mut self, mut ending: Ending) {
        if self.draft.is_finished() {
            return;
        }
        self.stage = Stage::Over;
        if let Stop::Failed(problem) = ending.stop {
            ending.stop = Stop::Failed(masked(problem, self.secret.as_ref()));
        }
        self.draft.finish(ending, &self.endpoint.provider, &self.endpoint.model);
    }
}

/// How long to wait before asking again, or why that is not done: the end of a sentence.
fn again(failure: &Failure, retries: u32, patience: &Patience) -> Result<Duration, String> {
    let Some(asked) = failure.retry else { return Err(String::new()) };
    if retries >= patience.retries_max {
        return Err(match retries {
            0 => String::new(),
            1 => " (after 1 retry)".into(),
            _ => format!(" (after {retries} retries)"),
        });
    }
    let doubled = patience.retry_wait.saturating_mul(1 << retries.min(16));
    let wait = asked.unwrap_or(doubled.min(patience.retry_wait_max));
    if wait > patience.retry_wait_max {
        return Err(format!(
            " (it asks to wait {} s, and the longest wait is {} s)",
            wait.as_secs(),
            patience.retry_wait_max.as_secs()
        ));
    }
    Ok(wait)
}

/// A text without the credential, which some servers echo.
fn masked(text: String, secret: Option<&Secret>) -> String {
    match secret.map(Secret::expose) {
        Some(secret) if secret.len() >= MASKED_BYTES_MIN => text.replace(secret, MASK),
        _ => text,
    }
}
