//! Values of the loop as records of a trace.

use super::world::{Book, Extras};
use cofferdam_agent::event::{CallEnd, CallEvent, Event, HookAction, ended_by};
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Content, Message, ToolCall};
use cofferdam_agent::model::Step;
use cofferdam_agent::tool::ToolResult;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// How the call of a guest that panics ends.
const TRAP: &str = "trap";

/// Texts that the host wrote, by call and text, with the code that stands for them in a trace. They
/// are known by what ended the call, not by their wording.
#[derive(Default)]
pub(super) struct HostTexts(HashMap<(String, String), Value>);

impl HostTexts {
    /// Learns from the end of a call.
    pub(super) fn learn(&mut self, call: &CallEvent<'_>, end: &CallEnd, malformed: Option<&str>) {
        let code = match end.ended_by.as_deref() {
            Some(ended_by::UNKNOWN_TOOL) => "unknown_tool",
            Some(ended_by::ABORTED) => "aborted",
            Some(ended_by::TRUNCATED) => "truncated",
            Some(ended_by::MALFORMED_ARGUMENTS) => "malformed_arguments",
            Some(ended_by::INVALID_ARGUMENTS) => "validation_failed",
            Some(ended_by::PANIC | ended_by::REFUSED_TOOL | TRAP) => "host_exception",
            Some(ended_by::BLOCKED) if blocked_without_reason(end) => "blocked",
            _ => return,
        };
        self.put(call.id, &end.result, code, malformed);
    }

    /// Learns from what an after-hook is shown.
    pub(super) fn learn_failure(
        &mut self,
        call: &str,
        result: &ToolResult,
        ended_by: Option<&str>,
    ) {
        if matches!(ended_by, Some(ended_by::PANIC | TRAP)) {
            self.put(call, result, "host_exception", None);
        }
    }

    fn put(&mut self, call: &str, result: &ToolResult, code: &str, malformed: Option<&str>) {
        let Some(Content::Text(text)) = result.content.first() else { return };
        let mut block = json!({"type": "text", "host": code});
        if let Some(received) = malformed.filter(|_| code == "malformed_arguments") {
            block["received_text"] = received.into();
        }
        self.0.entry((call.to_owned(), text.clone())).or_insert(block);
    }

    fn block(&self, call: Option<&str>, text: &str) -> Value {
        let known = call.and_then(|call| self.0.get(&(call.to_owned(), text.to_owned())));
        known.cloned().unwrap_or_else(|| json!({"type": "text", "text": text}))
    }
}

fn blocked_without_reason(end: &CallEnd) -> bool {
    end.hooks.iter().any(|record| match &record.action {
        HookAction::Blocked(refusal) => refusal.reason.is_empty(),
        _ => false,
    })
}

impl Book {
    pub(super) fn event(&self, event: &Event<'_>) -> Value {
        let mut record = json!({"rec": "event", "type": cofferdam_agent::testing::name(event)});
        let fields = match event {
            Event::AgentStart | Event::TurnStart => json!({}),
            // No scripted model has anything to try again.
            Event::ModelRetry { retry } => json!({"problem": retry.problem}),
            Event::MessageStart { message } => json!({"message": self.message(message)}),
            Event::MessageEnd { message } => json!({"message": self.message(message)}),
            Event::MessageUpdate { step, message } => update(step, message),
            Event::ToolExecutionStart { call } => {
                json!({"tool_call_id": call.id, "tool_name": call.name, "args": **call.arguments})
            }
            Event::ToolExecutionUpdate { call, partial } => json!({
                "tool_call_id": call.id,
                "tool_name": call.name,
                "args": **call.arguments,
                "partial_result": self.result(call.id, partial, None),
            }),
            Event::ToolExecutionEnd { call, end } => json!({
                "tool_call_id": call.id,
                "tool_name": call.name,
                "result": self.final_result(call.id, end),
                "is_error": end.is_error,
            }),
            Event::TurnEnd { message, tool_results } => json!({
                "message": digest(message),
                "tool_results": tool_results.iter().map(|m| result_id(m)).collect::<Vec<_>>(),
            }),
            Event::AgentEnd { messages, .. } => {
                json!({"messages": messages.iter().map(|m| digest(m)).collect::<Vec<_>>()})
            }
        };
        extend(&mut record, fields);
        record
    }

    pub(super) fn message(&self, message: &Message) -> Value {
        match message {
            Message::User(user) => {
                json!({"role": "user", "content": self.contents(None, &user.content)})
            }
            Message::Assistant(answer) => assistant(answer),
            Message::ToolResult(result) => {
                let id = result.tool_call_id.as_str();
                let mut record = json!({
                    "role": "tool_result",
                    "tool_call_id": id,
                    "tool_name": result.tool_name,
                    "content": self.contents(Some(id), &result.content),
                    "is_error": result.is_error,
                });
                if let Some(details) = &result.details {
                    record["details"] = details.clone();
                }
                record
            }
            Message::Custom(custom) => json!({"role": custom.role, "content": custom.content}),
        }
    }

