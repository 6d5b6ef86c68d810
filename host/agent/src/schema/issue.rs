//! One thing that is wrong with arguments, in a line that a model can act on.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;
use std::fmt;

/// Characters of an actual value that are shown.
const ACTUAL_CHARS_MAX: usize = 80;

/// One issue of a validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where, as names and indices joined by dots; `root` for the arguments as a whole.
    pub path: String,
    /// The JSON Schema keyword that was not satisfied.
    pub keyword: String,
    /// What the schema expects there.
    pub expected: String,
    /// The value that is there, cut.
    pub actual: String,
}

impl Issue {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        Self {
            path: dotted(error.instance_path().as_str()),
            keyword: error.kind().keyword().to_owned(),
            expected: expected(error),
            actual: cut(&error.instance().to_string()),
        }
    }

    /// Arguments are an object, whatever a schema says.
    pub(crate) fn not_an_object(value: &Value) -> Self {
        Self::root("type", "type object".into(), &cut(&value.to_string()))
    }

    /// Arguments too large to be told what is wrong with them.
    pub(super) fn unexplained() -> Self {
        let actual = "arguments that do not, and are too large to say where; try smaller ones";
        Self::root("size", "arguments that satisfy the schema".into(), actual)
    }

    /// An issue of the arguments as a whole.
    pub(super) fn root(keyword: &str, expected: String, actual: &str) -> Self {
        Self { path: "root".into(), keyword: keyword.into(), expected, actual: actual.into() }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.path, self.expected, self.actual)
    }
}

/// `/edits/0/old` becomes `edits.0.old`.
fn dotted(pointer: &str) -> String {
    match pointer.strip_prefix('/') {
        None => "root".into(),
        Some(rest) => {
            let names = rest.split('/').map(|name| name.replace("~1", "/").replace("~0", "~"));
            names.collect::<Vec<_>>().join(".")
        }
    }
}

fn expected(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Required { property } => format!("the field {property}"),
        Kind::Type { kind: TypeKind::Single(kind) } => format!("type {kind}"),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            let names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
            format!("type {}", names.join(" or "))
        }
        Kind::Enum { options } => format!("one of {}", cut(&options.to_string())),
        Kind::Constant { expected_value } => cut(&expected_value.to_string()),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("no field {}", cut(&unexpected.join(", ")))
        }
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::UnevaluatedItems { .. } | Kind::FalseSchema => "nothing here".into(),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("at most {limit} fields"),
        Kind::UniqueItems => "items that differ from each other".into(),
        Kind::Contains => "an item that the schema's \"contains\" fits".into(),
        Kind::Pattern { pattern } => format!("text that matches {}", cut(pattern)),
        Kind::Format { format } => format!("text of format {format}"),
        Kind::PropertyNames { error } => format!("field names with {}", expected(error)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(error, context),
        Kind::OneOfMultipleValid { .. } => "exactly one alternative of the schema to fit".into(),
        _ => format!("what the schema's {:?} says", error.kind().keyword()),
    }
}

/// Of several alternatives, the one that the value came closest to: whose error lies deepest, and
/// among those the one with the fewest errors. A wrong tag lies at the depth of the tag, so the
/// alternative whose tag fits gets further than the others.
fn alternatives(error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> String {
    let deepest = |branch: &Vec<ValidationError<'static>>| {
        branch.iter().map(|e| e.instance_path().as_str().matches('/').count()).max().unwrap_or(0)
    };
    let closest = context
        .iter()
        .filter(|branch| !branch.is_empty())
        .max_by_key(|branch| (!wrong_tag(branch), deepest(branch), usize::MAX - branch.len()));
    let Some(first) = closest.and_then(|branch| branch.first()) else {
        return "one of the schema's alternatives".into();
    };
    let below = first.instance_path().as_str();
    let here = error.instance_path().as_str();
    let at = below.strip_prefix(here).unwrap_or(below);
    let what = expected(first);
    if at.is_empty() { what } else { format!("at {}: {what}", dotted(at)) }
}

/// Whether an alternative failed at a tag: a constant or an enumeration.
fn wrong_tag(branch: &[ValidationError<'static>]) -> bool {
    branch.iter().any(|e| matches!(e.kind(), Kind::Constant { .. } | Kind::Enum { .. }))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(ACTUAL_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// A value as the model sent it, cut.
pub(crate) fn shown(value: &Value, chars_max: usize) -> String {
    let text = value.to_string();
    match text.char_indices().nth(chars_max) {
        None => text,
        Some((at, _)) => format!("{}… ({} bytes in all)", &text[..at], text.len()),
    }
}
