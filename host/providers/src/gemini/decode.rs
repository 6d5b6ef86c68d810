//! Chunks of `streamGenerateContent`. A finish reason may come in the middle (after code that the
//! provider ran itself), so the stream is read to its end.

use super::partial_args::PartialArgs;
use crate::draft::{Draft, Ending, Stop};
use crate::http::message_of;
use crate::wire::{Decoder, Flow};
use serde_json::Value;

/// One answer.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// The block that text or reasoning goes on with.
    open: Option<(Kind, usize)>,
    /// A call whose arguments come in pieces.
    streamed: Option<Streamed>,
    finish: Option<(Stop, String)>,
    failure: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Debug)]
struct Streamed {
    at: usize,
    arguments: PartialArgs,
}

/// Why a call without its last piece is not run.
const UNFINISHED: &str = "the provider did not finish them";

impl Decoder for Candidates {
    fn event(&mut self, data: &Value, draft: &mut Draft) -> Flow {
        if !data["error"].is_null() {
            self.failure = Some(message_of(data).unwrap_or_else(|| data.to_string()));
            return Flow::Over;
        }
        usage(&data["usageMetadata"], draft);
        if let Some(reason) = data["promptFeedback"]["blockReason"].as_str() {
            let stop = Stop::Failed(format!("the prompt was blocked: {reason}"));
            self.finish = Some((stop, reason.into()));
        }
        let candidate = &data["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.part(part, draft);
        }
        if let Some(word) = candidate["finishReason"].as_str().filter(|word| !word.is_empty()) {
            self.finished(word, candidate["finishMessage"].as_str());
        }
        if self.finish.is_some() { Flow::Stated } else { Flow::More }
    }

    fn ending(&mut self, draft: &mut Draft) -> Option<Ending> {
        if let Some(streamed) = self.streamed.take() {
            draft.break_call(streamed.at, UNFINISHED);
            draft.push(streamed.at, &streamed.arguments.text());
        }
        let finish = self.finish.take();
        if let Some(problem) = self.failure.take() {
            let raw = finish.map(|(_, word)| word);
            return Some(Ending { stop: Stop::Failed(problem), raw });
        }
        finish.map(|(stop, word)| Ending { stop, raw: Some(word) })
    }
}

impl Candidates {
    fn part(&mut self, part: &Value, draft: &mut Draft) {
        let signature = part["thoughtSignature"].as_str().filter(|text| !text.is_empty());
        if part["functionCall"].is_object() {
            self.call(&part["functionCall"], signature, draft);
            return;
        }
        let Some(text) = part["text"].as_str() else { return };
        let kind = if part["thought"] == true { Kind::Thinking } else { Kind::Text };
        if !text.is_empty() {
            let at = self.block(kind, draft);
            draft.push(at, text);
        }
        // A signature may come in a part of its own, with an empty text.
        if let (Some(signature), Some((_, at))) = (signature, self.open) {
            draft.sign(at, signature);
        }
    }

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

    /// A call comes whole, or named and then in pieces until one says that no other follows.
    fn call(&mut self, call: &Value, signature: Option<&str>, draft: &mut Draft) {
        let name = call["name"].as_str().unwrap_or_default();
        let more = call["willContinue"] == true;
        if !name.is_empty() {
            if let Some((_, at)) = self.open.take() {
                draft.end(at);
            }
            self.close(Some(UNFINISHED), draft);
            let at = draft.call(call["id"].as_str().unwrap_or_default(), name);
            self.streamed = Some(Streamed { at, arguments: PartialArgs::default() });
        }
        let Some(streamed) = &mut self.streamed else { return };
        if let Some(signature) = signature {
            draft.sign(streamed.at, signature);
        }
        streamed.arguments.replace(&call["args"]);
        let pieces = &call["partialArgs"];
        if !matches!(pieces, Value::Null | Value::Array(_)) {
            draft.break_call(streamed.at, "its `partialArgs` are no list");
        }
        for piece in pieces.as_array().into_iter().flatten() {
            if let Err(problem) = streamed.arguments.take(piece) {
                draft.break_call(streamed.at, &problem);
            }
        }
        if !more {
            self.close(None, draft);
        }
    }

    /// Ends the call that is being written.
    fn close(&mut self, problem: Option<&str>, draft: &mut Draft) {
        let Some(Streamed { at, arguments }) = self.streamed.take() else { return };
        if let Some(problem) = problem {
            draft.break_call(at, problem);
        }
        draft.push(at, &arguments.text());
        draft.end(at);
    }

    /// The gravest of several finish reasons counts.
    fn finished(&mut self, word: &str, told: Option<&str>) {
        let stop = match word {
            "STOP" => Stop::Natural,
            "MAX_TOKENS" | "CONTINUATION" => Stop::Length,
            _ => Stop::Failed(match told {
                Some(told) => format!("the model stopped with `{word}`: {told}"),
                None => format!("the model stopped with `{word}`"),
            }),
        };
        let natural = matches!(self.finish, None | Some((Stop::Natural, _)));
        if natural || matches!(stop, Stop::Failed(_)) {
            self.finish = Some((stop, word.into()));
        }
    }
}

/// Counts are totals: the last one told is right.
fn usage(told: &Value, draft: &mut Draft) {
    let count = |key: &str| told[key].as_u64();
    if let Some(prompt) = count("promptTokenCount") {
        let cached = count("cachedContentTokenCount").unwrap_or(0).min(prompt);
        let tools = count("toolUsePromptTokenCount").unwrap_or(0);
        draft.usage.input = (prompt - cached).saturating_add(tools);
        draft.usage.cache_read = cached;
    }
    if let Some(answer) = count("candidatesTokenCount") {
        draft.usage.output = answer.saturating_add(count("thoughtsTokenCount").unwrap_or(0));
    }
}
