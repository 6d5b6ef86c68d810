//! Why the agent refused to do what it was asked. What goes wrong inside a run is not here: a
//! failed model, tool or hook is a value in the transcript.

use crate::journal::JournalError;

/// Why a run did not start, or could not go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentError {
    /// One run at a time (reference: "Agent is already processing a prompt").
    #[error("a run is active: queue the message with steer or follow_up, or wait for its end")]
    Busy,
    /// `continue` without anything to continue from.
    #[error("nothing to continue from: the transcript is empty")]
    NothingToContinue,
    /// `continue` from a finished answer, with nothing queued.
    #[error("nothing to continue: the transcript ends with an answer and nothing is queued")]
    AssistantTail,
    /// The transcript could not be written: the one thing that ends a run with an error. What could
    /// not be written is kept and comes first when the next run begins.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
