//! Events as lines. Each says what is new: a whole message comes once, when it is final. A line with
//! `left_out` names the fields of which it does not have all.

use super::outbox::Outbox;
use super::short;
use crate::json;
use cofferdam_agent::event::{CallEvent, Event, Observer};
use cofferdam_agent::message::Message;
use cofferdam_agent::model::Step;
use cofferdam_agent::tool::ToolResult;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Bytes of content and details in a report of progress, and of the arguments beside it. Reports come
/// often, and each is soon out of date.
const REPORT_BYTES_MAX: usize = 64 * 1024;

/// Puts every event of an agent into an outbox.
pub(super) struct Events(pub(super) Arc<Outbox>);

/// An event of which only the sum or the last counts.
#[derive(Debug, PartialEq)]
pub(super) enum Update {
    /// More of a block that streams.
    Text {
        /// `text_delta`, `thinking_delta` or `tool_call_delta`.
        kind: &'static str,
        index: usize,
        delta: String,
    },
    /// Another step of an answer; the line is complete. The end of the answer has it all.
    Step { line: String },
    /// What a call reports; the line is complete.
    Report { call: String, line: String },
}

/// An event of which every reader is told.
pub(super) struct EventLine(Value);

impl Observer for Events {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        match Update::of(event) {
            Some(update) => self.0.update(update),
            None => self.0.event(EventLine(fields(event).into())),
        }
        Box::pin(std::future::ready(()))
    }
}

impl EventLine {
    pub(super) fn whole(self) -> String {
        self.0.to_string()
    }

    /// The same without its long fields.
    pub(super) fn in_short(mut self) -> String {
        short::event(&mut self.0);
        self.0.to_string()
    }
}

fn fields(event: &Event<'_>) -> Map<String, Value> {
    let mut fields = match event {
        Event::MessageUpdate { step, .. } => json::step(step),
        Event::MessageStart { message } => {
            let role = ("role".to_owned(), role(message).into());
            Map::from_iter([("type".to_owned(), "message_start".into()), role])
        }
        Event::TurnEnd { .. } => Map::from_iter([("type".to_owned(), "turn_end".into())]),
        Event::AgentEnd { .. } => Map::from_iter([("type".to_owned(), "agent_end".into())]),
        event => match json::event(event) {
            Value::Object(fields) => fields,
            _ => Map::new(),
        },
    };
    // The type of the line is `event`, so that an event can never be taken for an answer.
    let kind = fields.shift_remove("type").unwrap_or_default();
    let head = [("type".to_owned(), "event".into()), ("event".to_owned(), kind)];
    head.into_iter().chain(fields).collect()
}

fn report(call: CallEvent<'_>, partial: &ToolResult) -> String {
    let cut = short::result(partial, REPORT_BYTES_MAX);
    let partial = cut.as_ref().unwrap_or(partial);
    let mut fields = fields(&Event::ToolExecutionUpdate { call, partial });
    let mut left_out = Vec::from_iter(cut.is_some().then_some("partial_result"));
    if fields.get("args").is_some_and(|args| args.to_string().len() > REPORT_BYTES_MAX) {
        fields.insert("args".into(), Map::new().into());
        left_out.push("args");
    }
    if !left_out.is_empty() {
        fields.insert("left_out".into(), left_out.into());
    }
    Value::Object(fields).to_string()
}

fn role(message: &Message) -> &str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool_result",
        Message::Custom(custom) => &custom.role,
    }
}

impl Update {
    fn of(event: &Event<'_>) -> Option<Self> {
        let (kind, index, delta) = match event {
            Event::ToolExecutionUpdate { call, partial } => {
                let line = report(*call, partial);
                return Some(Self::Report { call: call.id.to_owned(), line });
            }
            Event::MessageUpdate { step: Step::TextDelta { index, delta }, .. } => {
                ("text_delta", *index, delta)
            }
            Event::MessageUpdate { step: Step::ThinkingDelta { index, delta }, .. } => {
                ("thinking_delta", *index, delta)
            }
            Event::MessageUpdate { step: Step::ToolCallDelta { index, delta }, .. } => {
                ("tool_call_delta", *index, delta)
            }
            Event::MessageUpdate { .. } => {
                return Some(Self::Step { line: Value::Object(fields(event)).to_string() });
            }
            _ => return None,
        };
        Some(Self::Text { kind, index, delta: delta.clone() })
    }

    /// Whether both are about the same block or call.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Text { kind, index, .. },
                Self::Text { kind: other_kind, index: other_index, .. },
            ) => kind == other_kind && index == other_index,
            (Self::Report { call, .. }, Self::Report { call: other, .. }) => call == other,
            _ => false,
        }
    }

    /// Takes in a later one of the same block or call.
    pub(super) fn join(&mut self, later: Self) {
        match (self, later) {
            (Self::Text { delta, .. }, Self::Text { delta: more, .. }) => delta.push_str(&more),
            (this, later) => *this = later,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text { delta, .. } => delta.len(),
            Self::Step { line } => line.len(),
            Self::Report { call, line } => call.len() + line.len(),
        }
    }

    pub(super) fn into_line(self) -> String {
        match self {
            Self::Step { line } | Self::Report { line, .. } => line,
            Self::Text { kind, index, delta } => json!({
                "type": "event",
                "event": "message_update",
                "update": kind,
                "content_index": index,
                "delta": delta,
            })
            .to_string(),
        }
    }
}
