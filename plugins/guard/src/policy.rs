//! The operator's rules, and what they say of one path.

use cofferdam_plugin::{Failure, Result, config};
use glob::{MatchOptions, Pattern, PatternError};

use crate::path;

const ROOTS: &str = "/workspace";

/// What may be changed, what a person is asked about. Anything else is blocked.
pub(crate) struct Policy {
    roots: Vec<String>,
    allow: Rule,
    ask: Rule,
}

/// What the rules say of a path.
pub(crate) enum Ruling {
    Allowed,
    /// The path as it will be read.
    Asked(String),
    /// The reason, for the model.
    Blocked(String),
}

impl Policy {
    /// As configured; without any rule, a person is asked about every path.
    pub(crate) fn configured() -> Result<Self> {
        let (allow, ask) = (config::list("allow"), config::list("ask"));
        let default =
            if allow.is_none() && ask.is_none() { vec!["**".to_owned()] } else { Vec::new() };
        Ok(Self {
            roots: config::list("roots").unwrap_or_else(|| vec![ROOTS.to_owned()]),
            allow: Rule::new("allow", &allow.unwrap_or_default())?,
            ask: Rule::new("ask", &ask.unwrap_or(default))?,
        })
    }

    pub(crate) fn rule(&self, path: &str) -> Ruling {
        match path::normal(path, &self.roots) {
            Err(reason) => Ruling::Blocked(reason),
            Ok(path) if self.allow.matches(&path) => Ruling::Allowed,
            Ok(path) if self.ask.matches(&path) => Ruling::Asked(path),
            Ok(path) => Ruling::Blocked(format!(
                "`{path}` may not be changed. Allowed: {}. A person is asked for: {}.",
                self.allow.words(),
                self.ask.words()
            )),
        }
    }
}

/// Patterns, any of which may match.
struct Rule(Vec<Pattern>);

impl Rule {
    fn new(key: &str, patterns: &[String]) -> Result<Self> {
        let parse = |pattern: &String| {
            let failure = |error: PatternError| {
                Failure::other(format!("pattern `{pattern}` in `{key}`: {}", error.msg))
            };
            Pattern::new(pattern).map_err(failure)
        };
        patterns.iter().map(parse).collect::<Result<_>>().map(Self)
    }

    fn matches(&self, path: &str) -> bool {
        // `*` stays within a name: a rule must not reach further than it looks.
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        self.0.iter().any(|pattern| pattern.matches_with(path, options))
    }

    fn words(&self) -> String {
        let patterns: Vec<_> = self.0.iter().map(Pattern::as_str).collect();
        if patterns.is_empty() { "nothing".to_owned() } else { patterns.join(", ") }
    }
}
