//! Transcripts as they are sent to a provider.

use arbitrary::{Arbitrary, Result, Unstructured};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Image, Message, StopReason, ToolCall,
    ToolResultMessage,
};
use cofferdam_agent::replay::replay as replayed;
use std::collections::HashMap;
use std::sync::Arc;

/// Few ids, so that calls and results meet, and miss each other.
const IDS: [&str; 5] = ["a", "b", "c", "", "a"];

fn messages(u: &mut Unstructured<'_>) -> Result<Vec<Arc<Message>>> {
    let mut messages = Vec::new();
    while !u.is_empty() && messages.len() < 200 {
        messages.push(Arc::new(message(u)?));
    }
    Ok(messages)
}

fn message(u: &mut Unstructured<'_>) -> Result<Message> {
    Ok(match u.int_in_range(0..=4)? {
        0 => Message::from(String::arbitrary(u)?.as_str()),
        1 | 2 => {
            let mut content = Vec::new();
            for _ in 0..u.int_in_range(0..=4)? {
                let call = ToolCall::from_text(*u.choose(&IDS)?, "t", "");
                content.push(AssistantBlock::ToolCall(call));
            }
            let stops = [
                StopReason::ToolUse,
                StopReason::Stop,
                StopReason::Length,
                StopReason::Error,
                StopReason::Aborted,
            ];
            let stop_reason = *u.choose(&stops)?;
            Message::Assistant(AssistantMessage {
                content,
                stop_reason,
                ..AssistantMessage::pending()
            })
        }
        _ => {
            let image = Image { media_type: "image/png".into(), data: Arc::from([1]) };
            let content = match u.arbitrary()? {
                true => Content::Image(image),
                false => Content::Text(u.arbitrary()?),
            };
            Message::ToolResult(ToolResultMessage {
                tool_call_id: (*u.choose(&IDS)?).into(),
                tool_name: "t".into(),
                content: vec![content],
                details: None,
                is_error: u.arbitrary()?,
            })
        }
    })
}

/// Every call has its result before anything else is said, every result has its call, no failed
/// answer is left, and what is valid stays as it is.
pub fn replay(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let vision = u.arbitrary().unwrap_or_default();
    let Ok(messages) = messages(&mut u) else { return };
    let sent = replayed(&messages, vision);
    let mut open: HashMap<&str, usize> = HashMap::new();
    for message in &sent {
        if let Message::ToolResult(result) = &**message {
            let asked = open.get_mut(result.tool_call_id.as_str());
            let asked = asked.filter(|asked| **asked > 0);
            *asked.unwrap_or_else(|| panic!("a result without a call: {result:?}")) -= 1;
            assert!(vision || !result.content.iter().any(|c| matches!(c, Content::Image(_))));
            continue;
        }
        assert!(open.values().all(|asked| *asked == 0), "a call without a result: {sent:?}");
        if let Message::Assistant(answer) = &**message {
            assert!(!answer.failed());
            for call in answer.tool_calls() {
                *open.entry(call.id.as_str()).or_default() += 1;
            }
        }
    }
    assert!(open.values().all(|asked| *asked == 0), "a call without a result at the end");
    assert_eq!(replayed(&sent, vision), sent, "what is valid is changed");
}
