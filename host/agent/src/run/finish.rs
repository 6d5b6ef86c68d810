//! From what a tool answered to what counts: after-hooks in configured order, each seeing the result
//! as the earlier ones left it.

use super::Walk;
use super::batch::OneCall;
use crate::config::{AfterEntry, AfterFailure};
use crate::event::{CallEnd, HookAction, HookRecord};
use crate::guarded::guarded;
use crate::hook::{Amendment, Hooked, HookedCall, Ran};
use crate::message::{Message, ToolResultMessage};
use crate::refusal;
use crate::tool::{Call, Outcome, ToolFailure};
use crate::toolset::Entry;
use std::sync::Arc;
use std::time::Duration;

/// A call that is final and not yet announced.
pub(super) struct Finished {
    pub(super) end: CallEnd,
}

/// A call that ran.
pub(super) struct Settled {
    pub(super) outcome: Outcome,
    pub(super) duration: Duration,
}

impl Walk<'_> {
    /// After-hooks run for every call that ran, failed ones included.
    pub(super) async fn finish(
        &self,
        one: OneCall<'_>,
        entry: &Entry,
        call: Call,
        settled: Settled,
        records: Vec<HookRecord>,
    ) -> Finished {
        let mut finished = Finished::ran(settled, records);
        if let Some(assistant) = &one.all.answer {
            let hooked = HookedCall { call: &call, plugin: entry.tool.plugin(), assistant };
            for link in &one.all.policy.after {
                if link.tools.takes(&one.call.name) {
                    self.amend(&mut finished.end, link, hooked).await;
                }
            }
        }
        finished
    }

    /// A hook that fails costs this call its result and nothing else (reference issue 3084: a
    /// throwing hook lost the results of its siblings).
    async fn amend(&self, end: &mut CallEnd, link: &AfterEntry, call: HookedCall<'_>) {
        let ran = Ran {
            result: &end.result,
            is_error: end.is_error,
            ended_by: end.ended_by.as_deref(),
            duration: end.duration,
        };
        let hooked = guarded(|| link.hook.after(call, ran, self.abort)).await;
        let Hooked { answer, receipt } = hooked.unwrap_or_else(|panic| Err(panic).into());
        let action = match answer {
            Ok(amendment) if amendment == Amendment::default() => HookAction::Kept,
            Ok(amendment) => {
                end.amend(amendment.clone());
                HookAction::Amended(amendment)
            }
            Err(problem) => {
                if link.failure == AfterFailure::Error {
                    end.result = refusal::result(problem.clone());
                    end.is_error = true;
                }
                HookAction::Failed(problem)
            }
        };
        if action != HookAction::Kept || receipt.is_some() {
            end.hooks.push(HookRecord { hook: link.hook.name().to_owned(), action, receipt });
        }
    }
}

impl Finished {
    /// A call that never ran, with an error result.
    pub(super) fn refused(code: &str, text: String) -> Self {
        Self {
            end: CallEnd {
                result: refusal::result(text),
                is_error: true,
                ended_by: Some(code.to_owned()),
                duration: Duration::ZERO,
                receipt: None,
                hooks: Vec::new(),
            },
        }
    }

    /// A failure becomes an error result with its text; a result flagged as an error counts as
    /// failed and keeps what it has to show.
    fn ran(settled: Settled, hooks: Vec<HookRecord>) -> Self {
        let Outcome { answer, receipt } = settled.outcome;
        let (result, is_error, ended_by) = match answer {
            Ok(result) => {
                let is_error = result.is_error == Some(true);
                (result, is_error, None)
            }
            Err(ToolFailure { message, ended_by, details }) => {
                let mut result = refusal::result(message);
                result.details = details;
                (result, true, Some(ended_by))
            }
        };
        let duration = settled.duration;
        Self { end: CallEnd { result, is_error, ended_by, duration, receipt, hooks } }
    }
}

impl CallEnd {
    /// Each field that is given replaces the old one whole; there is no deep merge.
    fn amend(&mut self, amendment: Amendment) {
        let Amendment { content, details, is_error, terminate } = amendment;
        if let Some(content) = content {
            self.result.content = content;
        }
        if details.is_some() {
            self.result.details = details;
        }
        if let Some(is_error) = is_error {
            self.is_error = is_error;
        }
        if terminate.is_some() {
            self.result.terminate = terminate;
        }
    }

    /// The result as the model gets it. The vote is not part of it.
    pub(super) fn message(&self, tool_call_id: &str, tool_name: &str) -> Arc<Message> {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: tool_call_id.to_owned(),
            tool_name: tool_name.to_owned(),
            content: self.result.content.clone(),
            details: self.result.details.clone(),
            is_error: self.is_error,
        }))
    }
}
