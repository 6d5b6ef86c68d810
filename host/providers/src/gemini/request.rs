//! A request of `streamGenerateContent`.

use super::generation_at_least;
use crate::endpoint::Endpoint;
use crate::ids::MADE_PREFIX;
use crate::wire::{base64, object, parameters};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Image, Message, ToolCall, ToolResultMessage,
};
use cofferdam_agent::model::{Request, Thinking};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The documented stand-in for the signature of a call that another model made: from the third
/// generation on, calls without one are refused.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// From this generation on a result may hold images.
const IMAGES_IN_RESULTS: u32 = 3;

/// The body of a request.
pub(crate) fn body(
    endpoint: &Endpoint,
    request: &Request,
    messages: &[Arc<Message>],
) -> Map<String, Value> {
    let newest = generation_at_least(&endpoint.model, 3);
    let mut body = object(json!({"contents": contents(messages, &endpoint.model)}));
    if !request.system_prompt.is_empty() {
        let parts = json!([{"text": *request.system_prompt}]);
        body.insert("systemInstruction".into(), json!({"parts": parts}));
    }
    if !request.tools.is_empty() {
        let tool = |tool: &Arc<cofferdam_agent::tool::Declaration>| {
            json!({
                "name": tool.name,
                "description": tool.description,
                // The other field, `parameters`, takes a dialect of its own.
                "parametersJsonSchema": parameters(tool),
            })
        };
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
    }
    let mut config = thinking(request.thinking, newest);
    if let Some(tokens) = endpoint.max_output_tokens {
        config.insert("maxOutputTokens".into(), tokens.into());
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    body
}

/// All results of a turn are one content: their number must be that of the calls.
fn contents(messages: &[Arc<Message>], model: &str) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for message in messages {
        if let Message::ToolResult(result) = &**message {
            results.extend(result_parts(result, model));
            continue;
        }
        push(&mut contents, "user", std::mem::take(&mut results));
        match &**message {
            Message::User(user) => push(&mut contents, "user", parts(&user.content)),
            Message::Assistant(answer) => push(&mut contents, "model", answer_parts(answer, model)),
            Message::ToolResult(_) | Message::Custom(_) => {}
        }
    }
    push(&mut contents, "user", results);
    contents
}

fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if !parts.is_empty() {
        contents.push(json!({"role": role, "parts": parts}));
    }
}

fn parts(content: &[Content]) -> Vec<Value> {
    let part = |block: &Content| match block {
        Content::Text(text) => json!({"text": text}),
        Content::Image(image) => image_part(image),
    };
    content.iter().map(part).collect()
}

fn answer_parts(answer: &AssistantMessage, model: &str) -> Vec<Value> {
    let mut first_call = true;
    let part = |block: &AssistantBlock| {
        let (mut part, signature) = match block {
            AssistantBlock::Text(block) => (json!({"text": block.text}), &block.signature),
            AssistantBlock::Thinking(block) => {
                (json!({"text": block.thinking, "thought": true}), &block.signature)
            }
            AssistantBlock::ToolCall(call) => (call_part(call), &call.signature),
        };
        let is_call = matches!(block, AssistantBlock::ToolCall(_));
        // The first of several calls of one answer carries the signature of all.
        let first = is_call && std::mem::replace(&mut first_call, false);
        let stand_in = first && generation_at_least(model, 3);
        if let Some(signature) = signature.as_deref().or(stand_in.then_some(NO_SIGNATURE)) {
            part["thoughtSignature"] = signature.into();
        }
        part
    };
    answer.content.iter().map(part).collect()
}

fn call_part(call: &ToolCall) -> Value {
    let mut fields = object(json!({"name": call.name, "args": *call.arguments}));
    put_id(&mut fields, &call.id);
    json!({"functionCall": fields})
}

/// Ids go back if they were given. Calls without one are told apart by their order.
fn put_id(fields: &mut Map<String, Value>, id: &str) {
    if !id.starts_with(MADE_PREFIX) {
        fields.insert("id".into(), id.into());
    }
}

fn result_parts(result: &ToolResultMessage, model: &str) -> Vec<Value> {
    let (mut text, mut images) = (Vec::new(), Vec::new());
    for block in &result.content {
        match block {
            Content::Text(block) => text.push(block.as_str()),
            Content::Image(image) => images.push(image_part(image)),
        }
    }
    let key = if result.is_error { "error" } else { "output" };
    let mut fields = object(json!({
        "name": result.tool_name,
        "response": {key: text.join("\n")},
    }));
    put_id(&mut fields, &result.tool_call_id);
    let inside = !images.is_empty() && generation_at_least(model, IMAGES_IN_RESULTS);
    if inside {
        fields.insert("parts".into(), std::mem::take(&mut images).into());
    }
    let mut parts = vec![json!({"functionResponse": fields})];
    parts.extend(images);
    parts
}

fn image_part(image: &Image) -> Value {
    json!({"inlineData": {"mimeType": image.media_type, "data": base64(image)}})
}

/// How much to think: a level from the third generation on, before it a number of tokens.
fn thinking(thinking: Thinking, newest: bool) -> Map<String, Value> {
    let (level, budget) = match thinking {
        Thinking::Off => return Map::new(),
        Thinking::Minimal => ("MINIMAL", 1_024),
        Thinking::Low => ("LOW", 2_048),
        Thinking::Medium => ("MEDIUM", 8_192),
        Thinking::High => ("HIGH", 16_384),
    };
    object(match newest {
        true => json!({"thinkingConfig": {"includeThoughts": true, "thinkingLevel": level}}),
        false => json!({"thinkingConfig": {"includeThoughts": true, "thinkingBudget": budget}}),
    })
}
