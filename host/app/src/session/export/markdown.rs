//! A session as Markdown: what was said, and each call with its result and its bill in short.

use super::super::Record;
use super::super::timeline::{Item, Trace, What, items};
use super::{Head, count, span, text, utc};
use crate::receipt;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Message};
use cofferdam_sandbox::text::harmless;
use std::fmt::Write as _;

/// The document.
pub fn markdown(record: &Record) -> String {
    let items = items(&record.lines);
    let head = Head::of(record, &items);
    let mut out = String::new();
    let _ = write!(
        out,
        "# {}\n\nSession `{}`, {}, {}, {}, {} failed, {}.\n",
        harmless(&head.title),
        head.id,
        utc(head.began_us),
        count(head.messages, "message"),
        count(head.calls, "call"),
        head.failed,
        span(head.ended_us.saturating_sub(head.began_us)),
    );
    for item in &items {
        self::item(&mut out, item);
    }
    // Ids come from models too, and from whoever wrote the file.
    harmless(&out)
}

// Writing to a `String` does not fail.
fn item(out: &mut String, item: &Item<'_>) {
    match &item.what {
        What::RunStart => {
            let _ = write!(out, "\n---\n\n*{}: a run begins.*\n", utc(item.at_us));
        }
        What::Opened { .. } => {
            let _ = write!(out, "\n*{}: the session is gone on with.*\n", utc(item.at_us));
        }
        What::RunEnd => {}
        What::Retry(retry) => {
            let _ = write!(out, "\n*The request was sent again: {}*\n", harmless(&retry.problem));
        }
        What::Message(Message::User(user)) => {
            let _ = write!(out, "\n## User\n\n{}\n", harmless(&text(&user.content)));
        }
        What::Message(Message::ToolResult(result)) => {
            let _ = write!(out, "\n## Result of `{}`\n", result.tool_call_id);
            fenced(out, "", &text(&result.content));
        }
        What::Message(Message::Custom(custom)) => {
            let _ = writeln!(out, "\n## {}", harmless(&custom.role));
            fenced(out, "json", &custom.content.to_string());
        }
        What::Answer(Message::Assistant(answer), batch) => {
            self::answer(out, answer);
            batch.calls.iter().for_each(|trace| call(out, trace));
        }
        What::Message(Message::Assistant(_)) | What::Answer(..) => {}
    }
}

fn answer(out: &mut String, answer: &AssistantMessage) {
    let _ = writeln!(out, "\n## {}", if answer.model.is_empty() { "Model" } else { &answer.model });
    for block in &answer.content {
        match block {
            AssistantBlock::Text(block) => {
                let _ = write!(out, "\n{}\n", harmless(&block.text));
            }
            AssistantBlock::Thinking(block) if !block.thinking.is_empty() => {
                let quoted = harmless(&block.thinking).replace('\n', "\n> ");
                let _ = write!(out, "\n> {quoted}\n");
            }
            AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => {}
        }
    }
    if let Some(problem) = &answer.error_message {
        let _ = write!(out, "\n**{}:** {}\n", answer.stop_reason.as_str(), harmless(problem));
    }
}

fn call(out: &mut String, trace: &Trace<'_>) {
    let name = harmless(&trace.call.name).replace('`', "'");
    let _ = write!(out, "\n### `{name}` {}\n\n", harmless(&trace.call.id));
    let _ = writeln!(out, "{}", summary(trace));
    fenced(out, "json", &pretty(&trace.call.arguments));
    if let Some(arguments) = trace.ran_with {
        let _ = write!(out, "\nThe tool got:\n");
        fenced(out, "json", &pretty(arguments));
    }
    if let Some(result) = trace.result {
        let _ = write!(out, "\nResult:\n");
        fenced(out, "", &text(&result.content));
    }
}

fn summary(trace: &Trace<'_>) -> String {
    let mut parts = vec![trace.outcome().as_str().to_owned()];
    if let Some((_, end)) = trace.end {
        parts.extend(end.ended_by.clone());
        if let Some(place) = trace.ended_as {
            parts.push(format!("ended as number {place} of its batch"));
        }
        if trace.run_us.is_some() {
            parts.push(span(u64::try_from(end.duration.as_micros()).unwrap_or(u64::MAX)));
        }
        parts.extend(end.receipt.as_ref().map(|bill| receipt::summary(&bill.to_json())));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

fn pretty(arguments: &serde_json::Map<String, serde_json::Value>) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_default()
}

/// A code block whose fence is longer than any within.
fn fenced(out: &mut String, language: &str, text: &str) {
    let mut longest = 0;
    let mut ticks = 0;
    for c in text.chars() {
        ticks = if c == '`' { ticks + 1 } else { 0 };
        longest = longest.max(ticks);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    let text = harmless(text);
    let _ = write!(out, "\n{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'));
}

#[cfg(test)]
mod tests {
    use super::fenced;

    #[test]
    fn no_text_ends_its_fence() {
        let mut out = String::new();
        fenced(&mut out, "", "a\n```\nb\n");
        assert_eq!(out, "\n````\na\n```\nb\n````\n");
    }
}
