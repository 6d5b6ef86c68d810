//! The texts that stay out of logs and traces unless they are asked for, and the lengths to which
//! anything from outside is cut.

use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Content, UserMessage};
use cofferdam_agent::tool::ToolResult;
use serde_json::{Value, json};

/// Bytes of a name, an id or a code.
const NAME_MAX: usize = 200;
/// Bytes of one text of contents.
const TEXT_MAX: usize = 16 * 1024;

/// Whether prompts, answers, arguments and results are written too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contents {
    /// Names, figures and codes only.
    #[default]
    Hidden,
    /// Texts as well, each cut to 16 KiB.
    Shown,
}

impl Contents {
    /// A text, where texts are shown. It is not made where they are not.
    pub(crate) fn text(self, text: impl FnOnce() -> String) -> Option<String> {
        match self {
            Self::Hidden => None,
            Self::Shown => Some(cut(&text(), TEXT_MAX)),
        }
    }
}

/// A name from outside, in a length that fits a line.
pub(crate) fn name(name: &str) -> String {
    cut(name, NAME_MAX)
}

fn cut(text: &str, bytes_max: usize) -> String {
    match text.len() > bytes_max {
        true => format!("{}…", &text[..text.floor_char_boundary(bytes_max)]),
        false => text.to_owned(),
    }
}

/// The text of a result: what a model sees, images by their type.
pub(crate) fn result(result: &ToolResult) -> String {
    plain(&result.content)
}

/// The text of a prompt.
pub(crate) fn prompt(message: &UserMessage) -> String {
    plain(&message.content)
}

/// The text of an answer.
pub(crate) fn answer(answer: &AssistantMessage) -> String {
    let texts = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(block) => Some(block.text.as_str()),
        AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A prompt as the GenAI conventions have messages: a list of one message with its parts.
pub(crate) fn input_message(message: &UserMessage) -> Value {
    json!({"role": "user", "parts": [text_part(&plain(&message.content))]})
}

/// An answer as the GenAI conventions have messages. Thinking is left out.
pub(crate) fn output_messages(answer: &AssistantMessage) -> Value {
    let parts = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(block) => Some(text_part(&block.text)),
        AssistantBlock::ToolCall(call) => Some(json!({
            "type": "tool_call", "id": call.id, "name": call.name, "arguments": *call.arguments,
        })),
        AssistantBlock::Thinking(_) => None,
    });
    let parts: Vec<Value> = parts.collect();
    json!([{"role": "assistant", "parts": parts, "finish_reason": answer.stop_reason.as_str()}])
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "content": text})
}

fn plain(content: &[Content]) -> String {
    let texts = content.iter().map(|block| match block {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("[{}]", image.media_type),
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_on_a_character_and_texts_made_only_where_shown() {
        assert_eq!(name("calc"), "calc");
        assert_eq!(name(&"é".repeat(150)), format!("{}…", "é".repeat(100)));
        assert_eq!(Contents::Hidden.text(|| panic!("made")), None);
        assert_eq!(Contents::Shown.text(|| "a".into()), Some("a".into()));
    }
}
