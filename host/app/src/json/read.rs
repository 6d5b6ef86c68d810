//! The way back: values of the loop from the JSON that [`super`] writes. Fields that are not known
//! are skipped, so that a later version may add some; what is missing or of the wrong kind is named.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_agent::event::{CallEnd, HookAction, HookRecord};
use cofferdam_agent::hook::{Amendment, Decision, Refusal};
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, Content, CustomMessage, Image, MalformedArguments,
    Message, StopReason, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use cofferdam_agent::model::Retry;
use cofferdam_agent::receipt::{Receipt, SharedReceipt};
use cofferdam_agent::tool::ToolResult;
use serde_json::{Map, Value};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// JSON that is not what it should be, as a clause: "a tool call has no text `id`".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// A receipt that was read back: the loop and its consumers never look into one.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredReceipt(pub Value);

impl Receipt for StoredReceipt {
    fn to_json(&self) -> Value {
        self.0.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One message of a transcript.
pub fn message(value: Value) -> Result<Message, Unreadable> {
    let mut fields = Fields::of(value, "a message")?;
    let role = fields.text("role")?;
    Ok(match role.as_str() {
        "user" => Message::User(UserMessage { content: contents(fields.any("content")?)? }),
        "assistant" => Message::Assistant(assistant(fields)?),
        "tool_result" => Message::ToolResult(ToolResultMessage {
            tool_call_id: fields.text("tool_call_id")?,
            tool_name: fields.text("tool_name")?,
            content: contents(fields.any("content")?)?,
            details: fields.any_or_none("details"),
            is_error: fields.flag_or_none("is_error")?.unwrap_or(false),
        }),
        _ => Message::Custom(CustomMessage { role, content: fields.any("content")? }),
    })
}

/// What a tool answered.
pub fn tool_result(value: Value) -> Result<ToolResult, Unreadable> {
    let mut fields = Fields::of(value, "a result")?;
    Ok(ToolResult {
        content: contents(fields.any("content")?)?,
        details: fields.any_or_none("details"),
        is_error: fields.flag_or_none("is_error")?,
        terminate: fields.flag_or_none("terminate")?,
    })
}

/// What a call came to, from the fields of [`super::call_end`].
pub fn call_end(fields: Map<String, Value>) -> Result<CallEnd, Unreadable> {
    let mut fields = Fields { map: fields, what: "the end of a call" };
    let hooks = match fields.any_or_none("hooks") {
        Some(hooks) => list(hooks, "hooks")?.map(hook_record).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Ok(CallEnd {
        result: tool_result(fields.any("result")?)?,
        is_error: fields.flag("is_error")?,
        ended_by: fields.text_or_none("ended_by")?,
        duration: milliseconds(&fields.any("duration_ms")?)?,
        receipt: fields.receipt(),
        hooks,
    })
}

/// The arguments of a call.
pub fn arguments(value: Value) -> Result<Arguments, Unreadable> {
    Ok(Arc::new(Fields::of(value, "the arguments of a call")?.map))
}

fn assistant(mut fields: Fields) -> Result<AssistantMessage, Unreadable> {
    let word = fields.text("stop_reason")?;
    let stop_reason = StopReason::from_word(&word)
        .ok_or_else(|| Unreadable(format!("`{word}` is no stop reason")))?;
    Ok(AssistantMessage {
        content: list(fields.any("content")?, "content")?.map(block).collect::<Result<_, _>>()?,
        stop_reason,
        raw_stop_reason: fields.text_or_none("raw_stop_reason")?,
        error_message: fields.text_or_none("error_message")?,
        provider: fields.text_or_none("provider")?.unwrap_or_default(),
        model: fields.text_or_none("model")?.unwrap_or_default(),
        usage: match fields.any_or_none("usage") {
            Some(usage) => self::usage(&usage),
            None => Usage::default(),
        },
    })
}

fn block(value: Value) -> Result<AssistantBlock, Unreadable> {
    let mut fields = Fields::of(value, "a block of an answer")?;
    let kind = fields.text("type")?;
    Ok(match kind.as_str() {
        "text" => AssistantBlock::Text(TextBlock {
            text: fields.text("text")?,
            signature: fields.text_or_none("signature")?,
        }),
        "thinking" => AssistantBlock::Thinking(ThinkingBlock {
            thinking: fields.text("thinking")?,
            signature: fields.text_or_none("signature")?,
            redacted: fields.flag_or_none("redacted")?.unwrap_or(false),
            id: fields.text_or_none("id")?,
        }),
        "tool_call" => AssistantBlock::ToolCall(tool_call(fields)?),
        _ => return Err(Unreadable(format!("an answer has a block of the unknown type `{kind}`"))),
    })
}

fn tool_call(mut fields: Fields) -> Result<ToolCall, Unreadable> {
    fields.what = "a tool call";
    let malformed = match fields.text_or_none("arguments_text")? {
        Some(text) => Some(MalformedArguments { text, problem: fields.text("arguments_error")? }),
        None => None,
    };
    Ok(ToolCall {
        id: fields.text("id")?,
        name: fields.text("name")?,
        arguments: arguments(fields.any("arguments")?)?,
        malformed,
        signature: fields.text_or_none("thought_signature")?,
    })
}

fn contents(value: Value) -> Result<Vec<Content>, Unreadable> {
    list(value, "content")?.map(content).collect()
}

fn content(value: Value) -> Result<Content, Unreadable> {
    let mut fields = Fields::of(value, "a block of content")?;
    let kind = fields.text("type")?;
    match kind.as_str() {
        "text" => Ok(Content::Text(fields.text("text")?)),
        "image" => {
            let data = BASE64.decode(fields.text("data")?);
            let data = data.map_err(|problem| Unreadable(format!("an image: {problem}")))?;
            Ok(Content::Image(Image { media_type: fields.text("mimeType")?, data: data.into() }))
        }
        _ => Err(Unreadable(format!("content has a block of the unknown type `{kind}`"))),
    }
}

fn usage(value: &Value) -> Usage {
    let of = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input: of("input_tokens"),
        output: of("output_tokens"),
        cache_read: of("cache_read_tokens"),
        cache_write: of("cache_write_tokens"),
    }
}

fn hook_record(value: Value) -> Result<HookRecord, Unreadable> {
    let mut fields = Fields::of(value, "what a hook did")?;
    let action = fields.text("action")?;
    let action = match action.as_str() {
        "kept" => HookAction::Kept,
        "rewrote" => HookAction::Rewrote {
            from: arguments(fields.any("from")?)?,
            to: arguments(fields.any("to")?)?,
        },
        "blocked" => HookAction::Blocked(Refusal {
            reason: fields.text("reason")?,
            terminate: fields.flag_or_none("terminate")?,
        }),
        "asked" => HookAction::Asked(decision(&mut fields)?),
        "amended" => HookAction::Amended(Amendment {
            content: fields.any_or_none("content").map(contents).transpose()?,
            details: fields.any_or_none("details"),
            is_error: fields.flag_or_none("is_error")?,
            terminate: fields.flag_or_none("terminate")?,
        }),
        "failed" => HookAction::Failed(fields.text("problem")?),
        _ => return Err(Unreadable(format!("a hook did something unknown, `{action}`"))),
    };
    Ok(HookRecord { hook: fields.text("hook")?, action, receipt: fields.receipt() })
}

fn decision(fields: &mut Fields) -> Result<Decision, Unreadable> {
    let reason = fields.text_or_none("reason")?;
    Ok(match (fields.flag("approved")?, fields.flag_or_none("answered")?) {
        (true, _) => Decision::Approved,
        (false, Some(false)) => Decision::Unanswered { why: reason.unwrap_or_default() },
        (false, _) => Decision::Declined { reason },
    })
}

fn milliseconds(value: &Value) -> Result<Duration, Unreadable> {
    let us = (value.as_f64().unwrap_or(-1.0) * 1000.0).round();
    match (0.0..1e18).contains(&us) {
        true => Ok(Duration::from_micros(us as u64)),
        false => Err(Unreadable(format!("{value} is no number of milliseconds"))),
    }
}

/// A request that was sent again.
pub(crate) fn retry(fields: &mut Fields) -> Result<Retry, Unreadable> {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Retry {
        retry: small(fields.number("retry")?),
        retries_max: small(fields.number("retries_max")?),
        wait: milliseconds(&fields.any("wait_ms")?)?,
        problem: fields.text("problem")?,
    })
}

fn list(value: Value, key: &str) -> Result<impl Iterator<Item = Value> + use<>, Unreadable> {
    match value {
        Value::Array(items) => Ok(items.into_iter()),
        _ => Err(Unreadable(format!("`{key}` is no list"))),
    }
}

/// The fields of one object, taken out one by one.
pub(crate) struct Fields {
    map: Map<String, Value>,
    what: &'static str,
}

impl Fields {
    pub(crate) fn of(value: Value, what: &'static str) -> Result<Self, Unreadable> {
        match value {
            Value::Object(map) => Ok(Self { map, what }),
            _ => Err(Unreadable(format!("{what} is no JSON object"))),
        }
    }

