//! A request of the Messages wire.

use crate::endpoint::Endpoint;
use crate::wire::{base64, object, parameters};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Message, ToolResultMessage,
};
use cofferdam_agent::model::{Request, Thinking};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The version of the wire, a header of each request.
pub(crate) const VERSION: &str = "2023-06-01";

/// The wire wants a number. Every model in service takes this one.
const MAX_TOKENS_DEFAULT: u32 = 16_384;

/// The body of a request.
pub(crate) fn body(
    endpoint: &Endpoint,
    request: &Request,
    messages: &[Arc<Message>],
) -> Map<String, Value> {
    let mut max_tokens = endpoint.max_output_tokens.unwrap_or(MAX_TOKENS_DEFAULT);
    let thinking = thinking(&endpoint.model, request.thinking);
    if let Some(budget) = thinking.get("thinking").and_then(|t| t["budget_tokens"].as_u64()) {
        // The budget counts towards the limit; the limit is meant for the answer.
        max_tokens = max_tokens.saturating_add(u32::try_from(budget).unwrap_or(u32::MAX));
    }
    let mut body = object(json!({
        "model": endpoint.model,
        "max_tokens": max_tokens,
        "messages": conversation(messages),
        "stream": true,
    }));
    if !request.system_prompt.is_empty() {
        body.insert("system".into(), (*request.system_prompt).into());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": parameters(tool),
            })
        });
        body.insert("tools".into(), tools.collect());
    }
    if endpoint.base_url.starts_with("https://api.anthropic.com") {
        // Other servers of this wire may not know the field.
        body.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
    body.extend(thinking);
    body
}

/// Roles must alternate, so what one role says in a row is one message: the results of a turn, and
/// the user's next words behind them.
fn conversation(messages: &[Arc<Message>]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match &**message {
            Message::User(user) => ("user", contents(&user.content)),
            Message::ToolResult(result) => ("user", vec![tool_result(result)]),
            Message::Assistant(answer) => ("assistant", answer_blocks(answer)),
            Message::Custom(_) => continue,
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

fn answer_blocks(answer: &AssistantMessage) -> Vec<Value> {
    let block = |block: &AssistantBlock| match block {
        AssistantBlock::Text(block) => Some(json!({"type": "text", "text": block.text})),
        AssistantBlock::Thinking(block) => {
            // Reasoning without its signature is refused.
            let signature = block.signature.as_deref()?;
            Some(match block.redacted {
                true => json!({"type": "redacted_thinking", "data": signature}),
                false => json!({
                    "type": "thinking",
                    "thinking": block.thinking,
                    "signature": signature,
                }),
            })
        }
        AssistantBlock::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": *call.arguments,
        })),
    };
    answer.content.iter().filter_map(block).collect()
}

fn tool_result(result: &ToolResultMessage) -> Value {
    let mut block = object(json!({
        "type": "tool_result",
        "tool_use_id": result.tool_call_id,
        "content": contents(&result.content),
    }));
    if result.is_error {
        block.insert("is_error".into(), true.into());
    }
    Value::Object(block)
}

/// Empty texts are refused.
fn contents(content: &[Content]) -> Vec<Value> {
    let block = |block: &Content| match block {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(json!({"type": "text", "text": text})),
        Content::Image(image) => Some(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": base64(image)},
        })),
    };
    content.iter().filter_map(block).collect()
}

/// How much to think. Models from 4.6 on decide within an effort, and the newest take nothing else;
/// older ones, and other makers' models behind this wire, take a number of tokens.
fn thinking(model: &str, thinking: Thinking) -> Map<String, Value> {
    let (effort, budget) = match thinking {
        Thinking::Off => return Map::new(),
        Thinking::Minimal => ("low", 1_024),
        Thinking::Low => ("low", 2_048),
        Thinking::Medium => ("medium", 8_192),
        Thinking::High => ("high", 16_384),
    };
    object(match adaptive(model) {
        true => json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}),
        false => json!({"thinking": {"type": "enabled", "budget_tokens": budget}}),
    })
}

/// Whether a Claude model is of version 4.6 or later: `claude-opus-4-6`, `claude-sonnet-5`. Dates
/// behind the version (`claude-sonnet-4-20250514`) are no part of it.
fn adaptive(model: &str) -> bool {
    let Some((_, name)) = model.rsplit_once("claude-") else { return false };
    let version = name.split(['-', '.', '@']).filter_map(|part| part.parse::<u32>().ok());
    let mut version = version.take_while(|part| *part < 1_000);
    (version.next().unwrap_or(0), version.next().unwrap_or(0)) >= (4, 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_of_thinking_follows_the_models_version() {
        for (model, want) in [
            ("claude-opus-4-8", true),
            ("claude-sonnet-5", true),
            ("claude-sonnet-4-6-20260101", true),
            ("us.anthropic.claude-opus-4-7-v1", true),
            ("claude-sonnet-4-20250514", false),
            ("claude-opus-4-5-20251101", false),
            ("claude-3-7-sonnet-20250219", false),
            ("kimi-k2", false),
        ] {
            assert_eq!(adaptive(model), want, "{model}");
        }
    }
}
