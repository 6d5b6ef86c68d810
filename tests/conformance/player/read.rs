//! From the JSON of a scenario to values of the loop.

use super::rules::list;
use super::world::Extras;
use cofferdam_agent::args;
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, CustomMessage, Image, Message, StopReason,
    TextBlock, ThinkingBlock, ToolCall, ToolResultMessage, UserMessage,
};
use cofferdam_agent::tool::ToolResult;
use serde_json::{Value, json};
use std::sync::Arc;

/// A message of a transcript or prompt; `None` for a system message, which is no message here.
pub(super) fn message(value: &Value) -> Option<Message> {
    let message = match value["role"].as_str().unwrap_or("user") {
        "system" => return None,
        "user" => Message::User(UserMessage { content: user_content(value) }),
        "assistant" => Message::Assistant(assistant(value)),
        "tool_result" => Message::ToolResult(ToolResultMessage {
            tool_call_id: text_of(&value["tool_call_id"]),
            tool_name: text_of(&value["tool_name"]),
            content: contents(&value["content"]),
            details: value.get("details").filter(|details| !details.is_null()).cloned(),
            is_error: value["is_error"].as_bool().unwrap_or(false),
        }),
        role => {
            Message::Custom(CustomMessage { role: role.into(), content: custom_content(value) })
        }
    };
    Some(message)
}

pub(super) fn messages(value: &Value) -> Vec<Message> {
    list(value).iter().filter_map(message).collect()
}

fn user_content(value: &Value) -> Vec<Content> {
    match value.get("text").or(value.get("content")) {
        Some(Value::String(text)) => vec![Content::Text(text.clone())],
        Some(blocks) => contents(blocks),
        None => Vec::new(),
    }
}

fn custom_content(value: &Value) -> Value {
    match (value.get("text"), value.get("content")) {
        (Some(text), _) => json!([{"type": "text", "text": text}]),
        (None, Some(content)) => content.clone(),
        (None, None) => Value::Null,
    }
}

/// The text blocks of a message.
pub(super) fn texts_of_message(message: &Message) -> Vec<String> {
    match message {
        Message::User(UserMessage { content }) => text_blocks(content),
        Message::ToolResult(result) => text_blocks(&result.content),
        Message::Assistant(answer) => {
            let text = |block: &AssistantBlock| match block {
                AssistantBlock::Text(block) => Some(block.text.clone()),
                _ => None,
            };
            answer.content.iter().filter_map(text).collect()
        }
        Message::Custom(custom) => match &custom.content {
            Value::String(text) => vec![text.clone()],
            blocks => {
                list(blocks).iter().filter_map(|b| b["text"].as_str()).map(str::to_owned).collect()
            }
        },
    }
}

fn text_blocks(content: &[Content]) -> Vec<String> {
    let text = |block: &Content| match block {
        Content::Text(text) => Some(text.clone()),
        Content::Image(_) => None,
    };
    content.iter().filter_map(text).collect()
}

pub(super) fn assistant(value: &Value) -> AssistantMessage {
    AssistantMessage {
        content: list(&value["content"]).iter().map(block).collect(),
        stop_reason: stop_reason(value["stop_reason"].as_str().unwrap_or("stop")),
        error_message: value["error_message"].as_str().map(str::to_owned),
        ..AssistantMessage::pending()
    }
}

fn block(value: &Value) -> AssistantBlock {
    match value["type"].as_str() {
        Some("thinking") => AssistantBlock::Thinking(ThinkingBlock {
            thinking: text_of(&value["thinking"]),
            ..ThinkingBlock::default()
        }),
        Some("tool_call") => AssistantBlock::ToolCall(tool_call(value)),
        _ => AssistantBlock::Text(TextBlock { text: text_of(&value["text"]), signature: None }),
    }
}

pub(super) fn tool_call(value: &Value) -> ToolCall {
    let (id, name) = (text_of(&value["id"]), text_of(&value["name"]));
    let text = argument_text(value);
    let mut call = ToolCall::from_text(id, name, &text);
    if value["arguments_error"] == true && call.malformed.is_none() {
        call.malformed = args::parse("{").err();
    }
    call
}

/// The text of a call's arguments as a model would have sent it.
pub(super) fn argument_text(value: &Value) -> String {
    match (&value["arguments_text"], &value["arguments"]) {
        (Value::String(text), _) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, arguments) => arguments.to_string(),
    }
}

fn stop_reason(name: &str) -> StopReason {
    StopReason::from_word(name).unwrap_or(StopReason::Stop)
}

/// A result, and what of it the loop has no field for.
pub(super) fn tool_result(value: &Value) -> (ToolResult, Extras) {
    let result = ToolResult {
        content: contents(&value["content"]),
        details: value.get("details").filter(|details| !details.is_null()).cloned(),
        is_error: value["is_error"].as_bool(),
        terminate: value["terminate"].as_bool(),
    };
    let extras = Extras {
        structured_content: value.get("structured_content").filter(|s| !s.is_null()).cloned(),
        content_left_out: value["content"].is_null(),
        is_error: value["is_error"].as_bool(),
    };
    (result, extras)
}

pub(super) fn contents(value: &Value) -> Vec<Content> {
    list(value).iter().map(content).collect()
}

/// The scenario's base64 text stands in for an image's bytes: nothing looks into them.
fn content(value: &Value) -> Content {
    if value["type"] == "image" {
        let data = value["data"].as_str().unwrap_or_default().as_bytes();
        let media_type = text_of(&value["mimeType"]);
        return Content::Image(Image { media_type, data: Arc::from(data) });
    }
    Content::Text(text_of(value.get("text").unwrap_or(value)))
}

pub(super) fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