    /// What is left.
    pub(crate) fn rest(self) -> Map<String, Value> {
        self.map
    }

    pub(crate) fn any_or_none(&mut self, key: &str) -> Option<Value> {
        self.map.get_mut(key).map(Value::take).filter(|value| !value.is_null())
    }

    pub(crate) fn any(&mut self, key: &str) -> Result<Value, Unreadable> {
        // `details: null` and no details are the same; what must be there is never null.
        self.any_or_none(key).ok_or_else(|| self.lacks("", key))
    }

    pub(crate) fn text(&mut self, key: &str) -> Result<String, Unreadable> {
        self.text_or_none(key)?.ok_or_else(|| self.lacks("text ", key))
    }

    pub(crate) fn text_or_none(&mut self, key: &str) -> Result<Option<String>, Unreadable> {
        match self.any_or_none(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.lacks("text ", key)),
        }
    }

    pub(crate) fn number(&mut self, key: &str) -> Result<u64, Unreadable> {
        let number = self.any_or_none(key).and_then(|value| value.as_u64());
        number.ok_or_else(|| self.lacks("number ", key))
    }

    fn flag(&mut self, key: &str) -> Result<bool, Unreadable> {
        self.flag_or_none(key)?.ok_or_else(|| self.lacks("true or false in ", key))
    }

