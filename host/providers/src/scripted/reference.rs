//! References from an answer to what earlier calls came to: `${results.c1.details.count}`.

use super::answer::{Answer, Block};
use cofferdam_agent::message::{Content, Message, ToolResultMessage};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The answer with every reference in its content replaced. `Err` continues the sentence "answer 2
/// of the script …".
pub(super) fn resolve(answer: &Answer, messages: &[Arc<Message>]) -> Result<Answer, String> {
    let mut answer = answer.clone();
    for block in &mut answer.content {
        match block {
            Block::Text { text, chunks, .. } => {
                *text = fill(text, messages)?;
                fill_all(chunks, messages)?;
            }
            Block::Thinking { thinking, chunks, .. } => {
                *thinking = fill(thinking, messages)?;
                fill_all(chunks, messages)?;
            }
            Block::ToolCall { arguments, arguments_text, chunks, .. } => {
                *arguments = fill_map(arguments, messages)?;
                if let Some(text) = arguments_text {
                    *text = fill(text, messages)?;
                }
                fill_all(chunks, messages)?;
            }
        }
    }
    Ok(answer)
}

fn fill_all(chunks: &mut Option<Vec<String>>, messages: &[Arc<Message>]) -> Result<(), String> {
    for chunk in chunks.iter_mut().flatten() {
        *chunk = fill(chunk, messages)?;
    }
    Ok(())
}

fn fill_map(
    fields: &Map<String, Value>,
    messages: &[Arc<Message>],
) -> Result<Map<String, Value>, String> {
    fields.iter().map(|(key, value)| Ok((key.clone(), fill_value(value, messages)?))).collect()
}

fn fill_value(value: &Value, messages: &[Arc<Message>]) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match whole_reference(text) {
            Some(path) => look_up(path, messages)?,
            None => Value::String(fill(text, messages)?),
        },
        Value::Array(items) => Value::Array(
            items.iter().map(|item| fill_value(item, messages)).collect::<Result<_, _>>()?,
        ),
        Value::Object(fields) => Value::Object(fill_map(fields, messages)?),
        other => other.clone(),
    })
}

/// The path of a string that is one reference and nothing else.
fn whole_reference(text: &str) -> Option<&str> {
    let path = text.strip_prefix("${")?.strip_suffix('}')?;
    (!path.contains(['{', '}'])).then_some(path)
}

fn fill(text: &str, messages: &[Arc<Message>]) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            filled.push_str(before);
            filled.push_str("${");
            rest = &reference[2..];
            continue;
        }
        filled.push_str(before);
        let Some((path, after)) = reference[2..].split_once('}') else {
            return Err(format!("has a `${{` without its `}}`: {}", cut(reference)));
        };
        match look_up(path, messages)? {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn look_up(path: &str, messages: &[Arc<Message>]) -> Result<Value, String> {
    let Some(reference) = path.strip_prefix("results.") else {
        return Err(format!("refers to `{path}`: references begin with `results.`"));
    };
    let (result, part) = find(reference, messages).ok_or_else(|| {
        let id = reference.split('.').next().unwrap_or(reference);
        format!("refers to the result of call `{id}`, and there is none")
    })?;
    let found = match part.split_once('.').unwrap_or((part, "")) {
        ("" | "text", "") => Some(Value::String(text_of(result))),
        ("is_error", "") => Some(Value::Bool(result.is_error)),
        ("details", "") => Some(result.details.clone().unwrap_or(Value::Null)),
        ("details", below) => result.details.as_ref().and_then(|details| at_path(details, below)),
        _ => None,
    };
    found.ok_or_else(|| format!("refers to `{path}`, and the result has no such part"))
}

/// The latest result whose id begins the reference. Ids may hold dots, so each id is tried.
fn find<'a>(
    reference: &'a str,
    messages: &'a [Arc<Message>],
) -> Option<(&'a ToolResultMessage, &'a str)> {
    messages.iter().rev().find_map(|message| match &**message {
        Message::ToolResult(result) => {
            let rest = reference.strip_prefix(result.tool_call_id.as_str())?;
            let part = if rest.is_empty() { rest } else { rest.strip_prefix('.')? };
            Some((result, part))
        }
        _ => None,
    })
}

fn at_path(value: &Value, path: &str) -> Option<Value> {
    path.split('.')
        .try_fold(value, |value, key| match value {
            Value::Object(fields) => fields.get(key),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })
        .cloned()
}

fn text_of(result: &ToolResultMessage) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}
