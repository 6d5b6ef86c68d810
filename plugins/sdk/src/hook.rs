//! Hooks: what is asked before a tool call and after it, and the answers.

use std::time::Duration;

use serde_json::Value;

use crate::reply::{Content, Reply};

/// A tool call that a hook is asked about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookedCall {
    /// Identifies the call in events, transcript and receipts.
    pub id: String,
    /// The name that the model used, with the operator's prefix if there is one.
    pub tool: String,
    /// The arguments as earlier hooks left them; a JSON object.
    pub arguments: Value,
    /// The operator's name of the plugin that owns the tool; empty for a tool of the host.
    pub plugin: String,
    /// The finished assistant message that holds the call, with `role`, `content`, `stop_reason`.
    pub assistant_message: Value,
}

impl HookedCall {
    /// A call for tests: only a tool's name and arguments.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, ..Self::default() }
    }
}

/// What shall become of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It goes on as it is.
    Proceed,
    /// It goes on with these arguments, a JSON object.
    Rewrite(Value),
    /// It becomes an error result.
    Block {
        /// For the model: what is not allowed and what would be.
        reason: String,
        /// The blocked call's vote on ending the run after this batch.
        terminate: Option<bool>,
    },
    /// A person decides, after all hooks. Without a person the answer is no.
    Ask {
        /// A few words, such as `Delete 40 files?`.
        title: String,
        /// What exactly will happen if the answer is yes. The host shows the arguments besides.
        message: String,
    },
}

impl Verdict {
    /// The call becomes an error result. The reason is for the model: say what would be allowed.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block { reason: reason.into(), terminate: None }
    }

    /// A person decides.
    pub fn ask(title: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Ask { title: title.into(), message: message.into() }
    }
}

/// What a call came to, for a hook that looks at it afterwards.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The result, as hooks that ran earlier left it.
    pub reply: Reply,
    /// Nothing if the tool answered. Else what ended the call, an open list: `failure`, `trap`,
    /// `exit`, `memory-limit`, `fuel-limit`, `time-limit`, `output-limit`, `aborted`.
    pub ended_by: Option<String>,
    /// Wall time that the call took.
    pub wall: Duration,
}

impl From<Reply> for Outcome {
    /// An outcome for tests: the tool answered.
    fn from(reply: Reply) -> Self {
        Self { reply, ..Self::default() }
    }
}

/// Changes to a result. A field that is given replaces the old one whole; the default keeps all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amendment {
    /// What the model sees instead.
    pub content: Option<Vec<Content>>,
    /// Structured facts instead of those of the tool.
    pub details: Option<Value>,
    /// Whether it is an error result.
    pub is_error: Option<bool>,
    /// The vote on stopping the agent after this batch of calls.
    pub terminate: Option<bool>,
}

impl Amendment {
    /// Keeps the result as it is.
    pub fn keep() -> Self {
        Self::default()
    }

    /// Replaces what the model sees.
    #[must_use]
    pub fn content(mut self, content: Vec<Content>) -> Self {
        self.content = Some(content);
        self
    }

    /// Replaces the structured facts.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Makes the result an error, or no error.
    #[must_use]
    pub fn is_error(mut self, is_error: bool) -> Self {
        self.is_error = Some(is_error);
        self
    }

    /// Votes on stopping the agent after this batch of calls.
    #[must_use]
    pub fn terminate(mut self, vote: bool) -> Self {
        self.terminate = Some(vote);
        self
    }
}
