//! What a plugin says of its tools, checked. A tool that breaks a rule is refused with the reason;
//! the others are offered.

use crate::text::visible;
use cofferdam_agent::tool::{Declaration, Execution};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A tool as the guest declared it, unchecked.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) execution: Execution,
    pub(crate) meta: Vec<(String, String)>,
}

/// A tool of a plugin, checked.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// What the model is told; the name is the plugin's own, without the operator's prefix.
    pub declaration: Arc<Declaration>,
    /// Which other calls a call may run beside.
    pub execution: Execution,
    /// Hints that inform people and grant nothing, such as `read-only`.
    pub meta: BTreeMap<String, String>,
}

/// A tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedTool {
    /// Its name, fit to show.
    pub name: String,
    /// Why, and what would do.
    pub reason: String,
}

const TOOLS_MAX: usize = 128;
const NAME_BYTES_MAX: usize = 63;
const LABEL_BYTES_MAX: usize = 200;
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
const SCHEMA_BYTES_MAX: usize = 64 << 10;
const LANES_MAX: usize = 8;
const META_MAX: usize = 32;
const META_BYTES_MAX: usize = 64 << 10;

/// Sorts what a plugin offers into tools and refusals.
pub(crate) fn check(offered: Vec<Offered>) -> (Vec<ToolSpec>, Vec<RefusedTool>) {
    let mut seen = BTreeSet::new();
    let mut tools = Vec::new();
    let mut refused = Vec::new();
    for (place, tool) in offered.into_iter().enumerate() {
        let name = visible(&tool.name, 100);
        let checked = match () {
            () if place >= TOOLS_MAX => Err(format!("a plugin offers at most {TOOLS_MAX} tools")),
            () if !seen.insert(tool.name.clone()) => {
                Err("the plugin offers another tool of this name".into())
            }
            () => check_tool(tool),
        };
        match checked {
            Ok(tool) => tools.push(tool),
            // The list of refusals is bounded like that of tools.
            Err(reason) if refused.len() < TOOLS_MAX => refused.push(RefusedTool { name, reason }),
            Err(_) => {}
        }
    }
    (tools, refused)
}

fn check_tool(tool: Offered) -> Result<ToolSpec, String> {
    check_name(&tool.name)?;
    if tool.description.trim().is_empty() {
        return Err(
            "it has no description, and a model cannot use what it is not told about".into()
        );
    }
    if tool.description.len() > DESCRIPTION_BYTES_MAX {
        return Err(format!("its description is longer than {} KiB", DESCRIPTION_BYTES_MAX >> 10));
    }
    if tool.label.as_ref().is_some_and(|label| label.len() > LABEL_BYTES_MAX) {
        return Err(format!("its label is longer than {LABEL_BYTES_MAX} bytes"));
    }
    if tool.label.as_ref().is_some_and(|label| visible(label, label.len()) != *label) {
        return Err("its label has control characters or others that are not seen".into());
    }
    if tool.meta.len() > META_MAX {
        return Err(format!("it has more than {META_MAX} meta pairs"));
    }
    let meta_bytes = tool.meta.iter().map(|(name, value)| name.len() + value.len());
    if meta_bytes.sum::<usize>() > META_BYTES_MAX {
        return Err(format!("its meta pairs are larger than {} KiB", META_BYTES_MAX >> 10));
    }
    Ok(ToolSpec {
        execution: check_execution(tool.execution)?,
        meta: tool.meta.into_iter().collect(),
        declaration: Arc::new(Declaration {
            parameters: check_schema(&tool.parameters)?,
            name: tool.name,
            label: tool.label,
            description: tool.description,
        }),
    })
}

/// The names that models, providers and other hosts all take.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let good = |(place, b): (usize, u8)| {
        b.is_ascii_alphabetic() || b == b'_' || (place > 0 && (b.is_ascii_digit() || b == b'-'))
    };
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().enumerate().all(good) {
        return Ok(());
    }
    Err(format!(
        "the name `{}` is not a letter or `_` and then letters, digits, `_` or `-`, {NAME_BYTES_MAX} at most",
        visible(name, 100)
    ))
}

