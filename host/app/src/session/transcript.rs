//! From the lines of a session to a transcript that a run can go on with: every call of the last
//! answer has its result, the recorded one if the call had ended, an error result if not.

use super::format::{Entry, Line};
use cofferdam_agent::event::CallEnd;
use cofferdam_agent::message::{Content, Message, ToolCall, ToolResultMessage};
use std::sync::Arc;

/// A transcript, and what the file lacks of it.
#[derive(Debug, Default)]
pub struct Transcript {
    /// The messages of the file.
    pub messages: Vec<Arc<Message>>,
    /// Results of the calls of the last answer that the file has no message of, in source order.
    pub missing: Vec<Arc<Message>>,
}

/// The model knows best whether it may ask again: it is told which of the two it was.
const NEVER_RAN: &str = "The host's process ended before this call ran.";
const CUT_SHORT: &str = "The host's process ended while this call was running: it may have done \
                         part of its work, so look before you ask for it again.";

impl Transcript {
    /// The transcript that the lines hold.
    pub fn of(lines: &[Line]) -> Self {
        let messages = lines.iter().filter_map(|line| match &line.entry {
            Entry::Message(message) => Some(message.clone()),
            _ => None,
        });
        Self { messages: messages.collect(), missing: missing(lines) }
    }
}

fn missing(lines: &[Line]) -> Vec<Arc<Message>> {
    let is_answer =
        |line: &Line| matches!(&line.entry, Entry::Message(m) if m.as_assistant().is_some());
    let Some(at) = lines.iter().rposition(is_answer) else { return Vec::new() };
    let (Entry::Message(answer), after) = (&lines[at].entry, &lines[at + 1..]) else {
        return Vec::new();
    };
    let Some(answer) = answer.as_assistant().filter(|answer| !answer.failed()) else {
        return Vec::new();
    };
    // Results retire in source order, so their number says which calls have theirs. A message of
    // another kind means that the batch was done.
    let mut retired = 0;
    for line in after {
        match &line.entry {
            Entry::Message(message) if matches!(**message, Message::ToolResult(_)) => retired += 1,
            Entry::Message(_) => return Vec::new(),
            _ => {}
        }
    }
    let mut ends: Vec<(&str, Option<&CallEnd>)> = ends(after).collect();
    let calls = answer.tool_calls().map(|call| {
        // Two calls of one id, which no provider should send, take their ends in turn.
        let end = ends.iter_mut().find(|(id, end)| *id == call.id && end.is_some());
        (call, end.and_then(|(_, end)| end.take()))
    });
    let calls: Vec<(&ToolCall, Option<&CallEnd>)> = calls.collect();
    calls.into_iter().skip(retired).map(|(call, end)| result(call, end, after)).collect()
}

fn ends(lines: &[Line]) -> impl Iterator<Item = (&str, Option<&CallEnd>)> {
    lines.iter().filter_map(|line| match &line.entry {
        Entry::CallEnd { id, end, .. } => Some((id.as_str(), Some(&**end))),
        _ => None,
    })
}

fn result(call: &ToolCall, end: Option<&CallEnd>, after: &[Line]) -> Arc<Message> {
    let (content, details, is_error) = match end {
        Some(end) => (end.result.content.clone(), end.result.details.clone(), end.is_error),
        None => {
            let ran =
                |line: &Line| matches!(&line.entry, Entry::CallRun { id, .. } if *id == call.id);
            let text = if after.iter().any(ran) { CUT_SHORT } else { NEVER_RAN };
            (vec![Content::Text(text.into())], None, true)
        }
    };
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        details,
        is_error,
    }))
}
