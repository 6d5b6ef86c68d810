//! Messages and events as JSON: the one place where values of the loop become the field names that
//! scripts, session files and recorded traces know. [`read`] is the way back.

pub mod read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_agent::event::{CallEnd, CallEvent, Event, HookAction, HookRecord};
use cofferdam_agent::hook::Decision;
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, Content, Message, StopReason, ToolCall, Usage,
};
use cofferdam_agent::model::{Retry, Step};
use cofferdam_agent::tool::ToolResult;
use serde_json::{Map, Value, json};

/// One event, with whole messages and texts.
pub fn event(event: &Event<'_>) -> Value {
    match event {
        Event::AgentStart => json!({"type": "agent_start"}),
        Event::TurnStart => json!({"type": "turn_start"}),
        Event::ModelRetry { retry } => {
            let mut fields = object(json!({"type": "model_retry"}));
            fields.extend(self::retry(retry));
            Value::Object(fields)
        }
        Event::MessageStart { message } => {
            json!({"type": "message_start", "message": self::message(message)})
        }
        Event::MessageUpdate { step, message } => update(step, message),
        Event::MessageEnd { message } => {
            json!({"type": "message_end", "message": self::message(message)})
        }
        Event::ToolExecutionStart { call } => of_call("tool_execution_start", call, []),
        Event::ToolExecutionUpdate { call, partial } => {
            of_call("tool_execution_update", call, [("partial_result", tool_result(partial))])
        }
        Event::ToolExecutionEnd { call, end } => execution_end(call, end),
        Event::TurnEnd { message, tool_results } => json!({
            "type": "turn_end",
            "message": self::message(message),
            "tool_results": tool_results.iter().map(|m| self::message(m)).collect::<Vec<_>>(),
        }),
        Event::AgentEnd { messages, .. } => json!({
            "type": "agent_end",
            "messages": messages.iter().map(|m| message(m)).collect::<Vec<_>>(),
        }),
    }
}

/// One message of a transcript.
pub fn message(message: &Message) -> Value {
    match message {
        Message::User(user) => json!({"role": "user", "content": contents(&user.content)}),
        Message::Assistant(assistant) => self::assistant(assistant),
        Message::ToolResult(result) => {
            let mut fields = object(json!({
                "role": "tool_result",
                "tool_call_id": result.tool_call_id,
                "tool_name": result.tool_name,
                "content": contents(&result.content),
            }));
            put(&mut fields, "details", result.details.clone());
            fields.insert("is_error".into(), result.is_error.into());
            Value::Object(fields)
        }
        Message::Custom(custom) => json!({"role": custom.role, "content": custom.content}),
    }
}

/// An answer, finished or not.
pub fn assistant(message: &AssistantMessage) -> Value {
    let mut fields = object(json!({
        "role": "assistant",
        "content": message.content.iter().map(block).collect::<Vec<_>>(),
        "stop_reason": message.stop_reason.as_str(),
    }));
    put(&mut fields, "raw_stop_reason", message.raw_stop_reason.clone());
    put(&mut fields, "error_message", message.error_message.clone());
    if message.stop_reason != StopReason::Pending {
        fields.insert("provider".into(), message.provider.clone().into());
        fields.insert("model".into(), message.model.clone().into());
        fields.insert("usage".into(), usage(&message.usage));
    }
    Value::Object(fields)
}

/// What a tool answered. Fields that it left out are left out.
pub fn tool_result(result: &ToolResult) -> Value {
    let mut fields = Map::new();
    fields.insert("content".into(), contents(&result.content));
    put(&mut fields, "details", result.details.clone());
    put(&mut fields, "is_error", result.is_error);
    put(&mut fields, "terminate", result.terminate);
    Value::Object(fields)
}

/// A tool-call block.
pub fn tool_call(call: &ToolCall) -> Value {
    let mut fields = object(json!({
        "type": "tool_call",
        "id": call.id,
        "name": call.name,
        "arguments": *call.arguments,
    }));
    if let Some(malformed) = &call.malformed {
        fields.insert("arguments_text".into(), malformed.text.clone().into());
        fields.insert("arguments_error".into(), malformed.problem.clone().into());
    }
    put(&mut fields, "thought_signature", call.signature.clone());
    Value::Object(fields)
}

/// Blocks of a user message or a tool result.
pub fn contents(blocks: &[Content]) -> Value {
    let one = |block: &Content| match block {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image(image) => json!({
            "type": "image",
            "data": BASE64.encode(&image.data),
            "mimeType": image.media_type,
        }),
    };
    blocks.iter().map(one).collect()
}