    fn flag_or_none(&mut self, key: &str) -> Result<Option<bool>, Unreadable> {
        match self.any_or_none(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.lacks("true or false in ", key)),
        }
    }

    fn receipt(&mut self) -> Option<SharedReceipt> {
        let receipt = self.any_or_none("receipt")?;
        Some(Arc::new(StoredReceipt(receipt)))
    }

    fn lacks(&self, kind: &str, key: &str) -> Unreadable {
        Unreadable(format!("{} has no {kind}`{key}`", self.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Every kind of message and of block, as JSON, stays as it is on the way there and back.
    #[test]
    fn messages_survive_the_way_there_and_back() {
        for sent in [
            json!({"role": "user", "content": [
                {"type": "text", "text": "go"},
                {"type": "image", "data": "AQID", "mimeType": "image/png"},
            ]}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s", "redacted": true, "id": "i"},
                {"type": "text", "text": "so", "signature": "s"},
                {"type": "tool_call", "id": "c1", "name": "t", "arguments": {"b": 1, "a": [null]}},
                {"type": "tool_call", "id": "c2", "name": "t", "arguments": {},
                 "arguments_text": "{", "arguments_error": "cut", "thought_signature": "s"},
            ], "stop_reason": "tool_use", "raw_stop_reason": "tools", "error_message": "x",
               "provider": "p", "model": "m",
               "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3,
                         "cache_write_tokens": 4}}),
            json!({"role": "tool_result", "tool_call_id": "c1", "tool_name": "t", "content": [],
                   "details": {"n": 1.5}, "is_error": true}),
            json!({"role": "note", "content": {"any": "thing"}}),
        ] {
            let read = message(sent.clone()).unwrap();
            assert_eq!(super::super::message(&read), sent);
        }
    }

    #[test]
    fn ends_of_calls_survive_the_way_there_and_back() {
        let sent = json!({
            "result": {"content": [{"type": "text", "text": "x"}], "details": 1, "is_error": false,
                       "terminate": true},
            "is_error": true, "ended_by": "trap", "duration_ms": 1.234, "receipt": {"fuel": 12},
            "hooks": [
                {"hook": "a", "action": "kept", "receipt": {"fuel": 1}},
                {"hook": "a", "from": {"x": 1}, "to": {"x": 2}, "action": "rewrote"},
                {"hook": "a", "reason": "no", "terminate": false, "action": "blocked"},
                {"hook": "a", "approved": true, "action": "asked"},
                {"hook": "a", "approved": false, "reason": "why", "action": "asked"},
                {"hook": "a", "approved": false, "answered": false, "reason": "why",
                 "action": "asked"},
                {"hook": "a", "content": [], "details": 0, "is_error": false, "terminate": true,
                 "action": "amended"},
                {"hook": "a", "problem": "it fell", "action": "failed"},
            ],
        });
        let Value::Object(fields) = sent.clone() else { panic!("no object") };
        let read = call_end(fields).unwrap();
        assert_eq!(Value::Object(super::super::call_end(&read)), sent);
    }

    #[test]
    fn every_duration_in_microseconds_survives() {
        for us in (0..10_000).chain([1_234_567, 999_999_999, 86_400_000_001]) {
            let duration = Duration::from_micros(us);
            let there = super::super::milliseconds(duration);
            assert_eq!(milliseconds(&there).unwrap(), duration, "{us}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (sent, problem) in [
            (json!(1), "a message is no JSON object"),
            (json!({"role": "user"}), "a message has no `content`"),
            (json!({"role": "user", "content": [{"type": "sound"}]}), "unknown type `sound`"),
            (json!({"role": "assistant", "content": [], "stop_reason": "tired"}), "`tired`"),
            (
                json!({"role": "assistant", "content": [{"type": "tool_call"}],
                       "stop_reason": "stop"}),
                "a tool call has no text `id`",
            ),
        ] {
            let said = message(sent.clone()).unwrap_err().to_string();
            assert!(said.contains(problem), "{sent}: {said}");
        }
    }
}
