//! Arguments that come as pieces with JSON paths (`{"jsonPath": "$.items[0].name", "stringValue":
//! "…"}`). We never ask for them; a server may send them all the same.

use crate::draft::{arguments, arguments_text};
use serde_json::{Map, Value};

/// Keys of one path. What reads arguments, and what drops them, has a stack frame for each level.
const KEYS_MAX: usize = 64;

/// The arguments so far.
#[derive(Debug, Default)]
pub(super) struct PartialArgs {
    fields: Map<String, Value>,
    /// What came in place of an object, and is none.
    unfit: Option<String>,
}

enum Key<'p> {
    Field(&'p str),
    Item(usize),
}

impl PartialArgs {
    /// Takes the arguments whole: an object, or the text of one. Nothing does not take away what
    /// came in pieces.
    pub(super) fn replace(&mut self, whole: &Value) {
        let text = arguments_text(whole);
        match arguments(&text) {
            Ok(fields) if fields.is_empty() => {}
            Ok(fields) => self.fields = (*fields).clone(),
            Err(_) => self.unfit = Some(text),
        }
    }

    /// Takes one piece. A text goes on with what its path has already.
    pub(super) fn take(&mut self, piece: &Value) -> Result<(), String> {
        let path = piece["jsonPath"].as_str().unwrap_or_default();
        let keys = keys(path).ok_or_else(|| format!("the path `{path}` cannot be followed"))?;
        let mut root = Value::Object(std::mem::take(&mut self.fields));
        let placed = place(&mut root, &keys, piece);
        if let Value::Object(fields) = root {
            self.fields = fields;
        }
        placed.ok_or_else(|| format!("the path `{path}` does not fit what came before"))
    }

    /// The arguments as JSON text.
    pub(super) fn text(&self) -> String {
        match &self.unfit {
            Some(text) => text.clone(),
            None => Value::Object(self.fields.clone()).to_string(),
        }
    }
}

fn place(root: &mut Value, keys: &[Key<'_>], piece: &Value) -> Option<()> {
    let mut at = root;
    for key in keys {
        at = match key {
            Key::Field(name) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(*name).or_insert(Value::Null)
            }
            Key::Item(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let items = at.as_array_mut()?;
                // Lists grow item by item: a path could ask for one of any length.
                if *index == items.len() {
                    items.push(Value::Null);
                }
                items.get_mut(*index)?
            }
        };
    }
    match (&piece["stringValue"], &mut *at) {
        (Value::String(more), Value::String(text)) => text.push_str(more),
        (Value::String(text), at) => *at = Value::String(text.clone()),
        (_, at) => {
            let value = piece.get("numberValue").or_else(|| piece.get("boolValue"));
            *at = value.cloned().unwrap_or(Value::Null);
        }
    }
    Some(())
}

/// `$.a.b[0]['c']` as keys.
fn keys(path: &str) -> Option<Vec<Key<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let key;
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (key, rest) = (Key::Field(&after[..end]), &after[end..]);
        } else {
            let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
            let quoted = |q| inner.strip_prefix(q)?.strip_suffix(q);
            key = match quoted('\'').or_else(|| quoted('"')) {
                Some(name) => Key::Field(name),
                None => Key::Item(inner.parse().ok()?),
            };
            rest = after;
        }
        keys.push(key);
        if keys.len() > KEYS_MAX {
            return None;
        }
    }
    (!keys.is_empty()).then_some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_are_put_in_their_places() {
        let mut arguments = PartialArgs::default();
        for piece in [
            json!({"jsonPath": "$.list[0].name", "stringValue": "app", "willContinue": true}),
            json!({"jsonPath": "$.list[0].name", "stringValue": "le"}),
            json!({"jsonPath": "$['list'][1]", "numberValue": 0.5}),
            json!({"jsonPath": "$.yes", "boolValue": true}),
            json!({"jsonPath": "$.no", "nullValue": "NULL_VALUE"}),
        ] {
            arguments.take(&piece).unwrap();
        }
        let want = json!({"list": [{"name": "apple"}, 0.5], "yes": true, "no": null});
        assert_eq!(serde_json::from_str::<Value>(&arguments.text()).unwrap(), want);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_refused() {
        let mut arguments = PartialArgs::default();
        arguments.take(&json!({"jsonPath": "$.a", "numberValue": 1})).unwrap();
        let deep = format!("${}", ".x".repeat(100_000));
        for path in ["", "a", "$", "$.a.b", "$[0]", "$.l[99999999]", "$.l[x]", "$.l[0", &deep] {
            assert!(
                arguments.take(&json!({"jsonPath": path, "numberValue": 2})).is_err(),
                "{path}"
            );
        }
        assert!(arguments.text().starts_with(r#"{"a":1"#));
    }
}
