//! What the tools and hooks of a scenario do, as far as it can be told from values alone. The native
//! player and the puppet guest (`tests/guests/puppet`) obey the same rules.

mod prepare;
mod template;

pub(crate) use prepare::prepared;
pub(crate) use template::Template;

use serde_json::{Map, Value, json};

/// How the steps of a tool ended.
pub(crate) enum Ending {
    Returned(Value),
    Threw(String),
    /// They ran out.
    Nothing,
}

/// What a step ends its list with, if it does.
pub(crate) fn ending(step: &Value) -> Option<Ending> {
    let fields = step.as_object()?;
    if let Some(result) = fields.get("return") {
        return Some(Ending::Returned(result.clone()));
    }
    thrown(step).map(Ending::Threw)
}

/// The steps of a call: by its id, else by the first condition that holds, else the tool's own.
pub(crate) fn steps(tool: &Value, id: &str, args: &Map<String, Value>) -> Value {
    if let Some(steps) = tool["calls"].get(id) {
        return steps.clone();
    }
    let cases = list(&tool["cases"]);
    if let Some(case) = cases.iter().find(|case| holds(&case["if"], id, None, args)) {
        return case["steps"].clone();
    }
    let default = || json!([{"return": {"content": [{"type": "text", "text": "ok"}]}}]);
    tool.get("steps").cloned().unwrap_or_else(default)
}

/// The rule of a hook that applies to a call: the first whose condition holds, else an empty one.
pub(crate) fn rule(rules: &Value, id: &str, nth: u64, args: &Map<String, Value>) -> Value {
    let holds = |rule: &&Value| holds(&rule["if"], id, Some(nth), args);
    list(rules).iter().find(holds).cloned().unwrap_or_default()
}

/// The arguments as a rule of a before-hook changes them, if it does.
pub(crate) fn rewritten(rule: &Value, args: &Map<String, Value>) -> Option<Map<String, Value>> {
    if rule.get("mutate").is_none() && rule.get("delete").is_none() {
        return None;
    }
    let mut args = args.clone();
    for (name, value) in rule["mutate"].as_object().into_iter().flatten() {
        args.insert(name.clone(), value.clone());
    }
    for name in texts(&rule["delete"]) {
        args.shift_remove(&name);
    }
    Some(args)
}

/// The text of what a step or rule throws.
pub(crate) fn thrown(step: &Value) -> Option<String> {
    let fields = step.as_object()?;
    fields.get("throw").or_else(|| fields.get("throw_value")).map(script_text)
}

/// The items of a list; a missing list is empty, a single value a list of one.
pub(crate) fn list(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// The texts of a list.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether a condition of a case or rule holds.
fn holds(condition: &Value, id: &str, nth: Option<u64>, args: &Map<String, Value>) -> bool {
    let Some(condition) = condition.as_object() else { return true };
    condition.iter().all(|(name, wanted)| match name.as_str() {
        "id" => wanted == id || list(wanted).iter().any(|one| one == id),
        "nth" => wanted.as_u64() == nth,
        "args" => contains(&Value::Object(args.clone()), wanted),
        other => panic!("unknown condition {other:?}"),
    })
}

/// Whether `part` is in `whole`: objects by their fields, everything else as a whole.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part))),
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => whole == part,
    }
}

/// A value as the language of the recordings turns it into text.
fn script_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) => "[object Object]".into(),
        Value::Array(items) => {
            let item =
                |item: &Value| if item.is_null() { String::new() } else { script_text(item) };
            items.iter().map(item).collect::<Vec<_>>().join(",")
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
