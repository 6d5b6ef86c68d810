//! Events and results in short: of the same shape, so that whoever reads them need not care.

use cofferdam_agent::message::Content;
use cofferdam_agent::tool::ToolResult;
use cofferdam_sandbox::text;
use serde_json::{Map, Value};

/// Bytes of a field of an event in short, as JSON. The cost of a common call fits.
const FIELD_BYTES_MAX: usize = 1024;
/// Bytes of a text within a field that was too long.
const TEXT_BYTES_MAX: usize = 128;
/// What a block of a result costs beside its text or image.
const BLOCK_BYTES: usize = 32;

/// The event without its long fields, which `left_out` names. What it is about stays as it is.
pub(super) fn event(event: &mut Value) {
    let Value::Object(fields) = event else { return };
    let mut left_out = Vec::new();
    for (name, value) in fields.iter_mut() {
        let kept = ["type", "event", "tool_call_id", "tool_name"].contains(&name.as_str());
        if !kept && value.to_string().len() > FIELD_BYTES_MAX {
            *value = hull(value);
            left_out.push(name.clone());
        }
    }
    if !left_out.is_empty() {
        fields.insert("left_out".into(), left_out.into());
    }
}

/// A value of the same kind: lists empty, of objects what is short.
fn hull(value: &Value) -> Value {
    let Value::Object(fields) = value else { return empty(value) };
    let mut fields = fields.clone();
    for value in fields.values_mut() {
        *value = empty(value);
    }
    if Value::Object(fields.clone()).to_string().len() > FIELD_BYTES_MAX {
        // Whoever chose so many names is a guest or a model; a message has few.
        fields.retain(|name, _| ["role", "content"].contains(&name.as_str()));
    }
    fields.into()
}

fn empty(value: &Value) -> Value {
    match value {
        Value::Object(_) => Map::new().into(),
        Value::Array(_) => Vec::<Value>::new().into(),
        Value::String(text) if text.len() > TEXT_BYTES_MAX => "".into(),
        short => short.clone(),
    }
}

/// The beginning of a result: so many bytes of its texts and images, and of its details if they fit
/// whole. None if all of it fits.
pub(super) fn result(whole: &ToolResult, bytes_max: usize) -> Option<ToolResult> {
    let mut room = bytes_max;
    let mut cut = false;
    let mut content = Vec::new();
    for block in &whole.content {
        let bytes = BLOCK_BYTES
            + match block {
                Content::Text(text) => text.len(),
                Content::Image(image) => image.data.len() + image.media_type.len(),
            };
        cut = bytes > room;
        if !cut {
            room -= bytes;
            content.push(block.clone());
            continue;
        }
        if let Content::Text(text) = block {
            content.push(Content::Text(text::cut(text, room).into()));
        }
        break;
    }
    let details = whole.details.clone().filter(|details| details.to_string().len() <= room);
    (cut || details.is_none() && whole.details.is_some()).then(|| ToolResult {
        content,
        details,
        ..whole.clone()
    })
}
