//! A transcript as a provider takes it (seed: "Persistence and replay"): every call with its result,
//! every result with its call. The transcript itself stays as it is. Rewriting call ids is the
//! business of the provider that restricts them.

use crate::message::{Content, Message, ToolCall, ToolResultMessage, UserMessage};
use std::sync::Arc;

/// Stands for an image where the model takes none.
const IMAGE_PLACEHOLDER: &str = "[an image that this model cannot see]";

/// Makes the messages of a request valid for a provider:
/// - failed and aborted answers are left out together with their results,
/// - results whose call is gone are left out,
/// - a call without a result gets an error result before the next message or at the end,
/// - without `vision`, images become a text that says so.
///
/// ```
/// # use cofferdam_agent::message::Message;
/// # use cofferdam_agent::{replay::replay, testing::answer};
/// # use std::sync::Arc;
/// let call = answer::calls([("c1", "read", serde_json::json!({}))]);
/// let messages = [Arc::new(Message::Assistant(call)), Arc::new(Message::from("Go on."))];
/// assert_eq!(replay(&messages, true).len(), 3);
/// ```
pub fn replay(messages: &[Arc<Message>], vision: bool) -> Vec<Arc<Message>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut open: Vec<&ToolCall> = Vec::new();
    for message in messages {
        match &**message {
            Message::ToolResult(result) => {
                let asked = open.iter().position(|call| call.id == result.tool_call_id);
                if let Some(asked) = asked {
                    open.remove(asked);
                    out.push(seen(message, vision));
                }
                continue;
            }
            Message::Assistant(answer) => {
                answer_open(&mut open, &mut out);
                if answer.failed() {
                    continue;
                }
                open = answer.tool_calls().collect();
            }
            Message::User(_) | Message::Custom(_) => answer_open(&mut open, &mut out),
        }
        out.push(seen(message, vision));
    }
    answer_open(&mut open, &mut out);
    out
}

fn answer_open(open: &mut Vec<&ToolCall>, out: &mut Vec<Arc<Message>>) {
    out.extend(open.drain(..).map(|call| {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Content::Text("There is no result of this call.".into())],
            details: None,
            is_error: true,
        }))
    }));
}

/// The message itself, or one with placeholders for its images.
fn seen(message: &Arc<Message>, vision: bool) -> Arc<Message> {
    let content = match &**message {
        Message::User(user) => &user.content,
        Message::ToolResult(result) => &result.content,
        Message::Assistant(_) | Message::Custom(_) => return message.clone(),
    };
    if vision || !content.iter().any(|block| matches!(block, Content::Image(_))) {
        return message.clone();
    }
    let content = content.iter().map(|block| match block {
        Content::Image(_) => Content::Text(IMAGE_PLACEHOLDER.into()),
        Content::Text(_) => block.clone(),
    });
    let content: Vec<Content> = content.collect();
    Arc::new(match &**message {
        Message::ToolResult(result) => {
            Message::ToolResult(ToolResultMessage { content, ..result.clone() })
        }
        _ => Message::User(UserMessage { content }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AssistantBlock, AssistantMessage, Image, StopReason};

    fn answer(stop_reason: StopReason, ids: &[&str]) -> Arc<Message> {
        let call = |id: &&str| AssistantBlock::ToolCall(ToolCall::from_text(*id, "t", ""));
        let content = ids.iter().map(call).collect();
        let answer = AssistantMessage { content, stop_reason, ..AssistantMessage::pending() };
        Arc::new(Message::Assistant(answer))
    }

    fn result(id: &str) -> Arc<Message> {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            tool_name: "t".into(),
            content: vec![Content::Image(Image {
                media_type: "image/png".into(),
                data: Arc::from([1]),
            })],
            details: None,
            is_error: false,
        }))
    }

    fn digest(messages: &[Arc<Message>]) -> Vec<String> {
        let digest = |message: &Arc<Message>| match &**message {
            Message::User(_) => "user".to_owned(),
            Message::Assistant(_) => "answer".to_owned(),
            Message::ToolResult(r) if r.is_error => format!("made up {}", r.tool_call_id),
            Message::ToolResult(r) => r.tool_call_id.clone(),
            Message::Custom(custom) => custom.role.clone(),
        };
        messages.iter().map(digest).collect()
    }

    #[test]
    fn every_call_has_a_result_and_every_result_a_call() {
        let user = || Arc::new(Message::from("go"));
        let messages = [
            result("gone"),
            user(),
            answer(StopReason::ToolUse, &["a", "b", "c"]),
            result("b"),
            result("b"),
            user(),
            answer(StopReason::Error, &["d"]),
            result("d"),
            answer(StopReason::Aborted, &[]),
            answer(StopReason::Length, &["a"]),
        ];
        let expected =
            ["user", "answer", "b", "made up a", "made up c", "user", "answer", "made up a"];
        assert_eq!(digest(&replay(&messages, true)), expected);
    }

    #[test]
    fn images_become_text_for_a_model_without_vision_and_everything_else_is_shared() {
        let messages = [answer(StopReason::ToolUse, &["a"]), result("a")];
        let blind = replay(&messages, false);
        assert!(Arc::ptr_eq(&blind[0], &messages[0]));
        let Message::ToolResult(result) = &*blind[1] else { panic!("no result") };
        assert_eq!(result.content, [Content::Text(IMAGE_PLACEHOLDER.into())]);
        assert!(Arc::ptr_eq(&replay(&messages, true)[1], &messages[1]));
    }
}
