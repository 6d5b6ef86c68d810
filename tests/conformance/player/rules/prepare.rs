//! Declarative argument preparation: rules applied in turn to a copy of the arguments.

use super::{list, texts, thrown};
use serde_json::{Map, Value};

pub(crate) fn prepared(rules: &Value, arguments: &Map<String, Value>) -> Result<Value, String> {
    let mut arguments = Value::Object(arguments.clone());
    for rule in list(rules) {
        if applies(rule, &arguments) {
            apply(rule, &mut arguments)?;
        }
    }
    Ok(arguments)
}

fn applies(rule: &Value, arguments: &Value) -> bool {
    texts(&rule["if_missing"]).iter().all(|field| arguments.get(field).is_none())
}

fn apply(rule: &Value, arguments: &mut Value) -> Result<(), String> {
    if let Some(message) = thrown(rule) {
        return Err(message);
    }
    if let Some(replacement) = rule.get("replace") {
        *arguments = replacement.clone();
    }
    let Some(fields) = arguments.as_object_mut() else { return Ok(()) };
    for (from, to) in rule["rename"].as_object().into_iter().flatten() {
        if let (Some(value), Some(to)) = (fields.shift_remove(from), to.as_str()) {
            fields.insert(to.to_owned(), value);
        }
    }
    for field in texts(&rule["delete"]) {
        fields.shift_remove(&field);
    }
    for (field, value) in rule["set"].as_object().into_iter().flatten() {
        fields.insert(field.clone(), value.clone());
    }
    if let Some(fold) = rule.get("fold") {
        fold_into(fold, fields);
    }
    Ok(())
}

/// Moves fields into an object at the end of a list.
fn fold_into(fold: &Value, fields: &mut Map<String, Value>) {
    let moved: Map<String, Value> = texts(&fold["fields"])
        .into_iter()
        .filter_map(|field| fields.shift_remove(&field).map(|value| (field, value)))
        .collect();
    let into = fold["into"].as_str().unwrap_or_default();
    let list = fields.entry(into).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(Value::Object(moved));
    }
}
