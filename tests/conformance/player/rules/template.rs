//! `${id}`, `${args}` and `${args.field}` in the strings of tools and hooks.

use serde_json::{Map, Value};

#[derive(Default, Clone, Copy)]
pub(crate) struct Template<'t> {
    pub(crate) call: Option<(&'t str, &'t Map<String, Value>)>,
}

impl Template<'_> {
    pub(crate) fn fill(&self, value: &Value) -> Value {
        let Some((id, args)) = self.call else { return value.clone() };
        match value {
            Value::String(text) => Value::String(fill(text, id, args)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, field)| (name.clone(), self.fill(field)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }
}

fn fill(text: &str, id: &str, args: &Map<String, Value>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        match name.split_once('.') {
            None if name == "id" => out.push_str(id),
            None if name == "args" => out.push_str(&compact(&Value::Object(args.clone()))),
            Some(("args", path)) => out.push_str(&field(args, path)),
            _ => out.push_str(&format!("${{{name}}}")),
        }
        rest = after;
    }
    out + rest
}

fn field(args: &Map<String, Value>, path: &str) -> String {
    let mut names = path.split('.');
    let first = names.next().and_then(|name| args.get(name));
    match names.fold(first, |value, name| value.and_then(|value| value.get(name))) {
        None => "undefined".into(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => compact(other),
    }
}

/// Compact JSON, integers without a fraction.
fn compact(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e21 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(compact).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, field)| format!("{}:{}", Value::String(name.clone()), compact(field)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}
