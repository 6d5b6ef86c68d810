//! Coercion before validation: models write `"5"` where a schema says integer. Guided by the
//! schema, without any loss, and only where the schema leaves one reading; what is not certain
//! stays as it is, for the validator to report (nearai/ironclaw 486; reference: "Argument
//! preparation").
//!
//! What it does, each only if the value's own type is not accepted:
//! - text that is a number or `true` / `false` becomes that;
//! - text that is a JSON list or object becomes that;
//! - a number or a boolean becomes its text, if text is all that the schema takes;
//! - a single value becomes a list of one;
//! - a `null` for an optional field that takes no null is left out.

use super::node::{item_schema, resolve};
use serde_json::{Map, Number, Value};

/// Schema nodes visited for one set of arguments. Beyond it, values stay as they are.
const STEPS_MAX: usize = 100_000;
/// Decimal digits that a 64-bit float keeps for certain.
const SAFE_DIGITS: usize = 15;

pub(super) fn coerce(root: &Value, arguments: &mut Value) {
    Coercion { root, steps: STEPS_MAX }.value(root, arguments);
}

struct Coercion<'s> {
    root: &'s Value,
    steps: usize,
}

/// The types that a schema node takes, and the literals if it lists them.
#[derive(Default)]
struct Reading<'s> {
    types: Vec<&'s str>,
    literals: Option<Vec<&'s Value>>,
    /// The nodes that describe members, by the type of the value that they describe.
    nodes: Vec<&'s Map<String, Value>>,
}

