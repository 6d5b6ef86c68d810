//! Arguments that are still being written, as far as they can be told: for eyes only, never run.

use crate::message::Arguments;
use jiter::{JsonValue, PartialMode};
use serde_json::{Map, Number, Value};
use std::sync::Arc;

/// Texts up to this many bytes are read anew at each delta.
const EAGER_BYTES: usize = 4 * 1024;
/// Longer ones when they have grown by this fraction, so that the work stays linear in their length.
const GROWTH: usize = 64;

/// The argument text of one call so far.
#[derive(Debug, Default)]
pub struct Preview {
    text: String,
    /// Bytes that the last reading saw.
    read: usize,
    in_string: bool,
    escaped: bool,
}

impl Preview {
    /// Takes more text. Returns the arguments if they can be told better than before; on text that
    /// cannot be read the last good preview stands.
    pub fn push(&mut self, delta: &str) -> Option<Arguments> {
        self.text.push_str(delta);
        self.track(delta);
        if self.text.len() > EAGER_BYTES && self.text.len() < self.read + self.read / GROWTH {
            return None;
        }
        self.read = self.text.len();
        let completed = (!self.in_string).then(|| completed_literal(&self.text)).flatten();
        object(completed.as_deref().unwrap_or(&self.text))
    }

    /// Follows whether the text ends inside a string.
    fn track(&mut self, delta: &str) {
        for byte in delta.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ => {}
            }
        }
    }
}

/// `{"ok":tr` can only become `true`.
fn completed_literal(text: &str) -> Option<String> {
    let begun = text.len() - text.trim_end_matches(|c: char| c.is_ascii_lowercase()).len();
    if begun == 0 {
        return None;
    }
    let word = &text[text.len() - begun..];
    let whole = ["true", "false", "null"].into_iter().find(|whole| whole.starts_with(word))?;
    Some(format!("{text}{}", &whole[begun..]))
}

fn object(text: &str) -> Option<Arguments> {
    let parsed = JsonValue::parse_with_config(text.as_bytes(), false, PartialMode::TrailingStrings);
    match value(&parsed.ok()?) {
        Value::Object(object) => Some(Arc::new(object)),
        _ => None,
    }
}

/// The last of duplicate keys wins, as in the final parse.
fn value(parsed: &JsonValue<'_>) -> Value {
    match parsed {
        JsonValue::Null => Value::Null,
        JsonValue::Bool(bool) => Value::Bool(*bool),
        JsonValue::Int(int) => Value::from(*int),
        JsonValue::Float(float) => Number::from_f64(*float).map_or(Value::Null, Value::Number),
        JsonValue::Str(text) => Value::String(text.to_string()),
        JsonValue::Array(items) => items.iter().map(value).collect(),
        JsonValue::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.to_string(), value(field)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        #[allow(unreachable_patterns, reason = "big integers exist only with a feature of jiter")]
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is shown after each piece.
    fn shown(pieces: &[&str]) -> Vec<Value> {
        let mut preview = Preview::default();
        let mut last = Arguments::default();
        let push = |piece: &&str| {
            if let Some(arguments) = preview.push(piece) {
                last = arguments;
            }
            Value::Object((*last).clone())
        };
        pieces.iter().map(push).collect()
    }

    #[test]
    fn strings_grow_and_literals_are_told_early() {
        let pieces = [r#"{"pa"#, r#"th":"a\"#, r#"nb","ok":tr"#, r#"ue,"n":nu"#];
        let expected = [
            json!({}),
            json!({"path": "a"}),
            json!({"path": "a\nb", "ok": true}),
            json!({"path": "a\nb", "ok": true, "n": null}),
        ];
        assert_eq!(shown(&pieces), expected);
    }

    #[test]
    fn a_word_inside_a_string_is_not_a_literal_and_rubbish_keeps_the_last_good_preview() {
        assert_eq!(shown(&[r#"{"say":"be tr"#]), [json!({"say": "be tr"})]);
        assert_eq!(shown(&[r#"{"a":1"#, "]]"]), [json!({"a": 1}), json!({"a": 1})]);
    }

    #[test]
    fn long_texts_are_not_read_at_every_delta() {
        let mut preview = Preview::default();
        preview.push(r#"{"text":""#);
        let readings = (0..20_000).filter(|_| preview.push("0123456789").is_some()).count();
        // 200 kB in pieces of ten bytes.
        assert!(readings < 1_000, "{readings}");
    }
}