    pub(super) fn messages<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) -> Value {
        messages.into_iter().map(|message| self.message(message)).collect()
    }

    /// A result with what the loop has no field for, while that still belongs to it.
    pub(super) fn result(&self, call: &str, result: &ToolResult, extras: Option<&Extras>) -> Value {
        let mut record = Map::new();
        let left_out = extras.is_some_and(|extras| extras.content_left_out);
        if !(left_out && result.content.is_empty()) {
            record.insert("content".into(), self.contents(Some(call), &result.content));
        }
        let fields = [
            ("details", result.details.clone()),
            ("is_error", result.is_error.map(Value::from)),
            ("terminate", result.terminate.map(Value::from)),
            ("structured_content", extras.and_then(|extras| extras.structured_content.clone())),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                record.insert(name.into(), value);
            }
        }
        Value::Object(record)
    }

    /// Structured content that was not replaced along with the content no longer belongs to it.
    fn final_result(&self, call: &str, end: &CallEnd) -> Value {
        let mut extras = self.extras.get(call).cloned().unwrap_or_default();
        for record in &end.hooks {
            match &record.action {
                HookAction::Amended(amendment) if amendment.content.is_some() => {
                    extras = Extras::default();
                }
                HookAction::Failed(_) => extras = Extras::default(),
                _ => {}
            }
        }
        self.result(call, &end.result, Some(&extras))
    }

    fn contents(&self, call: Option<&str>, content: &[Content]) -> Value {
        let block = |block: &Content| match block {
            Content::Text(text) => self.host_texts.block(call, text),
            Content::Image(image) => json!({
                "type": "image",
                "data": String::from_utf8_lossy(&image.data),
                "mimeType": image.media_type,
            }),
        };
        content.iter().map(block).collect()
    }
}

fn assistant(answer: &AssistantMessage) -> Value {
    let mut record = json!({
        "role": "assistant",
        "content": answer.content.iter().map(block).collect::<Vec<_>>(),
        "stop_reason": answer.stop_reason.as_str(),
    });
    if let Some(error) = &answer.error_message {
        record["error_message"] = error.clone().into();
    }
    record
}

fn block(block: &AssistantBlock) -> Value {
    match block {
        AssistantBlock::Text(block) => json!({"type": "text", "text": block.text}),
        AssistantBlock::Thinking(block) => json!({"type": "thinking", "thinking": block.thinking}),
        AssistantBlock::ToolCall(call) => tool_call(call),
    }
}

fn tool_call(call: &ToolCall) -> Value {
    let mut record = json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": *call.arguments});
    if call.malformed.is_some() {
        record["arguments_error"] = true.into();
    }
    record
}

fn update(step: &Step, message: &AssistantMessage) -> Value {
    let mut record = match step {
        Step::Start | Step::Retry(_) => json!({"update": "start"}),
        Step::Done(_) => json!({"update": "done"}),
        Step::TextStart { index } => json!({"update": "text_start", "content_index": index}),
        Step::TextDelta { index, delta } => {
            json!({"update": "text_delta", "content_index": index, "delta": delta})
        }
        Step::TextEnd { index, text } => {
            json!({"update": "text_end", "content_index": index, "content": text})
        }
        Step::ThinkingStart { index } => {
            json!({"update": "thinking_start", "content_index": index})
        }
        Step::ThinkingDelta { index, delta } => {
            json!({"update": "thinking_delta", "content_index": index, "delta": delta})
        }
        Step::ThinkingEnd { index, thinking } => {
            json!({"update": "thinking_end", "content_index": index, "content": thinking})
        }
        Step::ToolCallStart { index, .. } => {
            json!({"update": "tool_call_start", "content_index": index})
        }
        Step::ToolCallDelta { index, delta } => {
            json!({"update": "tool_call_delta", "content_index": index, "delta": delta})
        }
        Step::ToolCallEnd { index, call } => {
            json!({"update": "tool_call_end", "content_index": index, "tool_call": tool_call(call)})
        }
    };
    record["message"] = assistant(message);
    record
}

pub(super) fn update_name(step: &Step) -> &'static str {
    match step {
        Step::Start | Step::Retry(_) => "start",
        Step::Done(_) => "done",
        Step::TextStart { .. } => "text_start",
        Step::TextDelta { .. } => "text_delta",
        Step::TextEnd { .. } => "text_end",
        Step::ThinkingStart { .. } => "thinking_start",
        Step::ThinkingDelta { .. } => "thinking_delta",
        Step::ThinkingEnd { .. } => "thinking_end",
        Step::ToolCallStart { .. } => "tool_call_start",
        Step::ToolCallDelta { .. } => "tool_call_delta",
        Step::ToolCallEnd { .. } => "tool_call_end",
    }
}

pub(super) fn digest(message: &Message) -> String {
    match message {
        Message::User(_) => "user".into(),
        Message::Assistant(answer) => format!("assistant:{}", answer.stop_reason.as_str()),
        Message::ToolResult(result) => format!("tool_result:{}", result.tool_call_id),
        Message::Custom(custom) => custom.role.clone(),
    }
}

fn result_id(message: &Message) -> Value {
    match message {
        Message::ToolResult(result) => result.tool_call_id.clone().into(),
        _ => Value::Null,
    }
}

fn extend(record: &mut Value, fields: Value) {
    if let (Value::Object(record), Value::Object(fields)) = (record, fields) {
        record.extend(fields);
    }
}
