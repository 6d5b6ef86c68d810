//! The lines of a session as the events that they were, for whoever shows events.

use super::format::{Entry, Line};
use cofferdam_agent::event::{CallEvent, Event};
use cofferdam_agent::message::{Arguments, Message};
use std::sync::Arc;

/// Hands each line to `each` as the event that it was. What is no event of its own (the setup, the
/// beginning of a tool) is left out, and so are the messages that repeat themselves at the end of
/// turns and runs.
pub fn as_events(lines: &[Line], mut each: impl FnMut(&Event<'_>)) {
    let mut answer: Option<&Arc<Message>> = None;
    for line in lines {
        match &line.entry {
            Entry::RunStart => each(&Event::AgentStart),
            Entry::TurnStart => each(&Event::TurnStart),
            Entry::Message(message) => {
                if message.as_assistant().is_some() {
                    answer = Some(message);
                }
                each(&Event::MessageEnd { message });
            }
            Entry::ModelRetry(retry) => each(&Event::ModelRetry { retry }),
            Entry::CallStart { id, name } => {
                let arguments = sent(answer, id);
                let call = CallEvent { id, name, arguments: &arguments };
                each(&Event::ToolExecutionStart { call });
            }
            Entry::CallProgress { id, partial } => {
                let (name, arguments) = (name(answer, id), sent(answer, id));
                let call = CallEvent { id, name, arguments: &arguments };
                each(&Event::ToolExecutionUpdate { call, partial });
            }
            Entry::CallEnd { id, name, end } => {
                let arguments = sent(answer, id);
                let call = CallEvent { id, name, arguments: &arguments };
                each(&Event::ToolExecutionEnd { call, end });
            }
            Entry::RunEnd => each(&Event::AgentEnd { messages: &[], reason: None }),
            Entry::Session(_)
            | Entry::Setup(_)
            | Entry::Opened { .. }
            | Entry::CallPrepared { .. }
            | Entry::CallRun { .. }
            | Entry::TurnEnd
            | Entry::Unknown => {}
        }
    }
}

fn sent(answer: Option<&Arc<Message>>, id: &str) -> Arguments {
    call(answer, id).map(|call| call.arguments.clone()).unwrap_or_default()
}

fn name<'a>(answer: Option<&'a Arc<Message>>, id: &str) -> &'a str {
    call(answer, id).map_or("", |call| &call.name)
}

fn call<'a>(
    answer: Option<&'a Arc<Message>>,
    id: &str,
) -> Option<&'a cofferdam_agent::message::ToolCall> {
    answer?.as_assistant()?.tool_calls().find(|call| call.id == id)
}
