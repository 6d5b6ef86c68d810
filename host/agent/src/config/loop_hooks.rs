//! What an embedder may put between the turns of a run. None has an error in its type: a failure
//! here has no correct next move, so an implementation must have a safe answer of its own (seed:
//! "Tool hooks are guarded, loop hooks are contracts"). One that panics takes the run with it, and
//! leaves the transcript valid.

use super::Settings;
use crate::AbortSignal;
use crate::message::Message;
use crate::model::Secret;
use futures::future::BoxFuture;
use std::sync::Arc;

/// A transcript that is shared until somebody changes it.
pub type Messages = Arc<Vec<Arc<Message>>>;

/// Decides what of the transcript goes into a request: compaction, pruning, context from outside.
/// The transcript itself stays as it is. Must not fail: its safe answer is what it was given.
pub trait ContextTransform: Send + Sync {
    /// The messages of one request.
    fn transform<'a>(
        &'a self,
        messages: Messages,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Messages>;
}

/// Makes messages that a model understands, after the transform: custom roles become something
/// else or nothing. Must not fail: its safe answer is to leave a message out.
pub trait Conversion: Send + Sync {
    /// The messages as the model gets them.
    fn convert<'a>(&'a self, messages: Messages) -> BoxFuture<'a, Messages>;
}

/// A finished turn, for the hooks between turns.
#[derive(Debug, Clone, Copy)]
pub struct TurnView<'a> {
    /// The answer.
    pub answer: &'a Arc<Message>,
    /// The results of its calls, in source order.
    pub tool_results: &'a [Arc<Message>],
    /// What the run has added so far.
    pub added: &'a [Arc<Message>],
    /// The settings that the turn had.
    pub settings: &'a Arc<Settings>,
}

/// Gives the next turn other tools, another prompt, model or thinking level. Must not fail: its
/// safe answer is `None`.
pub trait NextTurn: Send + Sync {
    /// New settings, kept for the turns after it as well; `None` keeps those of the agent. Dropped if
    /// the run is aborted meanwhile.
    fn refresh<'a>(&'a self, turn: TurnView<'a>) -> BoxFuture<'a, Option<Settings>>;

    /// The same before the first turn of a run, and before a call outside of one, with the settings that
    /// it would have.
    fn begin<'a>(&'a self, settings: &'a Arc<Settings>) -> BoxFuture<'a, Option<Settings>> {
        let _ = settings;
        Box::pin(std::future::ready(None))
    }
}

/// Ends a run after a turn though it could go on; no queue is polled then. Must not fail: its safe
/// answer is `false`.
pub trait StopCheck: Send + Sync {
    /// Whether the run ends here.
    fn should_stop<'a>(&'a self, turn: TurnView<'a>) -> BoxFuture<'a, bool>;
}

/// Resolves the credential anew for every model call, because a short-lived one may expire during
/// a long tool phase (seed: "the API key is resolved per model call"). Must not fail: its safe
/// answer is `None`, with which the provider refuses the request in its own words.
pub trait Credentials: Send + Sync {
    /// The credential of one model call.
    fn resolve(&self) -> BoxFuture<'_, Option<Secret>>;
}
