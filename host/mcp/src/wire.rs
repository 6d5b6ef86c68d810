//! Values of the loop as MCP has them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_agent::event::CallEnd;
use cofferdam_agent::message::Content;
use cofferdam_agent::tool::{Declaration, ToolResult};
use cofferdam_app::json;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool};
use serde_json::Value;
use std::sync::Arc;

/// The key in `_meta` under which a result says what the call cost and what its hooks did.
const CALL: &str = "cofferdam/call";

pub(crate) fn tool(declaration: &Declaration) -> Tool {
    let schema = match &declaration.parameters {
        Value::Object(schema) => schema.clone(),
        _ => JsonObject::new(),
    };
    let mut tool =
        Tool::new(declaration.name.clone(), declaration.description.clone(), Arc::new(schema));
    tool.title = declaration.label.clone();
    tool
}

/// Details stay out of `structuredContent`, which clients show to models: in the loop no model sees
/// them either.
pub(crate) fn result(end: &CallEnd) -> CallToolResult {
    let content = end.result.content.iter().map(block).collect();
    let mut result = match end.is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    };
    let mut facts = json::call_end(end);
    facts.retain(|field, _| !matches!(field.as_str(), "result" | "is_error"));
    if let Some(receipt) = facts.get_mut("receipt") {
        keep_what_is_something(receipt);
    }
    if let Some(details) = &end.result.details {
        facts.insert("details".into(), details.clone());
    }
    let mut meta = JsonObject::new();
    meta.insert(CALL.into(), Value::Object(facts));
    result.meta = Some(MetaObject(meta));
    result
}

/// Takes out of a receipt what is zero or empty: some clients put the `_meta` of a failed call before
/// their models, who pay for every figure.
fn keep_what_is_something(value: &mut Value) {
    let Value::Object(fields) = value else { return };
    fields.values_mut().for_each(keep_what_is_something);
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::String(_) => true,
    });
}

/// The text of a result.
pub(crate) fn text(result: &ToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| match block {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn block(block: &Content) -> ContentBlock {
    match block {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image(image) => {
            ContentBlock::image(BASE64.encode(&image.data), image.media_type.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_receipt_is_told_without_what_is_nothing() {
        let mut receipt = json!({
            "plugin": "calc", "fuel": 7, "http_requests": 0, "refusals": [], "spilled": null,
            "host_calls": {"http": {"calls": 0, "bytes": 0}, "log": {"calls": 1, "bytes": 0}},
        });
        keep_what_is_something(&mut receipt);
        let told = json!({"plugin": "calc", "fuel": 7, "host_calls": {"log": {"calls": 1}}});
        assert_eq!(receipt, told);
    }
}
