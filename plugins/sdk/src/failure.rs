//! Why a call could not be carried out: a kind that says whose move it is, a message for the model.

use std::error::Error;
use std::fmt;

use crate::reply::Reply;

/// What tools and hooks return. `?` on any standard error gives a failure of kind
/// [`FailureKind::Other`].
pub type Result<T = Reply, E = Failure> = std::result::Result<T, E>;

/// Whose move it is after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The model's: the arguments satisfy the schema but make no sense together.
    Rejected,
    /// The operator's: a grant that the plugin needs is missing.
    Denied,
    /// Nobody's for now: something outside did not do its part. The same call may work later.
    Unavailable,
    /// The plugin's, or anything else.
    Other,
}

/// A failed call. The host shows the model its message, as an error result.
///
/// It is deliberately no [`Error`] itself: that is what lets `?` turn every error into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whose move it is.
    pub kind: FailureKind,
    /// A stable identifier of the plugin's own, such as `channel-not-found`.
    pub code: Option<String>,
    /// For the model: what went wrong and what would work.
    pub message: String,
}

impl Failure {
    /// The arguments satisfy the schema but make no sense together.
    pub fn rejected(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Rejected, message)
    }

    /// A grant is missing. Name the operator's line that would give it.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Denied, message)
    }

    /// A server, a file or another thing outside did not do its part.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unavailable, message)
    }

    /// Anything else.
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Other, message)
    }

    /// The same failure with a stable identifier for programs.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, code: None, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Error> From<E> for Failure {
    /// The error and its causes, one after the other.
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::other(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_mark_takes_any_error() {
        fn parse(text: &str) -> Result<u8> {
            Ok(text.parse()?)
        }
        let failure = parse("many").unwrap_err();
        assert_eq!(failure, Failure::other("invalid digit found in string"));
    }

    #[test]
    fn a_code_is_kept() {
        assert_eq!(
            Failure::rejected("no such channel").code("no-channel").code.unwrap(),
            "no-channel"
        );
    }
}
