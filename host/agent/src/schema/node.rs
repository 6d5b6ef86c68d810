//! The parts of a schema that apply to a value itself, and those that apply to its members.

use serde_json::{Map, Value};

/// Keywords whose value is a list of schemas for the same value.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value is one schema for the same value.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose value is an object of schemas for the same value.
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is one schema for each member.
const MEMBER_ONE: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "contentSchema",
];

/// What a reference leads to; `None` if it is not a pointer into this document.
pub(super) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(root);
    }
    let decoded = percent_decoded(pointer)?;
    root.pointer(&decoded)
}

/// The references of one schema node.
pub(super) fn references(node: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"]
        .into_iter()
        .filter_map(|keyword| node.get(keyword).and_then(Value::as_str))
}

/// Schemas that apply to the same value as the node, references excepted.
pub(super) fn same(node: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let lists = SAME_LISTS.into_iter().filter_map(|k| node.get(k)?.as_array()).flatten();
    let ones = SAME_ONE.into_iter().filter_map(|k| node.get(k));
    let maps = SAME_MAPS.into_iter().filter_map(|k| node.get(k)?.as_object()).flat_map(Map::values);
    lists.chain(ones).chain(maps)
}

/// Schemas that apply to members of the value, whichever they are.
pub(super) fn members(node: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let ones = MEMBER_ONE.into_iter().filter_map(|k| node.get(k));
    let properties = ["properties", "patternProperties"]
        .into_iter()
        .filter_map(|k| node.get(k)?.as_object())
        .flat_map(Map::values);
    let items =
        ["items", "prefixItems"].into_iter().filter_map(|k| node.get(k)).flat_map(list_or_one);
    ones.chain(properties).chain(items)
}

/// Values that a node compares a value with: literals, and names that must be there.
pub(super) fn data(node: &Map<String, Value>) -> u64 {
    let keywords = ["enum", "const", "required", "dependentRequired", "dependencies"];
    keywords
        .into_iter()
        .filter_map(|keyword| node.get(keyword))
        .map(|listed| count(listed) - 1)
        .sum()
}

/// The number of values. The depth is bounded before anybody asks.
pub(super) fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Calls `each` with every schema that applies to a member of `value` or to its name, until it
/// answers `None`.
pub(super) fn each_member<'s>(
    node: &'s Map<String, Value>,
    value: &Value,
    each: &mut dyn FnMut(&'s Value, &Value) -> Option<()>,
) -> Option<()> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, member)| {
            if let Some(schema) = node.get("propertyNames") {
                each(schema, &Value::String(name.clone()))?;
            }
            field_schemas(node, name).try_for_each(|schema| each(schema, member))
        }),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            item_schemas(node, index).try_for_each(|schema| each(schema, item))
        }),
        _ => Some(()),
    }
}

/// Whether a node says anything about members.
pub(super) fn has_members(node: &Map<String, Value>) -> bool {
    members(node).next().is_some()
}

/// Patterns are not tried: all of them count as if they applied.
fn field_schemas<'s>(node: &'s Map<String, Value>, name: &str) -> impl Iterator<Item = &'s Value> {
    let declared = node.get("properties").and_then(|properties| properties.get(name));
    let patterns = node.get("patternProperties").and_then(Value::as_object);
    let others = ["additionalProperties", "unevaluatedProperties"].into_iter();
    let others = others.filter(move |_| declared.is_none()).filter_map(|keyword| node.get(keyword));
    declared.into_iter().chain(patterns.into_iter().flat_map(Map::values)).chain(others)
}

fn item_schemas(node: &Map<String, Value>, index: usize) -> impl Iterator<Item = &Value> {
    let others = ["contains", "additionalItems", "unevaluatedItems"].into_iter();
    item_schema(node, index).into_iter().chain(others.filter_map(|keyword| node.get(keyword)))
}

/// What an array's item has to satisfy: by place in a tuple, else what holds for every item.
pub(super) fn item_schema(node: &Map<String, Value>, index: usize) -> Option<&Value> {
    let tuple = match (node.get("prefixItems"), node.get("items")) {
        (Some(Value::Array(tuple)), _) | (None, Some(Value::Array(tuple))) => tuple.as_slice(),
        _ => &[],
    };
    tuple.get(index).or_else(|| node.get("items").filter(|items| !items.is_array()))
}

/// Draft 7 has a list of schemas where 2020-12 has `prefixItems`.
fn list_or_one(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let hex = text.get(at + 1..at + 3)?;
            out.push(u8::from_str_radix(hex, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}
