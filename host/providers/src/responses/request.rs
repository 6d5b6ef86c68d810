//! A request of the Responses wire. Nothing is kept at the provider: each request holds the whole
//! conversation.

use crate::endpoint::Endpoint;
use crate::wire::{data_url, object, parameters};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Message, ThinkingBlock, ToolResultMessage,
};
use cofferdam_agent::model::{Request, Thinking};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The body of a request.
pub(crate) fn body(
    endpoint: &Endpoint,
    request: &Request,
    messages: &[Arc<Message>],
) -> Map<String, Value> {
    let mut input = Vec::new();
    messages.iter().for_each(|message| add(message, &mut input));
    let mut body = object(json!({
        "model": endpoint.model,
        "input": input,
        "stream": true,
        "store": false,
    }));
    if !request.system_prompt.is_empty() {
        body.insert("instructions".into(), (*request.system_prompt).into());
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters(tool),
                // The default here is strict, which takes a subset of JSON Schema only.
                "strict": false,
            })
        });
        body.insert("tools".into(), tools.collect());
    }
    if let Some(tokens) = endpoint.max_output_tokens {
        body.insert("max_output_tokens".into(), tokens.into());
    }
    let effort = match request.thinking {
        Thinking::Off => return body,
        Thinking::Minimal => "minimal",
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    };
    body.insert("reasoning".into(), json!({"effort": effort, "summary": "auto"}));
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    body
}

fn add(message: &Message, input: &mut Vec<Value>) {
    match message {
        Message::User(user) => {
            input.push(json!({"role": "user", "content": contents(&user.content)}));
        }
        Message::ToolResult(result) => input.push(json!({
            "type": "function_call_output",
            "call_id": result.tool_call_id,
            "output": output(result),
        })),
        Message::Assistant(answer) => add_answer(answer, input),
        Message::Custom(_) => {}
    }
}

/// Reasoning is refused where nothing follows that it led to.
fn add_answer(answer: &AssistantMessage, input: &mut Vec<Value>) {
    let only_reasoning =
        answer.content.iter().all(|block| matches!(block, AssistantBlock::Thinking(_)));
    if only_reasoning {
        return;
    }
    input.extend(answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(block) => Some(json!({"role": "assistant", "content": block.text})),
        AssistantBlock::Thinking(block) => reasoning(block),
        AssistantBlock::ToolCall(call) => Some(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": Value::Object((*call.arguments).clone()).to_string(),
        })),
    }));
}

/// Only what the provider can take up again: its own encrypted reasoning.
fn reasoning(block: &ThinkingBlock) -> Option<Value> {
    let (id, encrypted) = (block.id.as_ref()?, block.signature.as_ref()?);
    let summary: &[&str] = if block.thinking.is_empty() { &[] } else { &[&block.thinking] };
    let part = |text: &&str| json!({"type": "summary_text", "text": text});
    Some(json!({
        "type": "reasoning",
        "id": id,
        "summary": summary.iter().map(part).collect::<Vec<_>>(),
        "encrypted_content": encrypted,
    }))
}

fn output(result: &ToolResultMessage) -> Value {
    if result.content.iter().any(|block| matches!(block, Content::Image(_))) {
        return contents(&result.content);
    }
    let texts = result.content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.is_empty() { "(no output)".into() } else { text.into() }
}

fn contents(content: &[Content]) -> Value {
    let part = |block: &Content| match block {
        Content::Text(text) => json!({"type": "input_text", "text": text}),
        Content::Image(image) => {
            json!({"type": "input_image", "image_url": data_url(image), "detail": "auto"})
        }
    };
    content.iter().map(part).collect()
}
