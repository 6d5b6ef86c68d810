//! How strictly traces are compared: order and content of all records; numbers by value; missing,
//! null and empty details alike; of a validation error only that it is one; system messages left
//! out, since here the prompt is a field of the request.

use serde_json::{Map, Value};

/// The records of a trace, brought into one form.
pub fn parse(text: &str) -> Vec<Value> {
    // Split on line feeds only: texts may contain U+2028.
    let records = text.split('\n').filter(|line| !line.trim().is_empty());
    let records = records.map(|line| serde_json::from_str(line).expect("a record is JSON"));
    records.filter(|record: &Value| !is_system(&record["message"])).map(canonical).collect()
}

/// The first record in which two traces differ, in words.
pub fn difference(got: &[Value], want: &[Value]) -> Option<String> {
    let got: Vec<Value> = got.iter().cloned().map(canonical).collect();
    let at = (0..got.len().max(want.len())).find(|at| got.get(*at) != want.get(*at))?;
    let show = |records: &[Value]| records.get(at).map_or("(end)".into(), Value::to_string);
    Some(format!("record {}\n  want {}\n  got  {}", at + 1, show(want), show(&got)))
}

fn is_system(value: &Value) -> bool {
    value["role"] == "system" || value == "system"
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => object(fields),
        Value::Array(items) => {
            items.into_iter().filter(|item| !is_system(item)).map(canonical).collect()
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        other => other,
    }
}

fn object(mut fields: Map<String, Value>) -> Value {
    if fields.get("host").is_some_and(|host| host == "validation_failed") {
        fields.retain(|name, _| name != "issues" && name != "received");
        return Value::Object(fields);
    }
    let mut out = Map::new();
    for (name, value) in fields {
        if value.is_null() || name == "loop_context" || name == "agent_state" {
            continue;
        }
        let exact = name == "args" || name == "arguments";
        out.insert(name, if exact { numbers(value) } else { canonical(value) });
    }
    if out.get("details").is_some_and(|details| details == &Value::Object(Map::new())) {
        out.remove("details");
    }
    let bare = out.keys().all(|name| name == "content" || name == "details");
    let may_be_missing = bare || out.contains_key("role") || out.contains_key("terminate");
    if may_be_missing && out.get("content") == Some(&Value::Array(Vec::new())) {
        out.remove("content");
    }
    Value::Object(out)
}

/// Numbers by value, and nothing else changed.
fn numbers(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, field)| (name, numbers(field))).collect())
        }
        Value::Array(items) => items.into_iter().map(numbers).collect(),
        other => canonical(other),
    }
}
