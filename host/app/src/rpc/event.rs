//! Events as lines. Each says what is new: a whole message comes once, when it is final.

use super::outbox::Outbox;
use crate::json;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::message::Message;
use cofferdam_agent::model::Step;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;

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
    /// What a call reports; the line is complete.
    Report { call: String, line: String },
}

impl Observer for Events {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        match Update::of(event) {
            Some(update) => self.0.update(update),
            None => self.0.event(line(event)),
        }
        Box::pin(std::future::ready(()))
    }
}

fn line(event: &Event<'_>) -> String {
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
    let line: Map<String, Value> = head.into_iter().chain(fields).collect();
    Value::Object(line).to_string()
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
            Event::ToolExecutionUpdate { call, .. } => {
                return Some(Self::Report { call: call.id.to_owned(), line: line(event) });
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
            Self::Report { call, line } => call.len() + line.len(),
        }
    }

    pub(super) fn into_line(self) -> String {
        match self {
            Self::Report { line, .. } => line,
            Self::Text { kind, index, delta } => serde_json::json!({
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
