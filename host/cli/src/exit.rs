//! Exit codes: the same number means the same thing for every command.

use cofferdam_agent::EndReason;
use cofferdam_app::{AssembleError, ConfigError};
use cofferdam_sandbox::SandboxError;
use std::fmt;
use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

/// Done: the run ended with an answer, the call with a result.
pub(crate) const DONE: Exit = Exit(0);
/// It ran and failed: the call came to an error result, or the session could not be written.
pub(crate) const FAILED: Exit = Exit(1);
/// Refused before anything ran: bad arguments, a plugin that was not let in.
pub(crate) const REFUSED: Exit = Exit(2);
/// Nothing ran, because of a mistake in the operator's file.
pub(crate) const MISCONFIGURED: Exit = Exit(3);
/// The model failed.
pub(crate) const MODEL_FAILED: Exit = Exit(4);
/// A run reached a limit of its own: of turns, or of answers in a row that were cut.
pub(crate) const LIMITED: Exit = Exit(5);
/// Aborted by the person (128 + SIGINT, as shells have it).
pub(crate) const ABORTED: Exit = Exit(130);

/// Marks an error as a refusal: nothing has run.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) anyhow::Error);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for Refusal {}

/// Turns the errors of the steps before anything runs into refusals.
pub(crate) trait Refused<T> {
    /// Ends the process with [`REFUSED`] if this is an error.
    fn refused(self) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> Refused<T> for Result<T, E> {
    fn refused(self) -> anyhow::Result<T> {
        self.map_err(|problem| anyhow::Error::new(Refusal(problem.into())))
    }
}

/// The exit code of an error.
pub(crate) fn of(problem: &anyhow::Error) -> Exit {
    match problem.downcast_ref::<Refusal>() {
        Some(Refusal(reason)) if is_misconfigured(reason) => MISCONFIGURED,
        Some(_) => REFUSED,
        None => FAILED,
    }
}

/// Whether the operator's file is to blame, rather than what it names.
fn is_misconfigured(reason: &anyhow::Error) -> bool {
    let setting = |problem: &SandboxError| matches!(problem, SandboxError::Setting { .. });
    reason.is::<ConfigError>()
        || reason.downcast_ref::<SandboxError>().is_some_and(setting)
        || reason.downcast_ref::<AssembleError>().is_some_and(|problem| match problem {
            AssembleError::Config(_)
            | AssembleError::NoModel
            | AssembleError::Endpoint(_)
            | AssembleError::ReadScript { .. }
            | AssembleError::Script { .. } => true,
            AssembleError::Sandbox(problem) => setting(problem),
            AssembleError::Record(_)
            | AssembleError::Registry { .. }
            | AssembleError::Session(_) => false,
        })
}

/// The exit code of a run.
pub(crate) fn of_run(reason: EndReason) -> Exit {
    match reason {
        EndReason::Finished | EndReason::Terminated | EndReason::Stopped => DONE,
        EndReason::ModelFailed => MODEL_FAILED,
        EndReason::Aborted => ABORTED,
        EndReason::TurnLimit(_) | EndReason::TruncationLimit(_) => LIMITED,
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
