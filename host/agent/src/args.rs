//! The way of arguments from a model's text to a tool, as types: the output of each step is the
//! only key to the next, so no step can be skipped.
//!
//! text → [`parse`] → `ToolCall::arguments` → `Prepared` → `Valid` → as the hooks left them.

use crate::message::{Arguments, MalformedArguments, ToolCall};
use crate::schema::{Issue, Schema, shown};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Characters of the received arguments that an error result shows.
const RECEIVED_CHARS_MAX: usize = 4_000;

/// Parses the complete argument text of a call: a JSON object and nothing after it. An empty text
/// is a call without arguments.
///
/// One repair, which loses nothing: raw control characters inside strings are escaped. A backslash
/// that begins no escape is not guessed at: next to it may stand one that was meant as a character
/// and reads as an escape (`C:\new\Users`). A text that was cut off is never completed: a shorter number or path would pass any
/// schema (seed: "Truncated arguments validate fine").
pub fn parse(text: &str) -> Result<Arguments, MalformedArguments> {
    if text.trim().is_empty() {
        return Ok(Arguments::default());
    }
    let parsed = serde_json::from_str(text).or_else(|error| {
        let repaired = repaired(text);
        if repaired == text { Err(error) } else { serde_json::from_str(&repaired) }
    });
    let problem = match parsed {
        Ok(Value::Object(arguments)) => return Ok(Arc::new(arguments)),
        Ok(_) => "it is not a JSON object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(MalformedArguments { text: text.to_owned(), problem })
}

impl ToolCall {
    /// A call with the complete argument text that a model sent.
    pub fn from_text(id: impl Into<String>, name: impl Into<String>, text: &str) -> Self {
        let (arguments, malformed) = match parse(text) {
            Ok(arguments) => (arguments, None),
            Err(malformed) => (Arguments::default(), Some(malformed)),
        };
        Self { id: id.into(), name: name.into(), arguments, malformed, signature: None }
    }
}

/// Arguments after the tool's own preparation, if it has one.
pub(crate) struct Prepared(Value);

/// Arguments that satisfy the tool's schema.
pub(crate) struct Valid(Arguments);

/// Why arguments do not reach a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgsError {
    /// The model's text was no JSON object.
    Malformed(MalformedArguments),
    /// The schema rejects them.
    Invalid {
        /// At most [`crate::schema::ISSUES_MAX`] of what is wrong.
        issues: Vec<Issue>,
    },
}

impl Prepared {
    /// What a tool's preparation made of the arguments.
    pub(crate) fn new(value: Value) -> Self {
        Self(value)
    }

    /// The check, after coercion by the schema, which no schema can make lose anything. Arguments
    /// that satisfy the schema stay as they are.
    pub(crate) fn validated(self, schema: &Schema, coercion: bool) -> Result<Valid, ArgsError> {
        let Self(mut arguments) = self;
        let invalid = |issues| ArgsError::Invalid { issues };
        if !schema.accepts(&arguments).map_err(|issue| invalid(vec![issue]))? {
            if coercion {
                schema.coerce(&mut arguments);
            }
            schema.check(&arguments).map_err(invalid)?;
        }
        match arguments {
            Value::Object(arguments) => Ok(Valid(Arc::new(arguments))),
            // A schema that takes any type would let a preparation hand over something else.
            other => Err(ArgsError::Invalid { issues: vec![Issue::not_an_object(&other)] }),
        }
    }
}

impl From<&Arguments> for Prepared {
    fn from(arguments: &Arguments) -> Self {
        Self(Value::Object((**arguments).clone()))
    }
}

impl Valid {
    pub(crate) fn into_inner(self) -> Arguments {
        self.0
    }
}

impl ArgsError {
    /// For the model: what is wrong, and what was received.
    pub(crate) fn for_model(&self, tool: &str, received: &Map<String, Value>) -> String {
        match self {
            Self::Malformed(malformed) => {
                let cut: String = malformed.text.chars().take(RECEIVED_CHARS_MAX).collect();
                let more = if cut.len() < malformed.text.len() { "…" } else { "" };
                format!(
                    "The arguments of {tool:?} are not valid JSON: {}.\n\nReceived:\n{cut}{more}",
                    malformed.problem
                )
            }
            Self::Invalid { .. } => format!(
                "The arguments of {tool:?} do not satisfy its schema:\n{self}\n\nReceived:\n{}",
                shown(&Value::Object(received.clone()), RECEIVED_CHARS_MAX)
            ),
        }
    }
}

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => write!(f, "not a JSON object: {}", malformed.problem),
            Self::Invalid { issues } => {
                for (index, issue) in issues.iter().enumerate() {
                    let newline = if index > 0 { "\n" } else { "" };
                    write!(f, "{newline}- {issue}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ArgsError {}

/// Escapes raw control characters inside strings.
fn repaired(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '"' => in_string = !in_string,
            '\\' => escaped = in_string,
            c if in_string && c < ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}