impl<'s> Coercion<'s> {
    fn value(&mut self, schema: &'s Value, value: &mut Value) {
        let mut reading = Reading::default();
        self.read(schema, &mut reading, 0);
        if !reading.accepts(value)
            && let Some(better) = reading.only_reading(value)
        {
            *value = better;
        }
        match value {
            Value::Object(fields) => {
                if let Some(node) = reading.node_for("object") {
                    self.fields(node, fields);
                }
            }
            Value::Array(items) => {
                if let Some(node) = reading.node_for("array") {
                    for (index, item) in items.iter_mut().enumerate() {
                        if let Some(schema) = item_schema(node, index) {
                            self.value(schema, item);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, node: &'s Map<String, Value>, fields: &mut Map<String, Value>) {
        let properties = node.get("properties").and_then(Value::as_object);
        let required = node.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|r| r.as_str() == Some(name)));
        let mut absent = Vec::new();
        for (name, value) in fields.iter_mut() {
            let declared = properties.and_then(|properties| properties.get(name));
            let others = node
                .get("additionalProperties")
                .filter(|_| !node.contains_key("patternProperties"));
            let Some(schema) = declared.or(others) else { continue };
            if value.is_null()
                && declared.is_some()
                && !is_required(name)
                && !self.takes_null(schema)
            {
                absent.push(name.clone());
                continue;
            }
            self.value(schema, value);
        }
        for name in absent {
            fields.shift_remove(&name);
        }
    }

    fn takes_null(&mut self, schema: &'s Value) -> bool {
        let mut reading = Reading::default();
        self.read(schema, &mut reading, 0);
        reading.accepts(&Value::Null)
    }

    /// Collects what a node takes, through references and combinators. A node that says nothing
    /// about types leaves everything open, which `accepts` then answers with yes.
    fn read(&mut self, schema: &'s Value, reading: &mut Reading<'s>, depth: usize) {
        let Some(node) = schema.as_object() else { return };
        let Some(steps) = self.steps.checked_sub(1) else { return };
        self.steps = steps;
        if depth > 16 {
            return;
        }
        match node.get("type") {
            Some(Value::String(name)) => reading.types.push(name),
            Some(Value::Array(names)) => {
                reading.types.extend(names.iter().filter_map(Value::as_str));
            }
            _ => {}
        }
        if let Some(values) = node.get("enum").and_then(Value::as_array) {
            self.steps = self.steps.saturating_sub(values.len());
            reading.literals.get_or_insert_default().extend(values);
        }
        if let Some(value) = node.get("const") {
            reading.literals.get_or_insert_default().push(value);
        }
        if DESCRIBES_MEMBERS.iter().any(|keyword| node.contains_key(*keyword)) {
            reading.nodes.push(node);
        }
        if let Some(reference) = node.get("$ref").and_then(Value::as_str)
            && let Some(target) = resolve(self.root, reference)
        {
            self.read(target, reading, depth + 1);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in node.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                self.read(branch, reading, depth + 1);
            }
        }
    }
}

/// Keywords that make a node the description of a list or object.
const DESCRIBES_MEMBERS: [&str; 4] = ["properties", "additionalProperties", "items", "prefixItems"];

impl<'s> Reading<'s> {
    fn accepts(&self, value: &Value) -> bool {
        match &self.literals {
            Some(literals) => literals.contains(&value) || self.types_beside_literals(value),
            None => self.types.is_empty() || self.types.iter().any(|name| is_type(value, name)),
        }
    }

    /// A union may have literals in one branch and a type in another; a node with an enumeration
    /// usually names the type of its members as well, which says nothing more.
    fn types_beside_literals(&self, value: &Value) -> bool {
        let literals = self.literals.iter().flatten();
        let of_literals: Vec<&str> = literals.map(|literal| type_of(literal)).collect();
        self.types.iter().any(|name| {
            is_type(value, name)
                && !of_literals.iter().any(|t| t == name || (*t == "integer" && *name == "number"))
        })
    }

    /// The one value that the schema would take instead, if there is exactly one.
    fn only_reading(&self, value: &Value) -> Option<Value> {
        if let Some(literals) = &self.literals {
            let mut fitting = literals.iter().filter(|literal| same_text(literal, value));
            let first = fitting.next()?;
            return fitting.next().is_none().then(|| (*first).clone());
        }
        let mut names = self.types.clone();
        names.sort_unstable();
        names.dedup();
        if names.contains(&"number") {
            names.retain(|name| *name != "integer");
        }
        let mut readings = names.iter().filter_map(|name| read_as(value, name, names.len() == 1));
        let first = readings.next()?;
        readings.next().is_none().then_some(first)
    }

    /// The node that describes members of a value of this type, if just one does.
    fn node_for(&self, name: &str) -> Option<&'s Map<String, Value>> {
        let keywords: &[&str] = if name == "object" {
            &["properties", "additionalProperties"]
        } else {
            &["items", "prefixItems"]
        };
        let mut fitting = self
            .nodes
            .iter()
            .filter(|node| keywords.iter().any(|keyword| node.contains_key(*keyword)));
        let first = fitting.next()?;
        fitting.next().is_none().then_some(*first)
    }
}

/// A value read as another type; `None` if that would lose anything.
fn read_as(value: &Value, name: &str, only: bool) -> Option<Value> {
    match (name, value) {
        ("integer", Value::String(text)) => number(text).filter(|n| is_type(n, "integer")),
        ("number", Value::String(text)) => number(text),
        ("boolean", Value::String(text)) => {
            let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
            (is("true") || is("false")).then(|| Value::Bool(is("true")))
        }
        ("string", Value::Number(_) | Value::Bool(_)) if only => {
            Some(Value::String(value.to_string()))
        }
        ("array" | "object", Value::String(text)) => {
            let parsed: Option<Value> = serde_json::from_str(text).ok();
            let parsed = parsed.filter(|parsed| is_type(parsed, name));
            parsed.or_else(|| (name == "array" && only).then(|| Value::Array(vec![value.clone()])))
        }
        ("array", Value::Number(_) | Value::Bool(_) | Value::Object(_)) if only => {
            Some(Value::Array(vec![value.clone()]))
        }
        _ => None,
    }
}

/// A number that keeps every digit of its text. Leading zeros are taken for an identifier.
fn number(text: &str) -> Option<Value> {
    let number: Number = serde_json::from_str(text).ok()?;
    if number.is_i64() || number.is_u64() {
        return Some(Value::Number(number));
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (digits <= SAFE_DIGITS).then_some(Value::Number(number))
}

/// Whether a literal and a value of another type are written the same way.
fn same_text(literal: &Value, value: &Value) -> bool {
    let (text, other) = match (literal, value) {
        (Value::String(text), other) | (other, Value::String(text)) => (text, other),
        _ => return false,
    };
    match other {
        Value::Number(number) => number.to_string().eq(text),
        Value::Bool(truth) => (if *truth { "true" } else { "false" }) == text,
        _ => false,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => match value {
            Value::Number(n) => {
                n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            _ => false,
        },
        "number" => value.is_number(),
        name => type_of(value) == name,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
