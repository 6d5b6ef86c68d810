//! How deep a line nests. Arguments and details may nest as deep as the parser of JSON goes; in a line
//! they stand some levels deeper, where the same parser would refuse them. So what lies below
//! [`LEVELS_MAX`] is written as JSON text in the place of the value.

use serde_json::{Value, json};

/// Levels of a line that are written as they are. At the last one, every list and every object is
/// written as text, so that nothing a model or a plugin wrote is taken for such a text.
const LEVELS_MAX: usize = 64;

/// The one field of an object that stands for what its text says.
const TEXT: &str = "json";

/// The line with what lies too deep as text.
pub(super) fn fold(value: Value) -> Value {
    at_the_last_level(value, 0, &|deep| json!({TEXT: deep.to_string()}))
}

/// The line as it was.
pub(super) fn unfold(value: Value) -> Value {
    at_the_last_level(value, 0, &|folded| {
        let text = folded.get(TEXT).and_then(Value::as_str);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(folded)
    })
}

fn at_the_last_level(value: Value, level: usize, change: &impl Fn(Value) -> Value) -> Value {
    let inner = |value| at_the_last_level(value, level + 1, change);
    match value {
        Value::Array(_) | Value::Object(_) if level == LEVELS_MAX => change(value),
        Value::Array(values) => values.into_iter().map(inner).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, inner(value))).collect()
        }
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        let wrap = |value, level| match level % 2 {
            0 => json!([value, 1]),
            _ => json!({"json": value}),
        };
        (0..levels).fold(json!("json"), wrap)
    }

    #[test]
    fn whatever_the_parser_of_json_reads_is_read_again_from_a_line() {
        for levels in [0, 1, LEVELS_MAX - 1, LEVELS_MAX, LEVELS_MAX + 1, 100, 127, 135] {
            let line = json!({"a": nested(levels)});
            let text = fold(line.clone()).to_string();
            assert_eq!(unfold(serde_json::from_str(&text).unwrap()), line, "{levels}");
        }
        let plain = json!({"a": nested(LEVELS_MAX - 1)});
        assert_eq!(fold(plain.clone()), plain);
    }
}
