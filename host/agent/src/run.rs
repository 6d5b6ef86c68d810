//! A run: from a prompt to where nothing is left to do. Two nested loops, because there are two
//! kinds of more work: steering and tool results go on with the turn's work, follow-ups begin anew
//! when it is done (seed: "Two queues, two loops").

mod batch;
mod execute;
mod finish;
mod outside;
mod plan;
mod preflight;
mod stream;
mod turn;

use crate::AbortSignal;
use crate::agent::{Claim, Inner, State};
use crate::config::Settings;
use crate::error::AgentError;
use crate::event::{Event, Observer};
use crate::journal::JournalError;
use crate::message::Message;
use std::fmt;
use std::sync::Arc;

pub(crate) use outside::{Waits, call_outside};

/// What a run came to.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// What it added to the transcript.
    pub messages: Vec<Arc<Message>>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The last answer asked for nothing and nothing was queued.
    Finished,
    /// Every call of the last batch voted to end the run.
    Terminated,
    /// The embedder's stop check said so.
    Stopped,
    /// The model failed; the last answer says how.
    ModelFailed,
    /// The last answer was aborted.
    Aborted,
    /// The run reached its limit of turns.
    TurnLimit(u32),
    /// The output limit cut this many answers in a row.
    TruncationLimit(u32),
}

/// What a run begins with.
#[derive(Debug)]
pub(crate) struct Start {
    messages: Vec<Message>,
    poll_steering: bool,
}

impl Start {
    pub(crate) fn prompt(messages: Vec<Message>) -> Self {
        Self { messages, poll_steering: true }
    }

    /// From a transcript that ends with what a model has to answer.
    pub(crate) fn from_tail() -> Self {
        Self::prompt(Vec::new())
    }

    /// Steering as the prompt: the poll before the first turn has been made with it, so a second
    /// message gets a turn of its own.
    pub(crate) fn steered(messages: Vec<Message>) -> Self {
        Self { messages, poll_steering: false }
    }
}

/// What a call needs on its way from preflight to its end, in a run or outside.
#[derive(Clone, Copy)]
struct Walk<'a> {
    agent: &'a Inner,
    abort: &'a AbortSignal,
    /// Watches beside the agent's own observers.
    watcher: Option<&'a dyn Observer>,
}

/// One run. What it changes for good is in the agent's state; this is what ends with it.
struct Run<'a> {
    agent: &'a Inner,
    abort: &'a AbortSignal,
    walk: Walk<'a>,
    /// Of the turn that is running.
    settings: Arc<Settings>,
    added: Vec<Arc<Message>>,
    turns: u32,
    truncated_in_a_row: u32,
    /// The model broke its contract; see [`Run::report`].
    broken: bool,
}

/// Runs to the end. `agent_end` is the last event, whatever happens.
pub(crate) async fn run(claim: &Claim, start: Start) -> Result<RunEnd, AgentError> {
    let mut run = Run::begin(claim);
    let ended = run.until_nothing_is_left(start).await;
    if ended.is_err() {
        let settled = run.state().settle();
        run.added.extend(settled);
    }
    let reason = ended.as_ref().ok().copied();
    run.emit(&Event::AgentEnd { messages: run.report(), reason }).await;
    Ok(RunEnd { reason: ended?, messages: run.added })
}

impl<'a> Run<'a> {
    fn begin(claim: &'a Claim) -> Self {
        let mut state = claim.agent.state();
        state.last_error = None;
        Self {
            agent: &claim.agent,
            abort: &claim.abort,
            walk: Walk { agent: &claim.agent, abort: &claim.abort, watcher: None },
            settings: state.settings.clone(),
            added: Vec::new(),
            turns: 0,
            truncated_in_a_row: 0,
            broken: false,
        }
    }

    async fn until_nothing_is_left(&mut self, start: Start) -> Result<EndReason, JournalError> {
        self.write_what_is_missing().await?;
        self.refresh_at_the_beginning().await;
        self.emit(&Event::AgentStart).await;
        self.emit(&Event::TurnStart).await;
        for message in start.messages {
            self.add(message).await?;
        }
        // The user may have typed while waiting (seed: "Steering is polled once before the first
        // turn").
        let mut pending = match start.poll_steering {
            true => self.state().queues.steering.poll(),
            false => Vec::new(),
        };
        loop {
            let mut goes_on = true;
            let mut reason = EndReason::Finished;
            while goes_on || !pending.is_empty() {
                if self.turns > 0 {
                    self.emit(&Event::TurnStart).await;
                }
                let turn = self.turn(std::mem::take(&mut pending)).await?;
                (goes_on, reason) = match turn {
                    Turn::Last(reason) => return Ok(reason),
                    Turn::Done { goes_on, reason } => (goes_on, reason),
                };
                if let Some(limit) = self.limit_reached(goes_on) {
                    return Ok(limit);
                }
                // A message queued while `turn_end` was delivered is in time.
                pending = self.state().queues.steering.poll();
            }
            pending = self.state().queues.follow_up.poll();
            if pending.is_empty() {
                return Ok(reason);
            }
        }
    }

