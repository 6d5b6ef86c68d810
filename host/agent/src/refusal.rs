//! The sentences that the loop itself writes into results of calls that came to nothing, for the
//! model: what was asked, why not, and what would work. [`crate::event::ended_by`] has the codes
//! that say the same to programs.

use crate::args::ArgsError;
use crate::hook::{Decision, Question};
use crate::message::Content;
use crate::tool::ToolResult;

/// Names listed to a model that asked for a tool that does not exist.
const NAMES_MAX: usize = 30;

/// An error result of one text.
pub(crate) fn result(text: impl Into<String>) -> ToolResult {
    ToolResult { content: vec![Content::Text(text.into())], ..ToolResult::default() }
}

pub(crate) fn unknown_tool<'a>(name: &str, offered: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = offered.take(NAMES_MAX + 1).collect();
    if names.is_empty() {
        return format!("There is no tool {name:?}: no tools are offered.");
    }
    let more = if names.len() > NAMES_MAX { ", …" } else { "" };
    names.truncate(NAMES_MAX);
    format!("There is no tool {name:?}. The tools offered are: {}{more}.", names.join(", "))
}

pub(crate) fn refused_tool(name: &str, reason: &str) -> String {
    format!("The tool {name:?} cannot be used: {reason}.")
}

pub(crate) fn aborted() -> String {
    "The run was aborted before this call ran.".into()
}

/// For a call that was still to come when the run's future was dropped.
pub(crate) fn never_ran() -> String {
    "The run ended before this call ran.".into()
}

/// For a call that was running when the run's future was dropped.
pub(crate) fn cut_short() -> String {
    "The run ended while this call was running: it may have done part of its work.".into()
}

pub(crate) fn blocked() -> String {
    "The call was blocked.".into()
}

/// Why a question has no answer where nobody answers questions.
pub(crate) const NOBODY: &str = "there is nobody to ask";

/// Why a question has no answer if whoever was to put it panicked.
pub(crate) fn not_asked(panic: &str) -> String {
    format!("asking for it failed: {panic}")
}

pub(crate) fn not_approved(decision: &Decision) -> String {
    let why = match decision {
        Decision::Unanswered { why } => why.clone(),
        Decision::Declined { reason: Some(reason) } => format!("the answer was no: {reason}"),
        Decision::Declined { reason: None } | Decision::Approved => "the answer was no".into(),
    };
    format!("The call needs an approval, and {why}.")
}

pub(crate) fn truncated(name: &str) -> String {
    format!(
        "The call of {name:?} was not run: the output limit cut the answer, so its arguments may be \
         incomplete. Issue the call again with complete arguments."
    )
}

pub(crate) fn panicked(what: &str, panic: &str) -> String {
    format!("{what} failed: it panicked: {panic}")
}

pub(crate) fn rewrite_forbidden(hook: &str) -> String {
    format!("The hook {hook:?} tried to rewrite the arguments, which it may not.")
}

pub(crate) fn rewrite_invalid(hook: &str, error: &ArgsError) -> String {
    format!("The hook {hook:?} rewrote the arguments into some that the schema rejects:\n{error}")
}

/// What a person is asked when a hook failed that lets a person decide then.
pub(crate) fn question_of_failed_hook(hook: &str, problem: &str) -> Question {
    Question {
        title: format!("The check {hook:?} failed. Run the call without it?"),
        message: problem.to_owned(),
    }
}
