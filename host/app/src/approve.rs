//! Approvals: when a person is asked, how long, and by which way.
//!
//! A question comes from a hook of the chain: from a plugin's, or from [`AskFirst`], the operator's
//! own list. It goes to the embedder's [`Approver`], behind [`TimeLimited`]; an embedder that takes
//! questions as values, to send them somewhere and answer later, takes a [`channel`].

mod channel;
mod time_limit;

pub use channel::{OpenQuestion, Questions, channel};
pub use time_limit::TimeLimited;

use crate::patterns::ToolPatterns;
use cofferdam_agent::AbortSignal;
#[cfg(doc)]
use cofferdam_agent::hook::Approver;
use cofferdam_agent::hook::{BeforeHook, Hooked, HookedCall, Question, Verdict};
use futures::future::BoxFuture;

/// Asks for every call of the tools that `[approval] ask` names.
#[derive(Debug)]
pub struct AskFirst {
    /// The tools.
    pub tools: ToolPatterns,
}

impl AskFirst {
    /// The name of this hook. No plugin can have it.
    pub const NAME: &str = "[approval] ask";
}

impl BeforeHook for AskFirst {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn before<'a>(
        &'a self,
        call: HookedCall<'a>,
        _abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let name = &call.call.name;
        let verdict = if self.tools.matches(name) {
            Verdict::Ask(Question {
                title: format!("Run {name}?"),
                message: "The operator wants each call of this tool to be approved.".into(),
            })
        } else {
            Verdict::Proceed
        };
        Box::pin(std::future::ready(Ok(verdict).into()))
    }
}