/// What a hook did to a call.
fn hook_record(record: &HookRecord) -> Value {
    let mut fields = object(json!({"hook": record.hook}));
    let action = match &record.action {
        HookAction::Kept => "kept",
        HookAction::Rewrote { from, to } => {
            fields.insert("from".into(), json!(**from));
            fields.insert("to".into(), json!(**to));
            "rewrote"
        }
        HookAction::Blocked(refusal) => {
            fields.insert("reason".into(), refusal.reason.clone().into());
            put(&mut fields, "terminate", refusal.terminate);
            "blocked"
        }
        HookAction::Asked(decision) => {
            fields.insert("approved".into(), decision.is_approved().into());
            if let Decision::Unanswered { .. } = decision {
                fields.insert("answered".into(), false.into());
            }
            put(&mut fields, "reason", reason(decision));
            "asked"
        }
        HookAction::Amended(amendment) => {
            put(&mut fields, "content", amendment.content.as_deref().map(contents));
            put(&mut fields, "details", amendment.details.clone());
            put(&mut fields, "is_error", amendment.is_error);
            put(&mut fields, "terminate", amendment.terminate);
            "amended"
        }
        HookAction::Failed(problem) => {
            fields.insert("problem".into(), problem.clone().into());
            "failed"
        }
    };
    fields.insert("action".into(), action.into());
    put(&mut fields, "receipt", record.receipt.as_ref().map(|receipt| receipt.to_json()));
    Value::Object(fields)
}

/// Why a question got no yes, where that is known.
fn reason(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Approved => None,
        Decision::Declined { reason } => reason.clone(),
        Decision::Unanswered { why } => Some(why.clone()),
    }
}

fn execution_end(call: &CallEvent<'_>, end: &CallEnd) -> Value {
    let mut value = of_call("tool_execution_end", call, []);
    if let Value::Object(fields) = &mut value {
        // The recorded traces have the arguments in start and update events only.
        fields.shift_remove("args");
        fields.extend(call_end(end));
    }
    value
}

/// A request that is sent again, as fields.
pub fn retry(retry: &Retry) -> Map<String, Value> {
    object(json!({
        "retry": retry.retry,
        "retries_max": retry.retries_max,
        "wait_ms": milliseconds(retry.wait),
        "problem": retry.problem,
    }))
}

/// What a call came to, as fields: result, cost, and what the hooks did.
pub fn call_end(end: &CallEnd) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("result".into(), tool_result(&end.result));
    fields.insert("is_error".into(), end.is_error.into());
    put(&mut fields, "ended_by", end.ended_by.clone());
    fields.insert("duration_ms".into(), milliseconds(end.duration));
    put(&mut fields, "receipt", end.receipt.as_ref().map(|receipt| receipt.to_json()));
    if !end.hooks.is_empty() {
        fields.insert("hooks".into(), end.hooks.iter().map(hook_record).collect());
    }
    fields
}

fn of_call<const N: usize>(kind: &str, call: &CallEvent<'_>, more: [(&str, Value); N]) -> Value {
    let mut fields = object(json!({
        "type": kind,
        "tool_call_id": call.id,
        "tool_name": call.name,
        "args": arguments(call.arguments),
    }));
    fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
    Value::Object(fields)
}

fn arguments(arguments: &Arguments) -> Value {
    Value::Object((**arguments).clone())
}

fn update(step: &Step, message: &AssistantMessage) -> Value {
    let mut fields = self::step(step);
    fields.insert("message".into(), assistant(message));
    Value::Object(fields)
}

/// The event of one step of an answer, without the answer so far.
pub fn step(step: &Step) -> Map<String, Value> {
    let (kind, index, more) = match step {
        Step::Retry(_) => ("retry", None, None),
        Step::Start => ("start", None, None),
        Step::TextStart { index } => ("text_start", Some(index), None),
        Step::TextDelta { index, delta } => {
            ("text_delta", Some(index), Some(("delta", delta.clone().into())))
        }
        Step::TextEnd { index, text } => {
            ("text_end", Some(index), Some(("content", text.clone().into())))
        }
        Step::ThinkingStart { index } => ("thinking_start", Some(index), None),
        Step::ThinkingDelta { index, delta } => {
            ("thinking_delta", Some(index), Some(("delta", delta.clone().into())))
        }
        Step::ThinkingEnd { index, thinking } => {
            ("thinking_end", Some(index), Some(("content", thinking.clone().into())))
        }
        Step::ToolCallStart { index, .. } => ("tool_call_start", Some(index), None),
        Step::ToolCallDelta { index, delta } => {
            ("tool_call_delta", Some(index), Some(("delta", delta.clone().into())))
        }
        Step::ToolCallEnd { index, call } => {
            ("tool_call_end", Some(index), Some(("tool_call", tool_call(call))))
        }
        Step::Done(_) => ("done", None, None),
    };
    let mut fields = object(json!({"type": "message_update", "update": kind}));
    put(&mut fields, "content_index", index.copied());
    fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
    fields
}

fn block(block: &AssistantBlock) -> Value {
    match block {
        AssistantBlock::Text(text) => {
            let mut fields = object(json!({"type": "text", "text": text.text}));
            put(&mut fields, "signature", text.signature.clone());
            Value::Object(fields)
        }
        AssistantBlock::Thinking(thinking) => {
            let mut fields = object(json!({"type": "thinking", "thinking": thinking.thinking}));
            put(&mut fields, "redacted", thinking.redacted.then_some(true));
            put(&mut fields, "signature", thinking.signature.clone());
            put(&mut fields, "id", thinking.id.clone());
            Value::Object(fields)
        }
        AssistantBlock::ToolCall(call) => tool_call(call),
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
    })
}

/// Milliseconds with microseconds behind the point.
fn milliseconds(duration: std::time::Duration) -> Value {
    (duration.as_micros() as f64 / 1000.0).into()
}

fn put(fields: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(key.into(), value.into());
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