    /// Whether a guard ends the run though there is more to do. The queues keep their content.
    fn limit_reached(&self, goes_on: bool) -> Option<EndReason> {
        let guards = self.agent.policy(&self.settings).guards;
        let cut = guards.truncated_in_a_row_max.filter(|max| self.truncated_in_a_row >= *max);
        let turns = guards.turns_max.filter(|max| self.turns >= *max);
        let reason = match (cut, turns) {
            (Some(_), _) => EndReason::TruncationLimit(self.truncated_in_a_row),
            (_, Some(_)) => EndReason::TurnLimit(self.turns),
            (None, None) => return None,
        };
        let mut state = self.state();
        let more =
            goes_on || !state.queues.steering.is_empty() || !state.queues.follow_up.is_empty();
        more.then(|| {
            state.last_error = Some(reason.to_string());
            reason
        })
    }

    /// Announces a message and appends it, in the journal first.
    async fn add(&mut self, message: Message) -> Result<(), JournalError> {
        let message = Arc::new(message);
        self.emit(&Event::MessageStart { message: &message }).await;
        self.keep(&message, |state| state.transcript.append(message.clone())).await?;
        self.emit(&Event::MessageEnd { message: &message }).await;
        Ok(())
    }

    /// Writes a message to the journal and makes it part of the transcript. If it cannot be
    /// written, the transcript has it all the same and the journal gets it first at the next run.
    async fn keep(
        &mut self,
        message: &Arc<Message>,
        append: impl FnOnce(&mut State),
    ) -> Result<(), JournalError> {
        let written = match &self.agent.fixed.journal {
            Some(journal) => journal.append(message).await,
            None => Ok(()),
        };
        let mut state = self.state();
        append(&mut state);
        if written.is_err() {
            state.unwritten.push(message.clone());
        }
        drop(state);
        self.added.push(message.clone());
        written
    }

    async fn write_what_is_missing(&self) -> Result<(), JournalError> {
        let Some(journal) = &self.agent.fixed.journal else { return Ok(()) };
        loop {
            let Some(first) = self.state().unwritten.first().cloned() else { return Ok(()) };
            journal.append(&first).await?;
            self.state().unwritten.remove(0);
        }
    }

    /// What `agent_end` reports. Where the model broke its contract that is the made-up answer
    /// alone, as in the reference: all else has been announced.
    fn report(&self) -> &[Arc<Message>] {
        match self.broken {
            true => self.added.last().map_or(&[], std::slice::from_ref),
            false => &self.added,
        }
    }

    async fn emit(&self, event: &Event<'_>) {
        self.walk.emit(event).await;
    }

    fn state(&self) -> std::sync::MutexGuard<'a, State> {
        self.agent.state()
    }
}

impl Walk<'_> {
    /// Delivers an event to every observer, one after the other: a barrier.
    async fn emit(&self, event: &Event<'_>) {
        for (_, observer) in self.agent.observers().iter() {
            observer.on_event(event).await;
        }
        if let Some(watcher) = self.watcher {
            watcher.on_event(event).await;
        }
    }
}

/// How a turn came out.
enum Turn {
    /// The run ends with it, and no queue is polled.
    Last(EndReason),
    /// It is done; `reason` is why the run ends if nothing more turns up.
    Done { goes_on: bool, reason: EndReason },
}

impl EndReason {
    /// The word for it in records and on wires.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Terminated => "terminated",
            Self::Stopped => "stopped",
            Self::ModelFailed => "model_failed",
            Self::Aborted => "aborted",
            Self::TurnLimit(_) => "turn_limit",
            Self::TruncationLimit(_) => "truncation_limit",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("nothing is left to do"),
            Self::Terminated => f.write_str("every call of the last batch asked to stop"),
            Self::Stopped => f.write_str("the host's stop check ended the run"),
            Self::ModelFailed => f.write_str("the model failed"),
            Self::Aborted => f.write_str("the run was aborted"),
            Self::TurnLimit(turns) => write!(f, "the run was ended after {turns} turns, its limit"),
            Self::TruncationLimit(answers) => {
                write!(f, "the run was ended: the output limit cut {answers} answers in a row")
            }
        }
    }
}
