//! Results of a scenario as values of the contract, and back.

use cofferdam_plugin::{Content, Outcome, Reply, Value, json};

use crate::rules::list;

/// What a tool answers.
pub(crate) fn reply(result: &Value) -> Reply {
    Reply {
        content: contents(&result["content"]),
        details: given(result, "details").cloned(),
        is_error: result["is_error"] == true,
        terminate: result["terminate"].as_bool(),
    }
}

/// A field that is there and not null.
pub(crate) fn given<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).filter(|field| !field.is_null())
}

pub(crate) fn contents(content: &Value) -> Vec<Content> {
    list(content).iter().map(block).collect()
}

/// The scenario's base64 text stands in for an image's bytes: nothing looks into them.
fn block(block: &Value) -> Content {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("image") => Content::Image {
            media_type: text(&block["mimeType"]),
            data: text(&block["data"]).into_bytes(),
        },
        _ => Content::Text(text(block.get("text").unwrap_or(block))),
    }
}

/// A result as an after-hook was shown it.
pub(crate) fn shown(outcome: &Outcome) -> Value {
    let block = |block: &Content| match block {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Image { media_type, data } => json!({
            "type": "image",
            "data": String::from_utf8_lossy(data),
            "mimeType": media_type,
        }),
        Content::Other { kind, data } => json!({"type": kind, "data": data}),
    };
    let reply = &outcome.reply;
    json!({
        "content": reply.content.iter().map(block).collect::<Vec<_>>(),
        "details": reply.details,
        "terminate": reply.terminate,
    })
}
