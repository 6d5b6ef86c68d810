//! Arguments, from a model's text to what a tool gets.

use crate::texts::is_harmless;
use cofferdam_agent::args::parse;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::preview::Preview;
use cofferdam_agent::testing::FnTool;
use cofferdam_agent::toolset::{Rules, Toolset};
use cofferdam_sandbox::testing;
use serde_json::Value;
use std::sync::Arc;

/// The complete text of a call is an object or malformed, and reads as it is written.
pub fn argument_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse(&text) {
        Ok(arguments) => {
            let written = Value::Object((*arguments).clone()).to_string();
            let again = parse(&written).unwrap_or_else(|problem| panic!("{problem:?}"));
            assert_eq!(again, arguments);
        }
        Err(malformed) => {
            assert_eq!(malformed.text, text);
            assert!(!malformed.problem.is_empty());
        }
    }
}

/// A preview never fails, however the text comes in pieces; once the text is complete, it shows
/// what the final reading gives.
pub fn preview(bytes: &[u8]) {
    let Some((&size, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let mut preview = Preview::default();
    let mut shown = None;
    let mut rest = &*text;
    while !rest.is_empty() {
        let (piece, after) =
            rest.split_at(rest.ceil_char_boundary(usize::from(size).max(1).min(rest.len())));
        shown = preview.push(piece).or(shown);
        rest = after;
    }
    let whole = Preview::default().push(&text);
    if let (Ok(last), Some(whole)) = (serde_json::from_str::<Value>(&text), whole)
        && let Value::Object(fields) = last
    {
        let names = |arguments: &Arguments| arguments.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&whole), fields.keys().cloned().collect::<Vec<_>>());
    }
}

/// The first line is a schema, the rest are arguments: the schema is taken or refused in words, and
/// arguments that are taken are taken again as they are.
pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (schema, arguments) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    for rules in [Rules::Portable, Rules::Lenient] {
        let tool = FnTool::text("t", "").with_parameters(schema.clone()).shared();
        let tools = Toolset::new([tool], rules);
        for refused in tools.refused() {
            assert!(
                !refused.reason.is_empty() && is_harmless(&refused.reason),
                "{}",
                refused.reason
            );
        }
        let Ok(arguments) = parse(arguments) else { continue };
        match tools.validate("t", &arguments) {
            None => assert!(tools.is_empty()),
            Some(Err(problem)) => assert!(!problem.to_string().is_empty()),
            Some(Ok(valid)) => {
                let again = tools.validate("t", &Arc::clone(&valid));
                assert_eq!(again.and_then(Result::ok), Some(valid), "from {arguments:?}");
            }
        }
    }
}

/// JSON from a guest is read, or refused in words.
pub fn guest_json(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match testing::guest_json(&text) {
        Ok(value) => assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(value)),
        Err(problem) => assert!(problem.starts_with("are ") || problem.starts_with("hold ")),
    }
}
