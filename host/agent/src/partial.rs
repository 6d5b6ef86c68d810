//! An answer that still streams, folded from its steps: for observers, and for whoever has to end
//! it early with what there is.

use crate::message::{AssistantBlock, AssistantMessage, TextBlock, ThinkingBlock, ToolCall};
use crate::model::Step;
use crate::preview::Preview;
use std::collections::HashMap;

/// The message so far.
#[derive(Debug)]
pub struct Partial {
    message: AssistantMessage,
    /// Of the calls that are being written, by block: fragments of several may alternate.
    previews: HashMap<usize, Preview>,
}

impl Default for Partial {
    fn default() -> Self {
        Self { message: AssistantMessage::pending(), previews: HashMap::new() }
    }
}

impl Partial {
    /// The message so far.
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The blocks so far.
    pub fn into_content(self) -> Vec<AssistantBlock> {
        self.message.content
    }

    /// Takes one step. A step that fits no block is ignored.
    pub fn fold(&mut self, step: &Step) {
        let blocks = &mut self.message.content;
        match step {
            Step::Start | Step::Retry(_) | Step::Done(_) => {}
            Step::TextStart { .. } => blocks.push(AssistantBlock::Text(TextBlock::default())),
            Step::ThinkingStart { .. } => {
                blocks.push(AssistantBlock::Thinking(ThinkingBlock::default()));
            }
            Step::ToolCallStart { id, name, .. } => {
                blocks.push(AssistantBlock::ToolCall(ToolCall::from_text(id, name, "")));
            }
            Step::TextDelta { index, delta } => {
                if let Some(AssistantBlock::Text(block)) = blocks.get_mut(*index) {
                    block.text.push_str(delta);
                }
            }
            Step::TextEnd { index, text } => {
                if let Some(AssistantBlock::Text(block)) = blocks.get_mut(*index) {
                    block.text.clone_from(text);
                }
            }
            Step::ThinkingDelta { index, delta } => {
                if let Some(AssistantBlock::Thinking(block)) = blocks.get_mut(*index) {
                    block.thinking.push_str(delta);
                }
            }
            Step::ThinkingEnd { index, thinking } => {
                if let Some(AssistantBlock::Thinking(block)) = blocks.get_mut(*index) {
                    block.thinking.clone_from(thinking);
                }
            }
            Step::ToolCallDelta { index, delta } => {
                if let Some(AssistantBlock::ToolCall(block)) = blocks.get_mut(*index)
                    && let Some(arguments) = self.previews.entry(*index).or_default().push(delta)
                {
                    block.arguments = arguments;
                }
            }
            Step::ToolCallEnd { index, call } => {
                self.previews.remove(index);
                if let Some(AssistantBlock::ToolCall(block)) = blocks.get_mut(*index) {
                    block.clone_from(call);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fragments_of_two_calls_may_alternate() {
        let mut partial = Partial::default();
        let delta = |index, delta: &str| Step::ToolCallDelta { index, delta: delta.into() };
        for step in [
            Step::ToolCallStart { index: 0, id: "a".into(), name: "f".into() },
            Step::ToolCallStart { index: 1, id: "b".into(), name: "g".into() },
            delta(0, r#"{"x":"#),
            delta(1, r#"{"y":"tw"#),
            delta(0, "1"),
        ] {
            partial.fold(&step);
        }
        let arguments: Vec<_> =
            partial.message().tool_calls().map(|call| json!(*call.arguments)).collect();
        assert_eq!(arguments, [json!({"x": 1}), json!({"y": "tw"})]);
    }
}