fn check_execution(execution: Execution) -> Result<Execution, String> {
    if let Execution::Exclusive(lanes) = &execution {
        if lanes.is_empty() || lanes.len() > LANES_MAX {
            return Err(format!("an exclusive tool names 1 to {LANES_MAX} lanes"));
        }
        if lanes.iter().any(|lane| lane.is_empty() || lane.len() > NAME_BYTES_MAX) {
            return Err(format!("the name of a lane has 1 to {NAME_BYTES_MAX} bytes"));
        }
    }
    Ok(execution)
}

fn check_schema(text: &str) -> Result<Value, String> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(format!("its schema is larger than {} KiB", SCHEMA_BYTES_MAX >> 10));
    }
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("its schema is no JSON: {error}"))?;
    let Some(map) = schema.as_object() else {
        return Err("its schema is no JSON object".into());
    };
    match map.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        _ => {
            return Err(
                "its schema must have \"type\": \"object\", as arguments are an object".into()
            );
        }
    }
    match remote_reference(&schema) {
        Some(reference) => Err(format!(
            "its schema refers to `{}`; only references within it, which begin with `#`, are followed",
            visible(reference, 100)
        )),
        None => Ok(schema),
    }
}

/// The first reference that leads out of a schema. The parser has bounded its depth.
fn remote_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to))
                if !to.starts_with('#') =>
            {
                Some(to.as_str())
            }
            _ => remote_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(remote_reference),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(name: &str, parameters: &str) -> Offered {
        Offered {
            name: name.into(),
            label: None,
            description: "does".into(),
            parameters: parameters.into(),
            execution: Execution::Parallel,
            meta: Vec::new(),
        }
    }

    fn reason(tool: Offered) -> String {
        check(vec![tool]).1.pop().map_or_else(|| "offered".into(), |refused| refused.reason)
    }

    const ANY: &str = r#"{"type":"object"}"#;

    #[test]
    fn rules_of_a_tool() {
        let long = "x".repeat(64);
        for (name, schema, expected) in [
            ("read_file", ANY, "offered"),
            ("_a-1", ANY, "offered"),
            ("", ANY, "is not a letter"),
            ("1a", ANY, "is not a letter"),
            ("-a", ANY, "is not a letter"),
            ("a b", ANY, "is not a letter"),
            ("a\u{1b}[2J", ANY, "`a\\u{1b}[2J`"),
            (long.as_str(), ANY, "63 at most"),
            ("a", "{", "no JSON"),
            ("a", "[]", "no JSON object"),
            ("a", "{}", "must have \"type\""),
            (
                "a",
                r#"{"type":"object","properties":{"x":{"$ref":"https://evil.com/s"}}}"#,
                "`https://evil.com/s`",
            ),
            ("a", r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}}}"##, "offered"),
        ] {
            let reason = reason(offered(name, schema));
            assert!(reason.contains(expected), "{name} {schema}: {reason}");
        }
        let deep = format!("{{\"type\":\"object\",\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        assert!(reason(offered("a", &deep)).contains("no JSON"));
        assert!(
            reason(Offered { description: " ".into(), ..offered("a", ANY) })
                .contains("no description")
        );
        let lanes = Execution::Exclusive(vec!["x".into(); 9]);
        assert!(reason(Offered { execution: lanes, ..offered("a", ANY) }).contains("1 to 8 lanes"));
    }

    #[test]
    fn one_bad_tool_does_not_spoil_the_others() {
        let (tools, refused) =
            check(vec![offered("a", ANY), offered("a", ANY), offered("b", "x"), offered("c", ANY)]);
        assert_eq!((tools.len(), refused.len()), (2, 2));
        let many = (0..200).map(|n| offered(&format!("t{n}"), ANY)).collect();
        let (tools, refused) = check(many);
        assert_eq!((tools.len(), refused.len()), (128, 72));
    }
}
