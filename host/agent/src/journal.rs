//! The durable order: messages go to a journal in transcript order, apart from the live events,
//! because the two have different consumers (seed: "give them two orderings").
//!
//! ```
//! use cofferdam_agent::journal::{Journal, JournalError};
//! use cofferdam_agent::message::Message;
//! use futures::future::BoxFuture;
//! use std::sync::{Arc, Mutex};
//!
//! #[derive(Default)]
//! struct InMemory(Mutex<Vec<Arc<Message>>>);
//!
//! impl Journal for InMemory {
//!     fn append<'a>(
//!         &'a self,
//!         message: &'a Arc<Message>,
//!     ) -> BoxFuture<'a, Result<(), JournalError>> {
//!         let written = match self.0.lock() {
//!             Ok(mut messages) => Ok(messages.push(message.clone())),
//!             Err(error) => Err(JournalError(error.to_string())),
//!         };
//!         Box::pin(async { written })
//!     }
//! }
//! ```

use crate::event::CallEnd;
use crate::message::Message;
use futures::future::BoxFuture;
use std::sync::Arc;

/// Where a run writes its transcript as it goes.
///
/// The one thing that may end a run with an error is a journal that cannot be written.
pub trait Journal: Send + Sync {
    /// Appends one message, in transcript order. What was confirmed survives a crash.
    ///
    /// If the run is dropped while this waits, the message may come once more, as the same `Arc`:
    /// of two results of one call a reader takes the first.
    fn append<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Notes a finished call before its place in source order is reached, so that a crash while a
    /// slow sibling runs loses no finished result (reference issue 7053).
    fn finished<'a>(
        &'a self,
        tool_call_id: &'a str,
        tool_name: &'a str,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let _ = (tool_call_id, tool_name, end);
        Box::pin(async { Ok(()) })
    }
}

/// The transcript could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("write the transcript: {0}")]
pub struct JournalError(pub String);
