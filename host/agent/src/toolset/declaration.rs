//! What a declaration must look like before it is sent to a provider: the rules that the large
//! providers have in common (n8n-io/n8n 30590, earendil-works/pi 2099 and others: one bad tool
//! fails the whole request).

use crate::tool::Declaration;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Characters of a name, prefix included.
const NAME_CHARS_MAX: usize = 63;
/// Characters of a field's name.
const KEY_CHARS_MAX: usize = 64;
/// Bytes of a description.
const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// How strictly declarations are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// What every large provider takes: names, keys, a root object, lists with `items`, no
    /// recursion, a description. For plugins, whose authors the operator does not know.
    #[default]
    Portable,
    /// Only that the schema is an object schema that compiles, offline and with bounded work. For
    /// native tools that are sent to one known provider.
    Lenient,
}

/// The declaration as it is sent, or why it is refused.
pub(super) fn checked(
    declared: &Arc<Declaration>,
    rules: Rules,
) -> Result<Arc<Declaration>, String> {
    if rules == Rules::Lenient {
        return Ok(declared.clone());
    }
    check_name(&declared.name)?;
    if declared.description.trim().is_empty() {
        return Err("its description is empty, and a model chooses tools by it".into());
    }
    if declared.description.len() > DESCRIPTION_BYTES_MAX {
        return Err(format!("its description has more than {DESCRIPTION_BYTES_MAX} bytes"));
    }
    let root = check_root(&declared.parameters)?;
    check_lists(&declared.parameters, "the schema")?;
    Ok(with_defaults(declared, root))
}

fn check_name(name: &str) -> Result<(), String> {
    if is_identifier(name, NAME_CHARS_MAX, |c| c == '-') {
        return Ok(());
    }
    Err(format!(
        "its name {name:?} is not a letter or underscore and then letters, digits, `_` or `-`, at \
         most {NAME_CHARS_MAX} in all"
    ))
}

fn check_root(parameters: &Value) -> Result<&Map<String, Value>, String> {
    let root = parameters.as_object().ok_or("its schema is not a JSON object")?;
    if root.get("type") != Some(&json!("object")) {
        return Err("its schema has no `\"type\": \"object\"` at the root".into());
    }
    if let Some(keyword) =
        ["allOf", "anyOf", "oneOf", "not", "$ref"].iter().find(|k| root.contains_key(**k))
    {
        return Err(format!("its schema has {keyword:?} at the root, which some providers refuse"));
    }
    let properties = match root.get("properties") {
        None => return Ok(root),
        Some(Value::Object(properties)) => properties,
        Some(_) => return Err("its schema's `properties` is not an object".into()),
    };
    match properties.keys().find(|key| !is_identifier(key, KEY_CHARS_MAX, |_| false)) {
        None => Ok(root),
        Some(key) => Err(format!(
            "its field {key:?} is not a letter or underscore and then letters, digits or `_`, at most \
             {KEY_CHARS_MAX} in all"
        )),
    }
}

/// Every list says what its items are. Only what is a schema is looked at: a field may itself be
/// called `type`.
fn check_lists(schema: &Value, place: &str) -> Result<(), String> {
    let Some(node) = schema.as_object() else { return Ok(()) };
    let is_list = match node.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.contains(&json!("array")),
        _ => false,
    };
    if is_list && !node.contains_key("items") {
        return Err(format!("a list in {place} has no `items`"));
    }
    if node.get("items").is_some_and(Value::is_array) {
        return Err(format!(
            "a list in {place} has a list of schemas as its `items`, and some providers take only one \
             schema there"
        ));
    }
    for (keyword, value) in node {
        match keyword.as_str() {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                for (name, child) in value.as_object().into_iter().flatten() {
                    check_lists(child, &format!("field {name:?}"))?;
                }
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .try_for_each(|child| check_lists(child, place))?;
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" => {
                let one = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                one.iter().try_for_each(|child| check_lists(child, place))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Some providers want `properties` and `required` even where there are none.
fn with_defaults(declared: &Arc<Declaration>, root: &Map<String, Value>) -> Arc<Declaration> {
    if root.contains_key("properties") && root.contains_key("required") {
        return declared.clone();
    }
    let mut root = root.clone();
    root.entry("properties").or_insert_with(|| json!({}));
    root.entry("required").or_insert_with(|| json!([]));
    Arc::new(Declaration { parameters: Value::Object(root), ..(**declared).clone() })
}

fn is_identifier(text: &str, chars_max: usize, also: impl Fn(char) -> bool) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first
        && text.len() <= chars_max
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || also(c))
}
