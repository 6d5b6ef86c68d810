//! `[[hooks]]`: one plugin's say before or after tool calls.

use super::keys::{keys, list, some_text, text, word, words};
use crate::patterns::ToolPatterns;
use serde::Deserialize;

keys! {
    /// `[[hooks]]`: one plugin's say before or after tool calls. The order of the list is the order of
    /// the chain.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HookEntry {
        /// The name of a plugin of the list.
        pub plugin: String => some_text().required().such_as("guard"),
        /// Where it has its say.
        pub on: Vec<HookPoint> => list(word(HookPoint::WORDS)).required().such_as(["before"]),
        /// Patterns of the tools that it is asked about.
        #[serde(default = "ToolPatterns::every")]
        pub tools: ToolPatterns => list(text()).checked(pattern).or(["*"]).such_as(["write_*"]),
        /// What a failure before a call does to it.
        #[serde(default)]
        pub before_failure: BeforeFailureEntry =>
            word(BeforeFailureEntry::WORDS).or(BeforeFailureEntry::default()),
        /// What a failure after a call does to its result.
        #[serde(default)]
        pub after_failure: AfterFailureEntry =>
            word(AfterFailureEntry::WORDS).or(AfterFailureEntry::default()),
        /// Whether it may rewrite arguments.
        #[serde(default)]
        pub rewrites: RewritesEntry => word(RewritesEntry::WORDS).or(RewritesEntry::default()),
    }
}

words! {
    /// Where a hook has its say.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub enum HookPoint {
        /// Before a call runs.
        Before = "before",
        /// After a call ran.
        After = "after",
    }
}

words! {
    /// What a failed before-hook does to the call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    pub enum BeforeFailureEntry {
        /// It is blocked.
        #[default]
        Block = "block",
        /// A person is asked.
        Ask = "ask",
        /// It goes on.
        Proceed = "proceed",
    }
}

words! {
    /// What a failed after-hook does to the result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    pub enum AfterFailureEntry {
        /// It becomes an error.
        #[default]
        Error = "error",
        /// It stays.
        Keep = "keep",
    }
}

words! {
    /// What a hook may do to arguments.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    pub enum RewritesEntry {
        /// Rewrite them; nobody checks again (the reference's rule).
        #[default]
        Trusted = "trusted",
        /// Rewrite them; they are validated again.
        Revalidated = "revalidated",
        /// Not rewrite them: a rewrite is a failure of the hook.
        Forbidden = "forbidden",
    }
}

/// A pattern of tool names.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    ToolPatterns::parse(&[text.to_owned()])
        .map(drop)
        .map_err(|_| "patterns of tool names such as `write_*`".into())
}
