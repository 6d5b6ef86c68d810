//! The operator's rules, and what they say of one path.

use cofferdam_plugin::{Failure, Result, config};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

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
            allow: Rule::new("allow", allow.unwrap_or_default())?,
            ask: Rule::new("ask", ask.unwrap_or(default))?,
        })
    }

    pub(crate) fn rule(&self, path: &str) -> Ruling {
        match path::normal(path, &self.roots) {
            Err(reason) => Ruling::Blocked(reason),
            Ok(path) if self.allow.globs.is_match(&path) => Ruling::Allowed,
            Ok(path) if self.ask.globs.is_match(&path) => Ruling::Asked(path),
            Ok(path) => Ruling::Blocked(format!(
                "`{path}` may not be changed. Allowed: {}. A person is asked for: {}.",
                self.allow.words(),
                self.ask.words()
            )),
        }
    }
}

/// Patterns as written, and as matched.
struct Rule {
    patterns: Vec<String>,
    globs: GlobSet,
}

impl Rule {
    fn new(key: &str, patterns: Vec<String>) -> Result<Self> {
        let mut globs = GlobSetBuilder::new();
        for pattern in &patterns {
            // `*` stays within a name: a rule must not reach further than it looks.
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            globs.add(glob.map_err(|error| {
                Failure::other(format!("pattern `{pattern}` in `{key}`: {}", error.kind()))
            })?);
        }
        Ok(Self { globs: globs.build()?, patterns })
    }

    fn words(&self) -> String {
        if self.patterns.is_empty() { "nothing".to_owned() } else { self.patterns.join(", ") }
    }
}
