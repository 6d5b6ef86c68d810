//! The conversation as one provider takes it: what every provider wants of a transcript (see
//! `cofferdam_agent::replay`), legal ids and names, and nothing that only another model understands.

use crate::endpoint::Endpoint;
use crate::ids;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Message};
use cofferdam_agent::model::Request;
use cofferdam_agent::replay::replay;
use std::sync::Arc;

/// Characters of a tool's name in history: the least that any provider takes.
const NAME_CHARS_MAX: usize = 64;

/// The messages of a request for this endpoint.
pub(crate) fn messages(endpoint: &Endpoint, request: &Request) -> Vec<Arc<Message>> {
    let own = |answer: &AssistantMessage| {
        answer.provider == endpoint.provider && answer.model == endpoint.model
    };
    let replayed = replay(&request.messages, endpoint.images);
    let renamed = ids::rewritten(&replayed, endpoint.wire.id_rule(), own);
    renamed.iter().filter_map(|message| fit(message, &own)).collect()
}

/// The message, without what this provider would refuse; `None` if nothing is left of it.
fn fit(message: &Arc<Message>, own: &impl Fn(&AssistantMessage) -> bool) -> Option<Arc<Message>> {
    match &**message {
        Message::Assistant(answer) => {
            let own = own(answer);
            let mut answer = answer.clone();
            answer.content = blocks(&answer.content, own);
            (!answer.content.is_empty()).then(|| Arc::new(Message::Assistant(answer)))
        }
        Message::ToolResult(result) if legal_name(&result.tool_name) != result.tool_name => {
            let mut result = result.clone();
            result.tool_name = legal_name(&result.tool_name);
            Some(Arc::new(Message::ToolResult(result)))
        }
        Message::User(_) | Message::ToolResult(_) => Some(message.clone()),
        Message::Custom(_) => None,
    }
}

/// The blocks of an answer. Reasoning and signatures go back to the very model that made them and
/// to no other. Calls come last: text after a call is refused on replay (anomalyco/opencode 7002).
fn blocks(content: &[AssistantBlock], own: bool) -> Vec<AssistantBlock> {
    let (mut words, mut calls) = (Vec::new(), Vec::new());
    for block in content {
        match block {
            AssistantBlock::Text(block) if block.text.trim().is_empty() => {}
            AssistantBlock::Text(block) => {
                let mut block = block.clone();
                block.signature = block.signature.filter(|_| own);
                words.push(AssistantBlock::Text(block));
            }
            AssistantBlock::Thinking(block) => {
                if own {
                    words.push(AssistantBlock::Thinking(block.clone()));
                }
            }
            AssistantBlock::ToolCall(call) => {
                let mut call = call.clone();
                call.name = legal_name(&call.name);
                call.signature = call.signature.filter(|_| own);
                calls.push(AssistantBlock::ToolCall(call));
            }
        }
    }
    words.extend(calls);
    words
}

/// A name as every provider takes it. Models make up names that no provider takes back
/// (`multi_tool_use.parallel`).
fn legal_name(name: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = name.chars().map(|c| if legal(c) { c } else { '_' });
    let plain: String = plain.take(NAME_CHARS_MAX).collect();
    match plain.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => plain,
        Some(_) => format!("_{}", plain.chars().take(NAME_CHARS_MAX - 1).collect::<String>()),
        None => "unnamed".into(),
    }
}
