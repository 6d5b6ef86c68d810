//! Events of the Responses stream. Items are told apart by their `output_index` alone: some gateways
//! give the same item a new id in every event. What an item is when it is done wins over the pieces
//! that came before.

use crate::draft::{Draft, Ending, Stop, arguments_text};
use crate::http::message_of;
use crate::wire::{Decoder, Flow};
use serde_json::Value;
use std::collections::HashMap;

/// One response.
#[derive(Debug, Default)]
pub(crate) struct Items {
    items: HashMap<u64, Item>,
    ending: Option<Ending>,
    failure: Option<String>,
}

#[derive(Debug, Clone, Copy)]
enum Item {
    Message(usize),
    Reasoning { at: usize, part: u64 },
    Call(usize),
}

impl Decoder for Items {
    fn event(&mut self, data: &Value, draft: &mut Draft) -> Flow {
        let text = |key: &str| data[key].as_str().unwrap_or_default();
        let index = data["output_index"].as_u64().unwrap_or_default();
        match text("type") {
            "response.output_item.added" => self.added(index, &data["item"], draft),
            "response.output_item.done" => self.done(index, &data["item"], draft),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.message(index, text("delta"), draft);
            }
            "response.reasoning_summary_text.delta" => {
                let part = data["summary_index"].as_u64().unwrap_or_default();
                self.reasoning(index, part, text("delta"), draft);
            }
            "response.reasoning_text.delta" => {
                let part = data["content_index"].as_u64().unwrap_or_default();
                self.reasoning(index, part, text("delta"), draft);
            }
            "response.function_call_arguments.delta" => {
                if let Some(Item::Call(at)) = self.items.get(&index) {
                    draft.push(*at, &arguments_text(&data["delta"]));
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(Item::Call(at)) = self.items.get(&index) {
                    settle(*at, &data["arguments"], draft);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => return self.end(&data["response"], text("type"), draft),
            "error" => {
                // `response.failed` usually follows; there is one failure.
                self.failure = Some(message_of(data).unwrap_or_else(|| data.to_string()));
                return Flow::Stated;
            }
            _ if data["error"].is_object() => {
                self.failure = message_of(data);
                return Flow::Stated;
            }
            _ => {}
        }
        Flow::More
    }

    fn ending(&mut self, _: &mut Draft) -> Option<Ending> {
        let raw = self.ending.as_ref().and_then(|ending| ending.raw.clone());
        match self.failure.take() {
            Some(problem) => Some(Ending { stop: Stop::Failed(problem), raw }),
            None => self.ending.take(),
        }
    }
}

impl Items {
    fn added(&mut self, index: u64, item: &Value, draft: &mut Draft) {
        // Texts and reasoning begin with their first piece: an empty one is no block.
        if item["type"] == "function_call" && !self.items.contains_key(&index) {
            let at = begin_call(item, draft);
            match item["arguments"].as_str() {
                Some(begun) => draft.push(at, begun),
                None => draft.preset(at, &item["arguments"]),
            }
            self.items.insert(index, Item::Call(at));
        }
    }

    fn message(&mut self, index: u64, delta: &str, draft: &mut Draft) {
        let at = match self.items.get(&index) {
            Some(Item::Message(at)) => *at,
            Some(_) => return,
            None if delta.is_empty() => return,
            None => self.begin_message(index, draft),
        };
        draft.push(at, delta);
    }

    fn begin_message(&mut self, index: u64, draft: &mut Draft) -> usize {
        let at = draft.text();
        self.items.insert(index, Item::Message(at));
        at
    }

    /// Parts of a summary are paragraphs.
    fn reasoning(&mut self, index: u64, part: u64, delta: &str, draft: &mut Draft) {
        let at = match self.items.get_mut(&index) {
            Some(Item::Reasoning { at, part: last }) => {
                if std::mem::replace(last, part) != part {
                    draft.push(*at, "\n\n");
                }
                *at
            }
            Some(_) => return,
            None if delta.is_empty() => return,
            None => self.begin_reasoning(index, part, draft),
        };
        draft.push(at, delta);
    }

    fn begin_reasoning(&mut self, index: u64, part: u64, draft: &mut Draft) -> usize {
        let at = draft.thinking();
        self.items.insert(index, Item::Reasoning { at, part });
        at
    }

    fn done(&mut self, index: u64, item: &Value, draft: &mut Draft) {
        let known = self.items.get(&index).copied();
        match (item["type"].as_str().unwrap_or_default(), known) {
            ("function_call", None | Some(Item::Call(_))) => {
                let at = match known {
                    Some(Item::Call(at)) => at,
                    _ => begin_call(item, draft),
                };
                draft.identify(at, item["call_id"].as_str().unwrap_or_default());
                draft.name(at, item["name"].as_str().unwrap_or_default());
                settle(at, &item["arguments"], draft);
                if item["status"] == "incomplete" {
                    draft.break_call(at, "the provider did not finish them");
                }
                self.items.insert(index, Item::Call(at));
                draft.end(at);
            }
            ("message", None | Some(Item::Message(_))) => {
                let text = joined(&item["content"], &["text", "refusal"], "");
                let at = match known {
                    Some(Item::Message(at)) => at,
                    _ if text.is_empty() => return,
                    _ => self.begin_message(index, draft),
                };
                if !text.is_empty() {
                    draft.settle(at, &text);
                }
                draft.end(at);
            }
            ("reasoning", None | Some(Item::Reasoning { .. })) => {
                self.reasoning_done(index, known, item, draft);
            }
            _ => {}
        }
    }

    fn reasoning_done(&mut self, index: u64, known: Option<Item>, item: &Value, draft: &mut Draft) {
        let summary = joined(&item["summary"], &["text"], "\n\n");
        let text = match summary.is_empty() {
            true => joined(&item["content"], &["text"], "\n\n"),
            false => summary,
        };
        let encrypted = item["encrypted_content"].as_str().filter(|text| !text.is_empty());
        let at = match known {
            Some(Item::Reasoning { at, .. }) => at,
            _ if text.is_empty() && encrypted.is_none() => return,
            _ => self.begin_reasoning(index, 0, draft),
        };
        if !text.is_empty() {
            draft.settle(at, &text);
        }
        if let Some(encrypted) = encrypted {
            draft.sign(at, encrypted);
        }
        if let Some(id) = item["id"].as_str() {
            draft.identify(at, id);
        }
        draft.end(at);
    }

    fn end(&mut self, response: &Value, kind: &str, draft: &mut Draft) -> Flow {
        usage(&response["usage"], draft);
        if draft.is_empty() {
            // A server may answer all at once.
            for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
                self.done(index as u64, item, draft);
            }
        }
        let status = status(response, kind.trim_start_matches("response."));
        let (stop, raw) = match status {
            "completed" => (Stop::Natural, status.to_owned()),
            "incomplete" => incomplete(response),
            _ => {
                let told = message_of(response).filter(|_| !response["error"].is_null());
                let told = self.failure.take().or(told);
                let told = told.unwrap_or_else(|| format!("the response {status}"));
                (Stop::Failed(told), status.to_owned())
            }
        };
        self.ending = Some(Ending { stop, raw: Some(raw) });
        Flow::Over
    }
}

/// How a response ended, by the name of the event or by what it says itself: the graver counts.
fn status<'r>(response: &'r Value, named: &'r str) -> &'r str {
    let graver = |status: &&str| matches!(*status, "failed" | "cancelled" | "incomplete");
    match named {
        "completed" => match response["status"].as_str().filter(graver) {
            Some(status) => status,
            None if response["error"].is_object() => "failed",
            None if response["incomplete_details"]["reason"].is_string() => "incomplete",
            None => named,
        },
        _ => named,
    }
}

fn begin_call(item: &Value, draft: &mut Draft) -> usize {
    // `call_id` is what a result answers to; the item's own id is not.
    let id = item["call_id"].as_str().filter(|id| !id.is_empty());
    let id = id.or(item["id"].as_str()).unwrap_or_default();
    draft.call(id, item["name"].as_str().unwrap_or_default())
}

/// The whole arguments of a call. Nothing does not take away what came in pieces.
fn settle(at: usize, whole: &Value, draft: &mut Draft) {
    let whole = arguments_text(whole);
    if !whole.is_empty() {
        draft.settle(at, &whole);
    }
}

fn incomplete(response: &Value) -> (Stop, String) {
    let reason = response["incomplete_details"]["reason"].as_str().unwrap_or("unknown");
    let stop = match reason {
        "max_output_tokens" | "max_tokens" => Stop::Length,
        _ => Stop::Failed(format!("the response is incomplete: {reason}")),
    };
    (stop, format!("incomplete:{reason}"))
}

fn joined(parts: &Value, keys: &[&str], with: &str) -> String {
    let text = |part: &Value| keys.iter().find_map(|key| part[*key].as_str()).map(str::to_owned);
    let texts = parts.as_array().into_iter().flatten().filter_map(text);
    texts.collect::<Vec<_>>().join(with)
}

fn usage(told: &Value, draft: &mut Draft) {
    let Some(input) = told["input_tokens"].as_u64() else { return };
    let cached = told["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0).min(input);
    draft.usage.input = input - cached;
    draft.usage.cache_read = cached;
    draft.usage.output = told["output_tokens"].as_u64().unwrap_or(0);
}
