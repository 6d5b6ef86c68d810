//! Chunks of the Chat stream, in every dialect.

use super::calls::Calls;
use crate::draft::{Draft, Ending, Stop};
use crate::http::message_of;
use crate::wire::{Decoder, Flow};
use serde_json::{Value, json};

/// One answer.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// The block that text or reasoning goes on with.
    open: Option<(Kind, usize)>,
    calls: Calls,
    finish: Option<Finish>,
    failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Debug)]
struct Finish {
    word: String,
    stop: Stop,
}

impl Decoder for Chunks {
    fn event(&mut self, data: &Value, draft: &mut Draft) -> Flow {
        let choices = data["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        if let Some(choice) = choices.iter().find(first) {
            self.choice(choice, draft);
        }
        for told in [&data["x_groq"]["usage"], &data["usage"]] {
            usage(told, draft);
        }
        if is_error(data) {
            self.failure = Some(message_of(data).unwrap_or_else(|| data.to_string()));
            return Flow::Over;
        }
        if self.finish.is_some() { Flow::Stated } else { Flow::More }
    }

    /// An error outranks a finish reason that came before it.
    fn ending(&mut self, _: &mut Draft) -> Option<Ending> {
        let finish = self.finish.take();
        if let Some(problem) = self.failure.take() {
            let raw = finish.map(|finish| finish.word);
            return Some(Ending { stop: Stop::Failed(problem), raw });
        }
        finish.map(|Finish { word, stop }| Ending { stop, raw: Some(word) })
    }
}

impl Chunks {
    fn choice(&mut self, choice: &Value, draft: &mut Draft) {
        let delta = match &choice["delta"] {
            Value::Object(_) => &choice["delta"],
            _ => &choice["message"],
        };
        self.reasoning(delta, draft);
        self.content(&delta["content"], draft);
        if let Some(refusal) = delta["refusal"].as_str() {
            self.push(Kind::Text, refusal, draft);
        }
        for entry in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(entry, draft);
        }
        if delta["function_call"].is_object() {
            // The wire's first way of calling, which some servers still have.
            self.call(&json!({"index": 0, "function": delta["function_call"]}), draft);
        }
        if let Some(word) = choice["finish_reason"].as_str().filter(|word| !word.is_empty()) {
            self.finished(word, choice["native_finish_reason"].as_str());
        }
    }

    /// The same reasoning may come in several fields at once.
    fn reasoning(&mut self, delta: &Value, draft: &mut Draft) {
        let plain = ["reasoning_content", "reasoning", "reasoning_text"];
        let plain =
            plain.iter().filter_map(|key| delta[key].as_str()).find(|text| !text.is_empty());
        if let Some(text) = plain {
            self.push(Kind::Thinking, text, draft);
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            if plain.is_none() {
                let text = detail["text"].as_str().or(detail["summary"].as_str());
                self.push(Kind::Thinking, text.unwrap_or_default(), draft);
            }
            if let Some(signature) = detail["signature"].as_str().filter(|s| !s.is_empty()) {
                let at = self.block(Kind::Thinking, draft);
                draft.sign(at, signature);
            }
            if let Some(data) = detail["data"].as_str().filter(|data| !data.is_empty()) {
                let at = draft.thinking();
                draft.redact(at);
                draft.sign(at, data);
                self.open = None;
            }
        }
    }

    /// A text, or a list of parts (Mistral's reasoning models).
    fn content(&mut self, content: &Value, draft: &mut Draft) {
        match content {
            Value::String(text) => self.push(Kind::Text, text, draft),
            Value::Array(parts) => {
                for part in parts {
                    match part["type"].as_str() {
                        Some("thinking") => {
                            for inner in part["thinking"].as_array().into_iter().flatten() {
                                let text = inner["text"].as_str().unwrap_or_default();
                                self.push(Kind::Thinking, text, draft);
                            }
                        }
                        _ => {
                            let text = part["text"].as_str().unwrap_or_default();
                            self.push(Kind::Text, text, draft);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn push(&mut self, kind: Kind, text: &str, draft: &mut Draft) {
        if !text.is_empty() {
            let at = self.block(kind, draft);
            draft.push(at, text);
        }
    }

    /// The block that is open, if it is of this kind, else one that begins.
    fn block(&mut self, kind: Kind, draft: &mut Draft) -> usize {
        if let Some((open, at)) = self.open {
            if open == kind {
                return at;
            }
            draft.end(at);
        }
        let at = match kind {
            Kind::Text => draft.text(),
            Kind::Thinking => draft.thinking(),
        };
        self.open = Some((kind, at));
        at
    }

    fn call(&mut self, entry: &Value, draft: &mut Draft) {
        if let Some((_, at)) = self.open.take() {
            draft.end(at);
        }
        self.calls.take(entry, draft);
    }

    /// The gravest of several finish reasons counts. A gateway may say `tool_calls` where the model
    /// behind it said that it was cut (NousResearch/hermes-agent PR 7693).
    fn finished(&mut self, word: &str, native: Option<&str>) {
        let cut_behind = native.is_some_and(|native| {
            ["length", "max_tokens", "max_output_tokens"]
                .iter()
                .any(|w| native.eq_ignore_ascii_case(w))
        });
        let stop = match word {
            "stop" | "tool_calls" | "function_call" | "end_turn" | "end" | "eos" if cut_behind => {
                Stop::Length
            }
            "stop" | "tool_calls" | "function_call" | "end_turn" | "end" | "eos" => Stop::Natural,
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
                Stop::Length
            }
            _ => Stop::Failed(format!("the model stopped with `{word}`")),
        };
        let gravity = |stop: &Stop| match stop {
            Stop::Natural => 0,
            Stop::Length => 1,
            Stop::Failed(_) | Stop::Aborted => 2,
        };
        if self.finish.as_ref().is_none_or(|before| gravity(&before.stop) <= gravity(&stop)) {
            self.finish = Some(Finish { word: word.into(), stop });
        }
    }
}

/// An error in place of a chunk, or beside one. `null` and an empty text are none.
fn is_error(data: &Value) -> bool {
    let told = match &data["error"] {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    told || data["object"] == "error" || data["type"] == "error"
}

/// Counts are totals: the last one told is right.
fn usage(told: &Value, draft: &mut Draft) {
    let Some(prompt) = told["prompt_tokens"].as_u64() else { return };
    let cached = told["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .or(told["prompt_cache_hit_tokens"].as_u64())
        .unwrap_or(0)
        .min(prompt);
    draft.usage.input = prompt - cached;
    draft.usage.cache_read = cached;
    draft.usage.output = told["completion_tokens"].as_u64().unwrap_or(draft.usage.output);
}
