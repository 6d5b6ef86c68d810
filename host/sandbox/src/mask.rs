//! Secrets on the way out: what a server echoes back must not reach a model, a person or a file.
//!
//! A secret is found as it is, and as JSON writes it. One that a server or a plugin has encoded or
//! taken apart is not found; that is outside of what masking can promise.

use crate::services::http::Secret;
use cofferdam_agent::message::Content;
use cofferdam_agent::tool::ToolResult;
use serde_json::Value;
use std::borrow::Cow;

const MASK: &str = "[secret]";
/// Shorter ones would be found in words that have nothing to do with them.
const SECRET_BYTES_MIN: usize = 6;

/// A text without the secrets.
pub(crate) fn text<'a>(text: &'a str, secrets: &[Secret]) -> Cow<'a, str> {
    let mut masked = Cow::Borrowed(text);
    for secret in secrets.iter().filter(|secret| secret.bare.len() >= SECRET_BYTES_MIN) {
        if masked.contains(&secret.bare) {
            masked = Cow::Owned(masked.replace(&secret.bare, MASK));
        }
    }
    masked
}

/// A result without the secrets.
pub(crate) fn result(mut result: ToolResult, secrets: &[Secret]) -> ToolResult {
    if secrets.is_empty() {
        return result;
    }
    for content in &mut result.content {
        if let Content::Text(shown) = content {
            *shown = text(shown, secrets).into_owned();
        }
    }
    result.details = result.details.map(|details| json(details, secrets));
    result
}

/// A JSON value without the secrets. Its depth is bounded by the parser that made it.
pub(crate) fn json(value: Value, secrets: &[Secret]) -> Value {
    match value {
        Value::String(shown) => Value::String(text(&shown, secrets).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| json(item, secrets)).collect(),
        Value::Object(map) => {
            let entries = map.into_iter();
            entries
                .map(|(key, value)| (text(&key, secrets).into_owned(), json(value, secrets)))
                .collect()
        }
        other => other,
    }
}

/// Bytes without the secrets, of the same meaning only if they are text.
pub(crate) fn bytes(value: Vec<u8>, secrets: &[Secret]) -> Vec<u8> {
    if secrets.is_empty() {
        return value;
    }
    match String::from_utf8(value) {
        Ok(shown) => text(&shown, secrets).into_owned().into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::http::Origin;

    #[test]
    fn secrets_are_masked_in_texts_and_json() {
        let secrets = [Secret {
            origin: Origin::parse("https://api.example.com").expect("an origin"),
            header: http::header::AUTHORIZATION,
            value: http::HeaderValue::from_static("Bearer s3cret-token"),
            bare: "s3cret-token".into(),
        }];
        let shown = ToolResult {
            details: Some(serde_json::json!({ "s3cret-token": ["x s3cret-token y", 1] })),
            ..ToolResult::text("echo: s3cret-token")
        };
        let masked = result(shown, &secrets);
        assert_eq!(masked.content, [Content::Text("echo: [secret]".into())]);
        assert_eq!(masked.details, Some(serde_json::json!({ "[secret]": ["x [secret] y", 1] })));
        assert_eq!(bytes(b"s3cret-token".to_vec(), &secrets), b"[secret]");
    }
}
