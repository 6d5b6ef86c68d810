//! JSON Schema of a tool's arguments: compiled once when the tool is declared, offline, with linear
//! patterns, and only if checking against it is bounded work: two kilobytes of nested `anyOf` can
//! cost a plain validator minutes.

mod bounds;
mod coerce;
mod issue;
mod node;

pub use issue::Issue;
pub(crate) use issue::shown;

use bounds::Bounds;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use std::sync::Arc;

/// Issues listed for one set of arguments.
pub const ISSUES_MAX: usize = 5;

/// Bytes of one compiled pattern, and of its lazy states.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Bytes of all compiled patterns of a schema, shared evenly.
const PATTERNS_BYTES_MAX: usize = 2 << 20;

/// A compiled schema.
#[derive(Clone)]
pub(crate) struct Schema {
    document: Arc<Value>,
    validator: Validator,
    bounds: Bounds,
}

impl Schema {
    /// Compiles a schema, or says why it is not taken.
    pub(crate) fn compile(document: &Value) -> Result<Self, String> {
        let bounds = Bounds::of(document)?;
        let share = (PATTERNS_BYTES_MAX / bounds.patterns().max(1)).min(PATTERN_BYTES_MAX);
        let patterns = PatternOptions::regex().size_limit(share).dfa_size_limit(share);
        let validator = jsonschema::options()
            .offline()
            .with_draft(draft(document)?)
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .build(document)
            .map_err(|error| format!("its schema does not compile: {}", error.masked()))?;
        Ok(Self { document: Arc::new(document.clone()), validator, bounds })
    }

    /// Whether the schema refers to itself.
    pub(crate) fn is_recursive(&self) -> bool {
        self.bounds.recursive
    }

    /// The arguments as the schema most likely means them, without any loss; unchanged where that
    /// is not certain.
    pub(crate) fn coerce(&self, arguments: &mut Value) {
        coerce::coerce(&self.document, arguments);
    }

    /// Whether arguments satisfy the schema; `Err` if they are too much to be checked.
    pub(crate) fn accepts(&self, arguments: &Value) -> Result<bool, Issue> {
        self.bounds.check(&self.document, arguments)?;
        Ok(self.validator.is_valid(arguments))
    }

    /// Checks arguments and lists at most [`ISSUES_MAX`] issues. Errors cost far more than a yes or
    /// no, so this comes after a no.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), Vec<Issue>> {
        let checked = self.bounds.check(&self.document, arguments);
        let extent = checked.map_err(|issue| vec![issue])?;
        if !self.bounds.can_explain(extent) {
            let valid = self.validator.is_valid(arguments);
            return if valid { Ok(()) } else { Err(vec![Issue::unexplained()]) };
        }
        let errors = self.validator.iter_errors(arguments).take(ISSUES_MAX);
        let issues: Vec<Issue> = errors.map(|error| Issue::of(&error)).collect();
        if issues.is_empty() { Ok(()) } else { Err(issues) }
    }
}

/// Draft 2020-12 unless the document asks for draft 7: the two that providers take.
fn draft(document: &Value) -> Result<Draft, String> {
    match document.get("$schema").and_then(Value::as_str) {
        None => Ok(Draft::Draft202012),
        Some(uri) => match uri.trim_end_matches('#') {
            "https://json-schema.org/draft/2020-12/schema" => Ok(Draft::Draft202012),
            "http://json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
            _ => Err(format!(
                "its $schema is {uri:?}; use draft 2020-12 or draft 7, or leave it out"
            )),
        },
    }
}
