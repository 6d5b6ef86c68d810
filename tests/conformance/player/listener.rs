//! The first listener: records every event, carries out what the scenario ties to events, and opens
//! the gates of the event when it has dealt with it.

use super::print::update_name;
use super::read::texts_of_message;
use super::rules::{list, texts};
use super::steps::Party;
use super::world::World;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::message::Message;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct Listener {
    world: Arc<World>,
    watches: Vec<Watch>,
}

/// Steps tied to an event.
struct Watch {
    on: Value,
    key: String,
    steps: Value,
}

impl Listener {
    pub(super) fn new(world: &Arc<World>) -> Self {
        let scenario = &world.scenario;
        let mut watches = Vec::new();
        let mut tie = |on: &Value, steps: Value| {
            let key = format!("watch {}", watches.len());
            watches.push(Watch { on: on.clone(), key, steps });
        };
        for (queue, step) in [("steering", "steer"), ("follow_up", "follow_up")] {
            for entry in list(&scenario[queue]).iter().filter(|entry| entry.is_object()) {
                tie(&entry["on"], json!([{step: entry["text"]}]));
            }
        }
        for entry in list(&scenario["abort"]) {
            tie(&entry["on"], json!([{"abort": true}]));
        }
        for entry in list(&scenario["when"]) {
            tie(&entry["on"], entry["do"].clone());
        }
        Self { world: world.clone(), watches }
    }

    /// Records an event the moment it comes. Returns what to do about it, and its gates.
    fn receive(&self, event: &Event<'_>) -> (Vec<&Value>, Vec<String>) {
        let mut book = self.world.book();
        match event {
            Event::ToolExecutionStart { call } => book.note_start(call.id),
            Event::ToolExecutionEnd { call, end } => {
                let key = format!("malformed {}", call.id);
                let malformed = book.texts.get(&key).cloned();
                book.host_texts.learn(call, end, malformed.as_deref());
            }
            Event::MessageEnd { message } => {
                for call in
                    message.as_assistant().into_iter().flat_map(|answer| answer.tool_calls())
                {
                    if let Some(malformed) = &call.malformed {
                        book.texts.insert(format!("malformed {}", call.id), malformed.text.clone());
                    }
                }
            }
            _ => {}
        }
        let record = book.event(event);
        book.push(record);
        let name = cofferdam_agent::testing::name(event);
        let nth = book.count(name);
        let mut gates = vec![name.to_owned(), format!("{name}#{nth}")];
        gates.extend(call_id(event).map(|id| format!("{name}:{id}")));
        let due = self.watches.iter().filter(|watch| {
            let fits = fits(&watch.on, event);
            fits && is_nth(&watch.on["nth"], book.count(watch.key.as_str()))
        });
        (due.map(|watch| &watch.steps).collect(), gates)
    }
}

impl Observer for Listener {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let (due, gates) = self.receive(event);
        Box::pin(async move {
            self.world.pause().await;
            for steps in due {
                Party::plain(&self.world, None).obey(steps).await;
            }
            gates.into_iter().for_each(|gate| self.world.open_gate(gate));
        })
    }
}

fn is_nth(wanted: &Value, nth: u64) -> bool {
    match wanted {
        Value::Null => nth == 1,
        Value::Number(number) => number.as_u64() == Some(nth),
        every => every == "every",
    }
}

fn fits(on: &Value, event: &Event<'_>) -> bool {
    let Some(on) = on.as_object() else { return false };
    on.iter().all(|(name, wanted)| match name.as_str() {
        "type" => wanted == cofferdam_agent::testing::name(event),
        "id" => call_id(event).is_some_and(|id| wanted == id),
        "tool" => tool_name(event).is_some_and(|tool| wanted == tool),
        "role" => message(event).is_some_and(|message| wanted == role(message)),
        "stop_reason" => message(event)
            .and_then(Message::as_assistant)
            .is_some_and(|answer| wanted == answer.stop_reason.as_str()),
        "text" => message(event).is_some_and(|message| has_text(message, wanted)),
        "update" => match event {
            Event::MessageUpdate { step, .. } => {
                texts(wanted).iter().any(|u| u == update_name(step))
            }
            _ => false,
        },
        "nth" => true,
        other => panic!("unknown field {other:?} of a match"),
    })
}

fn message<'e>(event: &'e Event<'_>) -> Option<&'e Message> {
    match event {
        Event::MessageStart { message } => Some(message),
        Event::MessageEnd { message } | Event::TurnEnd { message, .. } => Some(message),
        _ => None,
    }
}

fn role(message: &Message) -> &str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool_result",
        Message::Custom(custom) => &custom.role,
    }
}

fn has_text(message: &Message, wanted: &Value) -> bool {
    texts_of_message(message).iter().any(|text| wanted == text.as_str())
}

fn call_id<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::ToolExecutionStart { call }
        | Event::ToolExecutionUpdate { call, .. }
        | Event::ToolExecutionEnd { call, .. } => Some(call.id),
        Event::MessageStart { message: Message::ToolResult(result) } => Some(&result.tool_call_id),
        Event::MessageEnd { message } => match &***message {
            Message::ToolResult(result) => Some(&result.tool_call_id),
            _ => None,
        },
        _ => None,
    }
}

fn tool_name<'e>(event: &'e Event<'_>) -> Option<&'e str> {
    match event {
        Event::ToolExecutionStart { call }
        | Event::ToolExecutionUpdate { call, .. }
        | Event::ToolExecutionEnd { call, .. } => Some(call.name),
        Event::MessageStart { message: Message::ToolResult(result) } => Some(&result.tool_name),
        Event::MessageEnd { message } => match &***message {
            Message::ToolResult(result) => Some(&result.tool_name),
            _ => None,
        },
        _ => None,
    }
}
