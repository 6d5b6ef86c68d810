//! A request of the Chat wire.

use super::Dialect;
use crate::endpoint::Endpoint;
use crate::wire::{data_url, object, parameters};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Image, Message, ToolResultMessage,
};
use cofferdam_agent::model::Request;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Stands where a result has nothing to say: some servers refuse an empty text.
const NO_OUTPUT: &str = "(no output)";
/// Stands for an image of a result, which this wire takes from the user only.
const IMAGE_BELOW: &str = "[an image, in the message after the results]";
/// Says whose the images are.
const IMAGES_OF_RESULTS: &str = "Images from the tool results above:";

/// The body of a request.
pub(crate) fn body(
    endpoint: &Endpoint,
    dialect: Dialect,
    request: &Request,
    messages: &[Arc<Message>],
) -> Map<String, Value> {
    let mut conversation = Conversation { dialect, out: Vec::new(), images: Vec::new() };
    if !request.system_prompt.is_empty() {
        conversation.out.push(json!({"role": "system", "content": *request.system_prompt}));
    }
    messages.iter().for_each(|message| conversation.add(message));
    conversation.end_of_results();
    let mut body = object(json!({
        "model": endpoint.model,
        "messages": conversation.out,
        "stream": true,
    }));
    if dialect.asks_for_usage() {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters(tool),
            }})
        });
        body.insert("tools".into(), tools.collect());
    }
    if let Some(tokens) = endpoint.max_output_tokens {
        body.insert(dialect.max_tokens_field().into(), tokens.into());
    }
    body.extend(dialect.thinking(request.thinking));
    body
}

struct Conversation<'m> {
    dialect: Dialect,
    out: Vec<Value>,
    /// Of results, waiting for the end of the results.
    images: Vec<&'m Image>,
}

impl<'m> Conversation<'m> {
    fn add(&mut self, message: &'m Message) {
        match message {
            Message::ToolResult(result) => self.result(result),
            Message::User(user) => {
                self.end_of_results();
                self.answer_before_user();
                self.out.push(json!({"role": "user", "content": user_content(&user.content)}));
            }
            Message::Assistant(answer) => {
                self.end_of_results();
                self.out.extend(self.answer(answer));
            }
            Message::Custom(_) => {}
        }
    }

    fn answer(&self, answer: &AssistantMessage) -> Option<Value> {
        let mut message = object(json!({"role": "assistant"}));
        let (mut text, mut calls, mut thinking) = (Vec::new(), Vec::new(), Vec::new());
        for block in &answer.content {
            match block {
                AssistantBlock::Text(block) => text.push(block.text.as_str()),
                AssistantBlock::Thinking(block) => thinking.push(block),
                AssistantBlock::ToolCall(call) => calls.push(json!({
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": Value::Object((*call.arguments).clone()).to_string(),
                    },
                })),
            }
        }
        if text.is_empty() && calls.is_empty() {
            return None;
        }
        let content = if text.is_empty() { Value::Null } else { text.join("\n").into() };
        message.insert("content".into(), content);
        match self.dialect {
            // Its thinking models want the field on every answer.
            Dialect::DeepSeek => {
                let text: Vec<&str> = thinking.iter().map(|block| &*block.thinking).collect();
                message.insert("reasoning_content".into(), text.join("\n").into());
            }
            Dialect::OpenRouter if !thinking.is_empty() => {
                let detail = |(index, block): (
                    usize,
                    &&cofferdam_agent::message::ThinkingBlock,
                )| {
                    match block.redacted {
                        true => {
                            json!({"type": "reasoning.encrypted", "data": block.signature, "index": index})
                        }
                        false => {
                            json!({"type": "reasoning.text", "text": block.thinking, "signature": block.signature, "index": index})
                        }
                    }
                };
                let details = thinking.iter().enumerate().map(detail).collect();
                message.insert("reasoning_details".into(), details);
            }
            _ => {}
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        Some(Value::Object(message))
    }

    fn result(&mut self, result: &'m ToolResultMessage) {
        let mut text = Vec::new();
        for block in &result.content {
            match block {
                Content::Text(block) => text.push(block.as_str()),
                Content::Image(image) => {
                    text.push(IMAGE_BELOW);
                    self.images.push(image);
                }
            }
        }
        let text = text.join("\n");
        self.out.push(json!({
            "role": "tool",
            "tool_call_id": result.tool_call_id,
            "content": if text.trim().is_empty() { NO_OUTPUT.into() } else { text },
        }));
    }

    /// The images of the results that just ended, as words of the user.
    fn end_of_results(&mut self) {
        let images = std::mem::take(&mut self.images);
        if images.is_empty() {
            return;
        }
        self.answer_before_user();
        let parts = std::iter::once(json!({"type": "text", "text": IMAGES_OF_RESULTS}))
            .chain(images.into_iter().map(image_part));
        self.out.push(json!({"role": "user", "content": parts.collect::<Vec<_>>()}));
    }

    fn answer_before_user(&mut self) {
        let after_result = self.out.last().is_some_and(|message| message["role"] == "tool");
        if after_result && self.dialect.wants_answer_after_results() {
            self.out.push(json!({"role": "assistant", "content": "I have the results."}));
        }
    }
}

/// Plain text where there is nothing else: not every server knows parts.
fn user_content(content: &[Content]) -> Value {
    let part = |block: &Content| match block {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image(image) => image_part(image),
    };
    if content.iter().any(|block| matches!(block, Content::Image(_))) {
        return content.iter().map(part).collect();
    }
    let texts = content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n").into()
}

fn image_part(image: &Image) -> Value {
    json!({"type": "image_url", "image_url": {"url": data_url(image)}})
}
