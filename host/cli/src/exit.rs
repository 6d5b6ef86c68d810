//! Exit codes: the same number means the same thing for every command.

use std::fmt;
use std::process::ExitCode;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

/// Done: the run ended with an answer, the call with a result.
pub(crate) const DONE: Exit = Exit(0);
/// It ran and failed: the model failed, or the call came to an error result.
pub(crate) const FAILED: Exit = Exit(1);
/// Refused before anything ran: bad arguments, a bad configuration, a plugin that was not let in.
pub(crate) const REFUSED: Exit = Exit(2);
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
    if problem.is::<Refusal>() { REFUSED } else { FAILED }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}
