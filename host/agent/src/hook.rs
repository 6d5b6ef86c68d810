//! Hooks around a tool call: `before` decides and may rewrite, `after` amends the result. A hook
//! that fails damages one call, never the run.
//!
//! ```
//! use cofferdam_agent::config::{AfterEntry, BeforeEntry, ToolFilter};
//! use cofferdam_agent::hook::{
//!     AfterHook, Amendment, Approval, Approver, BeforeHook, Decision, Hooked, HookedCall,
//!     Question, Ran, Verdict,
//! };
//! use cofferdam_agent::testing::ScriptedModel;
//! use cofferdam_agent::{AbortSignal, AgentConfig, Settings};
//! use futures::future::BoxFuture;
//! use std::sync::Arc;
//!
//! struct AskFirst;
//!
//! impl BeforeHook for AskFirst {
//!     fn name(&self) -> &str {
//!         "ask-first"
//!     }
//!
//!     fn before<'a>(
//!         &'a self,
//!         hooked: HookedCall<'a>,
//!         _: &'a AbortSignal,
//!     ) -> BoxFuture<'a, Hooked<Verdict>> {
//!         let title = format!("Run {}?", hooked.call.name);
//!         let question = Question { title, message: String::new() };
//!         Box::pin(async { Ok(Verdict::Ask(question)).into() })
//!     }
//! }
//!
//! struct Redact;
//!
//! impl AfterHook for Redact {
//!     fn name(&self) -> &str {
//!         "redact"
//!     }
//!
//!     fn after<'a>(
//!         &'a self,
//!         _: HookedCall<'a>,
//!         ran: Ran<'a>,
//!         _: &'a AbortSignal,
//!     ) -> BoxFuture<'a, Hooked<Amendment>> {
//!         // An error may hold a secret: only its length is shown.
//!         let blocks = ran.result.content.len();
//!         let content = ran.is_error.then(|| {
//!             vec![cofferdam_agent::message::Content::Text(format!("{blocks} blocks of error"))]
//!         });
//!         Box::pin(async { Ok(Amendment { content, ..Amendment::default() }).into() })
//!     }
//! }
//!
//! struct NobodyHome;
//!
//! impl Approver for NobodyHome {
//!     fn approve<'a>(&'a self, _: Approval<'a>) -> BoxFuture<'a, Decision> {
//!         let why = "nobody is home".into();
//!         Box::pin(async { Decision::Unanswered { why } })
//!     }
//! }
//!
//! let mut config = AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default())));
//! let ask_first = BeforeEntry::new(Arc::new(AskFirst));
//! let writes = ToolFilter::matching(|tool| tool.starts_with("write_"));
//! config.before = vec![BeforeEntry { tools: writes, ..ask_first }];
//! config.after = vec![AfterEntry::new(Arc::new(Redact))];
//! config.approver = Some(Arc::new(NobodyHome));
//! ```

use crate::AbortSignal;
use crate::message::{Arguments, AssistantMessage, Content};
use crate::receipt::SharedReceipt;
use crate::tool::{Call, ToolResult};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The call that a hook is asked about.
#[derive(Debug, Clone, Copy)]
pub struct HookedCall<'a> {
    /// The call, with the arguments as earlier hooks left them.
    pub call: &'a Call,
    /// The operator's name of the plugin that owns the tool; empty for a native tool.
    pub plugin: &'a str,
    /// The finished answer that holds the call.
    pub assistant: &'a Arc<AssistantMessage>,
}

/// What shall become of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It goes on as it is.
    Proceed,
    /// It goes on with these arguments.
    Rewrite(Arguments),
    /// It becomes an error result.
    Block(Refusal),
    /// A person decides, after the whole chain has run.
    Ask(Question),
}

/// Why a call is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// For the model; a standard sentence stands in for an empty one.
    pub reason: String,
    /// The blocked call's vote on ending the run after this batch.
    pub terminate: Option<bool>,
}

/// What a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// A few words.
    pub title: String,
    /// What exactly will happen if the answer is yes.
    pub message: String,
}

/// What a call that ran came to, as an after-hook sees it.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// The result, as earlier hooks left it.
    pub result: &'a ToolResult,
    /// Whether the call counts as failed, as earlier hooks left it.
    pub is_error: bool,
    /// What ended the call; absent if the tool answered. See [`crate::tool::ToolFailure`].
    pub ended_by: Option<&'a str>,
    /// Wall time of the call.
    pub duration: Duration,
}

/// Changes to a result: a field that is given replaces the old one whole, a missing one keeps it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Amendment {
    /// New content.
    pub content: Option<Vec<Content>>,
    /// New details.
    pub details: Option<Value>,
    /// Whether the call counts as failed.
    pub is_error: Option<bool>,
    /// The call's vote on ending the run.
    pub terminate: Option<bool>,
}

/// A hook's answer with its bill. `Err` is a failed hook, in words.
#[derive(Debug)]
pub struct Hooked<T> {
    /// The answer, or why there is none.
    pub answer: Result<T, String>,
    /// What the hook cost, where its runner measures that.
    pub receipt: Option<SharedReceipt>,
}

impl<T> From<Result<T, String>> for Hooked<T> {
    fn from(answer: Result<T, String>) -> Self {
        Self { answer, receipt: None }
    }
}

/// A say before a call.
pub trait BeforeHook: Send + Sync {
    /// Names the hook in records and error texts.
    fn name(&self) -> &str;

    /// Decides on one call. Never asked for two calls at a time.
    fn before<'a>(
        &'a self,
        call: HookedCall<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>>;
}

/// A say after a call.
pub trait AfterHook: Send + Sync {
    /// Names the hook in records and error texts.
    fn name(&self) -> &str;

    /// Amends the result of one call; `call` has the arguments that the tool got. Calls of one
    /// batch may be hooked at the same time.
    fn after<'a>(
        &'a self,
        call: HookedCall<'a>,
        ran: Ran<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>>;
}

/// The person who is asked, or what stands for one.
pub trait Approver: Send + Sync {
    /// Puts one question. The arguments are final: nothing changes them after a yes. The future is
    /// dropped on abort, and must take the question back then. One that panics is a no.
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision>;
}

/// One question with the call that it is about.
#[derive(Debug, Clone, Copy)]
pub struct Approval<'a> {
    /// The hook that asks.
    pub hook: &'a str,
    /// What it asks, in its own words: untrusted if the hook is a plugin's.
    pub question: &'a Question,
    /// The plugin of the tool; empty for a native one.
    pub plugin: &'a str,
    /// The call with its final arguments.
    pub call: &'a Call,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The call may run.
    Approved,
    /// It may not.
    Declined {
        /// What the person says to the model, if anything.
        reason: Option<String>,
    },
    /// Nobody decided, which is a no.
    Unanswered {
        /// Why, as the rest of a sentence: "nobody answered within 60 s".
        why: String,
    },
}

impl Decision {
    /// A plain no.
    pub fn declined() -> Self {
        Self::Declined { reason: None }
    }

    /// Whether the call may run.
    pub fn is_approved(&self) -> bool {
        matches!(self, Self::Approved)
    }
}
