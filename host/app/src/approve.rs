//! The operator's list of tools that a person must approve, as a hook of the chain.

use crate::patterns::ToolPatterns;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{BeforeHook, Hooked, HookedCall, Question, Verdict};
use futures::future::BoxFuture;

/// Asks for every call of the tools that `[approval] ask` names.
#[derive(Debug)]
pub struct AskFirst {
    /// The tools.
    pub tools: ToolPatterns,
}

impl BeforeHook for AskFirst {
    fn name(&self) -> &str {
        "approval"
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
