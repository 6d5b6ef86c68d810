//! The transcript of an agent: finished messages in their durable order, and the calls of the last
//! answer that are still open. Whatever ends a run, every call of a finished answer ends up with a
//! result, so that the next request is valid.

use crate::config::Messages;
use crate::message::{Content, Message, ToolCall, ToolResultMessage};
use crate::refusal;
use std::sync::Arc;

/// The messages, cheap to hand to a request: they are copied only if a request still holds them
/// when the next one is appended.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    messages: Messages,
    /// Messages of roles of the embedder's own. While there are none, a request needs no conversion.
    custom: usize,
    open: Option<OpenBatch>,
}

/// The calls of one answer on their way to a result.
#[derive(Debug)]
struct OpenBatch {
    answer: Arc<Message>,
    calls: Vec<Phase>,
    recorded: usize,
}

/// How far a call is. `Ended` calls wait for their place in source order.
#[derive(Debug)]
enum Phase {
    Waiting,
    Running,
    Ended(Arc<Message>),
    Recorded,
}

impl Transcript {
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        let custom = messages.iter().filter(|message| is_custom(message)).count();
        Self { messages: Arc::new(messages), custom, open: None }
    }

    pub(crate) fn messages(&self) -> Messages {
        self.messages.clone()
    }

    pub(crate) fn has_custom(&self) -> bool {
        self.custom > 0
    }

    pub(crate) fn append(&mut self, message: Arc<Message>) {
        self.custom += usize::from(is_custom(&message));
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Appends an answer whose calls will be answered.
    pub(crate) fn append_answer(&mut self, answer: Arc<Message>, calls: usize) {
        self.append(answer.clone());
        if calls > 0 {
            let calls = (0..calls).map(|_| Phase::Waiting).collect();
            self.open = Some(OpenBatch { answer, calls, recorded: 0 });
        }
    }

    pub(crate) fn call_started(&mut self, index: usize) {
        self.set_phase(index, Phase::Running);
    }

    pub(crate) fn call_ended(&mut self, index: usize, result: Arc<Message>) {
        self.set_phase(index, Phase::Ended(result));
    }

    pub(crate) fn append_result(&mut self, index: usize, message: Arc<Message>) {
        self.append(message);
        self.set_phase(index, Phase::Recorded);
        let Some(open) = &mut self.open else { return };
        open.recorded += 1;
        if open.recorded == open.calls.len() {
            self.open = None;
        }
    }

    /// The ids of the calls that have started and not ended.
    pub(crate) fn pending(&self) -> Vec<String> {
        let Some(open) = &self.open else { return Vec::new() };
        let Message::Assistant(answer) = &*open.answer else { return Vec::new() };
        let calls = answer.tool_calls().zip(&open.calls);
        calls
            .filter(|(_, phase)| matches!(phase, Phase::Running))
            .map(|(c, _)| c.id.clone())
            .collect()
    }

    /// Answers what is still open: with the result of the call where it is known, else with an
    /// error that says that the run ended. Returns the messages, which no journal has yet.
    pub(crate) fn settle(&mut self) -> Vec<Arc<Message>> {
        let Some(open) = self.open.take() else { return Vec::new() };
        let Message::Assistant(answer) = &*open.answer else { return Vec::new() };
        let mut added = Vec::new();
        for (call, phase) in answer.tool_calls().zip(open.calls) {
            let message = match phase {
                Phase::Recorded => continue,
                Phase::Ended(result) => result,
                Phase::Waiting => unanswered(call, refusal::never_ran()),
                Phase::Running => unanswered(call, refusal::cut_short()),
            };
            self.append(message.clone());
            added.push(message);
        }
        added
    }

    fn set_phase(&mut self, index: usize, phase: Phase) {
        let Some(open) = &mut self.open else { return };
        if let Some(slot) = open.calls.get_mut(index) {
            *slot = phase;
        }
    }
}

fn unanswered(call: &ToolCall, text: String) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![Content::Text(text)],
        details: None,
        is_error: true,
    }))
}

fn is_custom(message: &Message) -> bool {
    matches!(message, Message::Custom(_))
}
