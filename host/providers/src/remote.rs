//! A model behind a server: one request, one stream of steps, one last message, whatever happens.

use crate::endpoint::{Endpoint, Patience};
use crate::events::Events;
use crate::http::{EndpointError, Failure, Http};
use crate::mask::Mask;
use crate::reader::Reader;
use crate::wire::{Call, Flow};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::model::{Model, Request, Retry, Secret, Step};
use futures::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
        let Endpoint { wire, provider, model, .. } = &*self.endpoint;
        let answering = Answering {
            endpoint: self.endpoint.clone(),
            http: self.http.clone(),
            reader: Reader::new(*wire, &request.messages, provider, model),
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
    /// Makes the steps.
    reader: Reader,
    /// The credential of the call.
    secret: Option<Secret>,
    stage: Stage,
    /// Steps that come before those of the reader.
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
                self.stage = Stage::Over;
                self.reader.abort();
            }
            if let Some(step) = self.retries.pop_front().or_else(|| self.reader.next_step()) {
                return Some(step);
            }
            if over {
                return None;
            }
            let abort = self.abort.clone();
            // An abort drops the stage, and the connection in it.
            let stage = std::mem::replace(&mut self.stage, Stage::Over);
            match abort.run_until_cancelled(self.advance(stage)).await {
                Some(stage) => self.stage = stage,
                None => self.reader.abort(),
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
        self.reader.keep_out(Mask::of(self.secret.as_ref()));
        Stage::Send { call: Call::new(&self.endpoint, &request), retries: 0 }
    }

    async fn send(&mut self, call: Call, retries: u32) -> Stage {
        let patience = self.endpoint.patience;
        match self.http.send(&call, self.secret.as_ref(), &patience).await {
            Ok(response) => {
                let mask = Mask::of(self.secret.as_ref());
                Stage::Read(Box::new(Events::of(response, patience.idle, mask)))
            }
            Err(failure) => match again(&failure, retries, &patience) {
                Ok(wait) => {
                    self.retries.push_back(Step::Retry(Retry {
                        retry: retries + 1,
                        retries_max: patience.retries_max,
                        wait,
                        problem: self.reader.masked(&failure.problem),
                    }));
                    Stage::Wait { call, retries: retries + 1, wait }
                }
                Err(why) => self.fail(format!("{}{why}", failure.problem)),
            },
        }
    }

    async fn read(&mut self, mut events: Box<Events>) -> Stage {
        match self.reader.take(events.next().await) {
            Flow::More => Stage::Read(events),
            Flow::Stated => {
                events.ending_is_known();
                Stage::Read(events)
            }
            Flow::Over => {
                // If the end of the body is there already, the connection can serve again.
                let _ = events.next().now_or_never();
                Stage::Over
            }
        }
    }

    fn fail(&mut self, problem: String) -> Stage {
        self.reader.fail(problem);
        Stage::Over
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
