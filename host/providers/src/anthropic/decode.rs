//! Events of the Messages stream. Blocks are told apart by their index alone; kinds of events,
//! blocks and deltas that are not known here are passed over.

use crate::draft::{Draft, Ending, Stop, arguments_text};
use crate::http::message_of;
use crate::wire::{Decoder, Flow};
use serde_json::Value;
use std::collections::HashMap;

/// One message.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The id of the message, once it has begun.
    id: Option<String>,
    blocks: HashMap<u64, Open>,
    stop_reason: Option<String>,
    explanation: Option<String>,
    failure: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Open {
    Text(usize),
    Thinking(usize),
    Call(usize),
    /// Something that the provider runs itself, or that is not known here.
    Foreign,
}

impl Decoder for Messages {
    fn event(&mut self, data: &Value, draft: &mut Draft) -> Flow {
        match data["type"].as_str().unwrap_or_default() {
            "message_start" => return self.message_start(&data["message"], draft),
            "content_block_start" => self.block_start(data, draft),
            "content_block_delta" => self.block_delta(data, draft),
            "content_block_stop" => self.block_stop(data, draft),
            "message_delta" => return self.message_delta(data, draft),
            "message_stop" => return Flow::Over,
            "error" => return self.fail(data),
            _ if data["error"].is_object() => return self.fail(data),
            _ => {}
        }
        Flow::More
    }

    fn ending(&mut self, _: &mut Draft) -> Option<Ending> {
        let raw = self.stop_reason.take();
        if let Some(problem) = self.failure.take() {
            return Some(Ending { stop: Stop::Failed(problem), raw });
        }
        let word = raw?;
        let stop = match word.as_str() {
            "end_turn" | "stop_sequence" | "tool_use" | "pause_turn" => Stop::Natural,
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            _ => Stop::Failed(match self.explanation.take() {
                Some(why) => format!("the model stopped with `{word}`: {why}"),
                None => format!("the model stopped with `{word}`"),
            }),
        };
        Some(Ending { stop, raw: Some(word) })
    }
}

impl Messages {
    /// The same message may be announced twice; another one means that two answers were spliced
    /// (vercel/ai has the case), and no part of either can be trusted.
    fn message_start(&mut self, message: &Value, draft: &mut Draft) -> Flow {
        let id = message["id"].as_str().unwrap_or_default();
        usage(&message["usage"], draft);
        match &self.id {
            None => self.id = Some(id.into()),
            Some(first) if first == id => {}
            Some(first) => {
                self.failure = Some(format!(
                    "a second message_start, of {id:?}, came inside the answer {first:?}: something on \
                     the way mixed two answers"
                ));
                return Flow::Over;
            }
        }
        Flow::More
    }

    fn block_start(&mut self, data: &Value, draft: &mut Draft) {
        let block = &data["content_block"];
        let text = |key: &str| block[key].as_str().unwrap_or_default();
        let open = match text("type") {
            "text" => {
                let at = draft.text();
                draft.push(at, text("text"));
                Open::Text(at)
            }
            "thinking" => {
                let at = draft.thinking();
                draft.push(at, text("thinking"));
                if let Some(signature) = block["signature"].as_str().filter(|s| !s.is_empty()) {
                    draft.sign(at, signature);
                }
                Open::Thinking(at)
            }
            "redacted_thinking" => {
                let at = draft.thinking();
                draft.redact(at);
                draft.sign(at, text("data"));
                Open::Thinking(at)
            }
            "tool_use" => {
                let at = draft.call(text("id"), text("name"));
                // Some servers send the arguments here, whole.
                draft.preset(at, &block["input"]);
                Open::Call(at)
            }
            _ => Open::Foreign,
        };
        self.blocks.insert(index(data), open);
    }

    fn block_delta(&mut self, data: &Value, draft: &mut Draft) {
        let delta = &data["delta"];
        let text = |key: &str| delta[key].as_str().unwrap_or_default();
        match (text("type"), self.blocks.get(&index(data))) {
            ("text_delta", Some(Open::Text(at))) => draft.push(*at, text("text")),
            ("thinking_delta", Some(Open::Thinking(at))) => draft.push(*at, text("thinking")),
            ("signature_delta", Some(Open::Thinking(at))) => draft.sign(*at, text("signature")),
            ("input_json_delta", Some(Open::Call(at))) => {
                draft.push(*at, &arguments_text(&delta["partial_json"]));
            }
            _ => {}
        }
    }

    fn block_stop(&mut self, data: &Value, draft: &mut Draft) {
        match self.blocks.get(&index(data)) {
            Some(Open::Text(at) | Open::Thinking(at) | Open::Call(at)) => draft.end(*at),
            Some(Open::Foreign) | None => {}
        }
    }

    fn message_delta(&mut self, data: &Value, draft: &mut Draft) -> Flow {
        usage(&data["usage"], draft);
        let delta = &data["delta"];
        if let Some(why) = delta["stop_details"]["explanation"].as_str() {
            self.explanation = Some(why.into());
        }
        if let Some(word) = delta["stop_reason"].as_str() {
            self.stop_reason = Some(word.into());
        }
        if self.stop_reason.is_some() { Flow::Stated } else { Flow::More }
    }

    fn fail(&mut self, data: &Value) -> Flow {
        let kind = data["error"]["type"].as_str().map(|kind| format!(" ({kind})"));
        let told = message_of(data).unwrap_or_else(|| data.to_string());
        self.failure = Some(format!("{told}{}", kind.unwrap_or_default()));
        Flow::Over
    }
}

fn index(data: &Value) -> u64 {
    data["index"].as_u64().unwrap_or_default()
}

/// Counts are totals: the last of each is right. A field that is left out has not changed.
fn usage(told: &Value, draft: &mut Draft) {
    let usage = &mut draft.usage;
    for (key, count) in [
        ("input_tokens", &mut usage.input),
        ("output_tokens", &mut usage.output),
        ("cache_read_input_tokens", &mut usage.cache_read),
        ("cache_creation_input_tokens", &mut usage.cache_write),
    ] {
        if let Some(told) = told[key].as_u64() {
            *count = told;
        }
    }
}
