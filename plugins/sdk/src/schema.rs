//! Schemas for models: what schemars derives, brought into the shape that every host and model
//! provider takes. One self-contained object, no `$schema`, no formats that only Rust knows.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// The JSON Schema of `A`, with all parts in place.
///
/// A type that refers to itself still needs `$defs`; those references are local.
pub fn of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(root) = schema.as_object_mut() {
        // The tool has a name and a description already; these would only repeat them.
        root.shift_remove("title");
        root.shift_remove("description");
        if root.get("type") == Some(&json!("object")) {
            root.entry("properties").or_insert(json!({}));
        }
    }
    remove_rust_formats(&mut schema);
    schema
}

/// `uint32`, `double` and such are not formats of JSON Schema, and some providers refuse a
/// schema that has them. Most bounds stay, as `minimum` and `maximum`; serde keeps the rest.
fn remove_rust_formats(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let rust = |format: &str| {
                ["int", "uint", "float", "double"].iter().any(|kind| format.starts_with(kind))
            };
            if map.get("format").and_then(Value::as_str).is_some_and(rust) {
                map.shift_remove("format");
            }
            map.values_mut().for_each(remove_rust_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_rust_formats),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Window {
        /// First line.
        from: u32,
        mode: Option<Mode>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Raw,
        Numbered,
    }

    #[test]
    fn one_self_contained_object() {
        let expected = json!({
            "type": "object",
            "properties": {
                "from": { "description": "First line.", "type": "integer", "minimum": 0 },
                "mode": { "type": ["string", "null"], "enum": ["raw", "numbered", null] }
            },
            "required": ["from"]
        });
        assert_eq!(of::<Window>(), expected);
    }

    #[test]
    fn no_arguments_is_an_empty_object() {
        #[derive(JsonSchema)]
        struct Nothing {}
        assert_eq!(of::<Nothing>(), json!({ "type": "object", "properties": {} }));
    }
}
