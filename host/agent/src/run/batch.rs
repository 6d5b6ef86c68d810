//! The calls of one answer. Live events come in completion order, result messages in source order:
//! two consumers want different guarantees, so there are two orderings (seed: "Parallel tools
//! execute out of order and retire in order").

use super::Run;
use super::finish::Finished;
use super::plan::{self, Lanes, Mode};
use super::preflight::{Preflight, Ready};
use crate::config::Policy;
use crate::event::{CallEvent, Event, ended_by};
use crate::journal::JournalError;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::refusal;
use crate::toolset::Toolset;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::sync::Arc;
use std::task::Poll;

/// What a batch came to.
#[derive(Default)]
pub(super) struct Batch {
    /// The results in source order.
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) terminate: bool,
}

/// The calls of one answer and what they share.
pub(super) struct Calls<'b> {
    pub(super) list: Vec<&'b ToolCall>,
    pub(super) toolset: &'b Toolset,
    pub(super) policy: &'b Policy,
    /// The answer for hooks; absent if there are none.
    pub(super) answer: Option<Arc<AssistantMessage>>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct OneCall<'b> {
    pub(super) index: usize,
    pub(super) call: &'b ToolCall,
    pub(super) all: &'b Calls<'b>,
}

impl Run<'_> {
    /// Calls are taken from the content, whatever the stop reason (seed: "driven by assistant
    /// message content, not only by a provider stop reason").
    pub(super) async fn batch(&mut self, answer: &Message) -> Result<Batch, JournalError> {
        let Some(answer) = answer.as_assistant() else { return Ok(Batch::default()) };
        let list: Vec<&ToolCall> = answer.tool_calls().collect();
        if list.is_empty() {
            return Ok(Batch::default());
        }
        let settings = self.settings.clone();
        let policy = self.agent.policy(&settings);
        let hooked = !policy.before.is_empty() || !policy.after.is_empty();
        let calls = Calls {
            list,
            toolset: &settings.toolset,
            policy: &policy,
            answer: hooked.then(|| Arc::new(answer.clone())),
        };
        match plan::mode(answer, policy.tool_execution, calls.toolset) {
            Mode::Truncated => self.refuse_all(&calls).await,
            Mode::Sequential => self.one_by_one(&calls).await,
            Mode::Parallel => self.together(&calls).await,
        }
    }

    /// A schema proves form, not completeness: no call of a cut answer is looked up, validated,
    /// hooked or run, and an abort does not change that (reference PR 6285).
    async fn refuse_all(&mut self, calls: &Calls<'_>) -> Result<Batch, JournalError> {
        let mut batch = Batch::default();
        for one in calls.each() {
            self.start(one).await;
            let text = refusal::truncated(&one.call.name);
            let refused = Finished::refused(ended_by::TRUNCATED, text);
            let message = self.end(one, refused, false).await.message;
            batch.messages.push(self.record(one.index, message).await?);
        }
        Ok(batch)
    }

    async fn one_by_one(&mut self, calls: &Calls<'_>) -> Result<Batch, JournalError> {
        let mut batch = Batch { messages: Vec::new(), terminate: true };
        for one in calls.each() {
            self.start(one).await;
            let finished = match self.walk.preflight(one).await {
                Preflight::Ready(ready) => self.walk.execute(ready).await,
                Preflight::Refused(finished) => finished,
            };
            let ended = self.end(one, finished, false).await;
            batch.terminate &= ended.terminate;
            batch.messages.push(self.record(one.index, ended.message).await?);
        }
        Ok(batch)
    }

    async fn together(&mut self, calls: &Calls<'_>) -> Result<Batch, JournalError> {
        let mut ends: Vec<Option<Ended>> = calls.list.iter().map(|_| None).collect();
        let ready = self.preflight_all(calls, &mut ends).await;
        self.run_together(ready, &mut ends).await;
        // The reorder buffer retires in source order.
        let mut batch = Batch { messages: Vec::with_capacity(ends.len()), terminate: true };
        for (index, ended) in ends.into_iter().enumerate() {
            let Some(ended) = ended else { continue };
            // Unanimity: one call cannot cut the run short while its siblings have work to report
            // (seed: "Early termination requires unanimity").
            batch.terminate &= ended.terminate;
            batch.messages.push(self.record(index, ended.message).await?);
        }
        Ok(batch)
    }

    /// One call at a time, so that questions to a person come one at a time, in a predictable
    /// order (seed: "Preflight stays sequential even in parallel mode").
    async fn preflight_all<'b>(
        &self,
        calls: &'b Calls<'b>,
        ends: &mut [Option<Ended>],
    ) -> Vec<Ready<'b>> {
        let mut ready = Vec::with_capacity(calls.list.len());
        for one in calls.each() {
            self.start(one).await;
            match self.walk.preflight(one).await {
                Preflight::Ready(call) => ready.push(call),
                Preflight::Refused(finished) => {
                    ends[one.index] = Some(self.end(one, finished, calls.list.len() > 1).await);
                }
            }
        }
        ready
    }

    async fn run_together(&self, ready: Vec<Ready<'_>>, ends: &mut [Option<Ended>]) {
        let siblings = ends.len() > 1;
        if ready.len() < 2 {
            for one in ready {
                let (index, ended) = self.run_one(one, siblings).await;
                ends[index] = Some(ended);
            }
            return;
        }
        let mut lanes = Lanes::default();
        let mut held: Vec<Option<Ready<'_>>> = ends.iter().map(|_| None).collect();
        let mut running = FuturesUnordered::new();
        for one in ready {
            let index = one.one.index;
            if !lanes.admit(index, one.entry.tool.execution()) {
                held[index] = Some(one);
                continue;
            }
            // Polled once in place: a call that does not wait is done with it, and a batch of those
            // costs no scheduling.
            let mut call = Box::pin(self.run_one(one, siblings));
            match futures::poll!(call.as_mut()) {
                Poll::Ready((_, ended)) => {
                    ends[index] = Some(ended);
                    lanes.done(index);
                }
                Poll::Pending => running.push(call),
            }
        }
        while let Some((index, ended)) = running.next().await {
            ends[index] = Some(ended);
            lanes.done(index);
            while let Some(next) = lanes.next_released() {
                running.extend(held[next].take().map(|one| Box::pin(self.run_one(one, siblings))));
            }
        }
    }

    async fn run_one(&self, ready: Ready<'_>, siblings: bool) -> (usize, Ended) {
        let one = ready.one;
        let finished = self.walk.execute(ready).await;
        (one.index, self.end(one, finished, siblings).await)
    }

    /// Announces that a call enters preflight.
    pub(super) async fn start(&self, one: OneCall<'_>) {
        self.state().transcript.call_started(one.index);
        self.emit(&Event::ToolExecutionStart { call: one.event() }).await;
    }

    /// Announces that a call is final. What it came to is kept for its place in source order, in
    /// the journal too if others may still run.
    pub(super) async fn end(&self, one: OneCall<'_>, finished: Finished, siblings: bool) -> Ended {
        let end = finished.end;
        let message = end.message(&one.call.id, &one.call.name);
        self.state().transcript.call_ended(one.index, message.clone());
        if siblings && let Some(journal) = &self.agent.fixed.journal {
            // A failure shows again when the message itself is appended, and ends the run there.
            let _ = journal.finished(&one.call.id, &one.call.name, &end).await;
        }
        self.emit(&Event::ToolExecutionEnd { call: one.event(), end: &end }).await;
        Ended { message, terminate: end.result.terminate == Some(true) }
    }

    /// Announces and appends the result message of a call.
    async fn record(
        &mut self,
        index: usize,
        message: Arc<Message>,
    ) -> Result<Arc<Message>, JournalError> {
        self.emit(&Event::MessageStart { message: &message }).await;
        self.keep(&message, |state| state.transcript.append_result(index, message.clone())).await?;
        self.emit(&Event::MessageEnd { message: &message }).await;
        Ok(message)
    }
}

/// A final call that waits for its place in source order.
pub(super) struct Ended {
    message: Arc<Message>,
    terminate: bool,
}

impl<'b> Calls<'b> {
    fn each(&'b self) -> impl Iterator<Item = OneCall<'b>> {
        self.list.iter().enumerate().map(|(index, call)| OneCall { index, call, all: self })
    }
}

impl<'b> OneCall<'b> {
    pub(super) fn event(&self) -> CallEvent<'b> {
        CallEvent { id: &self.call.id, name: &self.call.name, arguments: &self.call.arguments }
    }
}
