//! Hooks as an operator configures them: which tools, what a failure means, who may rewrite.

use crate::hook::{AfterHook, BeforeHook};
use std::fmt;
use std::sync::Arc;

/// For which tools a hook is asked.
#[derive(Clone, Default)]
pub enum ToolFilter {
    /// For every tool.
    #[default]
    All,
    /// For those whose name, as the model writes it, satisfies this.
    Matching(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

/// One link of the chain before a call.
#[derive(Clone)]
pub struct BeforeEntry {
    /// The hook.
    pub hook: Arc<dyn BeforeHook>,
    /// For which tools it is asked.
    pub tools: ToolFilter,
    /// What becomes of a call when it fails.
    pub failure: BeforeFailure,
    /// Whether it may change arguments.
    pub rewrites: Rewrites,
}

/// One link of the chain after a call.
#[derive(Clone)]
pub struct AfterEntry {
    /// The hook.
    pub hook: Arc<dyn AfterHook>,
    /// For which tools it is asked.
    pub tools: ToolFilter,
    /// What becomes of a result when it fails.
    pub failure: AfterFailure,
}

/// What becomes of a call whose before-hook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeforeFailure {
    /// It becomes an error result with the hook's text.
    #[default]
    Block,
    /// A person decides, as if the hook had asked.
    Ask,
    /// It goes on as if the hook had not been there.
    Proceed,
}

/// What becomes of a result whose after-hook failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterFailure {
    /// It becomes an error with the hook's text and loses its vote.
    #[default]
    Error,
    /// It stays as the earlier hooks left it.
    Keep,
}

/// What a before-hook may do to arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rewrites {
    /// Its arguments go to the tool as they are (seed: "Mutated arguments skip revalidation").
    #[default]
    Trusted,
    /// Its arguments must satisfy the tool's schema; if not, the hook has failed.
    Revalidated,
    /// It has failed if it tries.
    Forbidden,
}

impl ToolFilter {
    /// A filter by name.
    pub fn matching(predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::Matching(Arc::new(predicate))
    }

    /// Whether a hook with this filter is asked about a tool.
    pub fn takes(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Matching(predicate) => predicate(tool),
        }
    }
}

impl BeforeEntry {
    /// A hook for all tools that blocks when it fails and is trusted to rewrite.
    pub fn new(hook: Arc<dyn BeforeHook>) -> Self {
        Self {
            hook,
            tools: ToolFilter::default(),
            failure: BeforeFailure::default(),
            rewrites: Rewrites::default(),
        }
    }
}

impl AfterEntry {
    /// A hook for all tools whose failure makes the result an error.
    pub fn new(hook: Arc<dyn AfterHook>) -> Self {
        Self { hook, tools: ToolFilter::default(), failure: AfterFailure::default() }
    }
}

impl fmt::Debug for ToolFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::Matching(_) => "Matching(…)",
        })
    }
}
