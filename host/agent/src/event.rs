//! What observers of a run get to see, in the order in which it happens.

use crate::hook::{Amendment, Decision, Refusal};
use crate::message::{Arguments, AssistantMessage, Message};
use crate::model::{Retry, Step};
use crate::receipt::SharedReceipt;
use crate::run::EndReason;
use crate::tool::ToolResult;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// One event of a run. Events borrow: an observer that keeps something clones it.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A run begins.
    AgentStart,
    /// One model answer and its tool results begin.
    TurnStart,
    /// A model call failed before anything was answered, and will be made again.
    ModelRetry {
        /// Which retry, why, and when.
        retry: &'a Retry,
    },
    /// A message begins: a prompt, an injected message, an answer, a tool result.
    MessageStart {
        /// The message, so far without content if it is an answer that streams.
        message: &'a Message,
    },
    /// An answer grows: the step and the message so far.
    MessageUpdate {
        /// What came.
        step: &'a Step,
        /// The message with it.
        message: &'a AssistantMessage,
    },
    /// A message is complete and in the transcript.
    MessageEnd {
        /// The message.
        message: &'a Arc<Message>,
    },
    /// A call enters preflight.
    ToolExecutionStart {
        /// The call.
        call: CallEvent<'a>,
    },
    /// A running call reports progress.
    ToolExecutionUpdate {
        /// The call.
        call: CallEvent<'a>,
        /// What it reports.
        partial: &'a ToolResult,
    },
    /// A call is final. Comes in completion order.
    ToolExecutionEnd {
        /// The call.
        call: CallEvent<'a>,
        /// What it came to.
        end: &'a CallEnd,
    },
    /// A turn is over; the results are in source order.
    TurnEnd {
        /// The answer.
        message: &'a Arc<Message>,
        /// The results of its calls.
        tool_results: &'a [Arc<Message>],
    },
    /// A run is over; always the last event.
    AgentEnd {
        /// The messages that the run added.
        messages: &'a [Arc<Message>],
        /// Why it ended; none if the journal could not be written.
        reason: Option<EndReason>,
    },
}

/// Which call an event is about.
#[derive(Debug, Clone, Copy)]
pub struct CallEvent<'a> {
    /// The call's id.
    pub id: &'a str,
    /// The tool's name as the model wrote it.
    pub name: &'a str,
    /// The arguments as the model sent them, never the prepared or rewritten ones.
    pub arguments: &'a Arguments,
}

/// What ended a call that the loop itself ended, as codes for programs. A call that a tool's runner
/// ended carries a code of that runner.
pub mod ended_by {
    /// No tool of this name is offered.
    pub const UNKNOWN_TOOL: &str = "unknown-tool";
    /// The tool was refused when it was declared.
    pub const REFUSED_TOOL: &str = "refused-tool";
    /// The tool's own preparation of the arguments failed.
    pub const PREPARATION: &str = "preparation";
    /// The model's argument text was no JSON object.
    pub const MALFORMED_ARGUMENTS: &str = "malformed-arguments";
    /// The tool's schema rejects the arguments.
    pub const INVALID_ARGUMENTS: &str = "invalid-arguments";
    /// A before-hook blocked the call.
    pub const BLOCKED: &str = "blocked";
    /// A question got a no, or nobody was there to answer.
    pub const NOT_APPROVED: &str = "not-approved";
    /// A before-hook failed.
    pub const HOOK: &str = "hook";
    /// The run was aborted before the call ran.
    pub const ABORTED: &str = "aborted";
    /// The output limit cut the answer that holds the call.
    pub const TRUNCATED: &str = "truncated";
    /// A native tool panicked.
    pub const PANIC: &str = "panic";
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct CallEnd {
    /// The final result, hooks included.
    pub result: ToolResult,
    /// Whether the call counts as failed.
    pub is_error: bool,
    /// What ended the call; absent if the tool answered. One of [`ended_by`], or a code of the
    /// tool's runner, see [`crate::tool::ToolFailure`].
    pub ended_by: Option<String>,
    /// From the start of the tool to its end, hooks not included; zero if it never ran.
    pub duration: Duration,
    /// What the call cost, where its runner measures that.
    pub receipt: Option<SharedReceipt>,
    /// What each hook did that did something, in the order of the chain.
    pub hooks: Vec<HookRecord>,
}

/// What one hook did to a call: for people and records, never for a model.
#[derive(Debug, Clone)]
pub struct HookRecord {
    /// The hook's name.
    pub hook: String,
    /// What it did.
    pub action: HookAction,
    /// What it cost, where its runner measures that.
    pub receipt: Option<SharedReceipt>,
}

/// What a hook did to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum HookAction {
    /// Looked and let it be.
    Kept,
    /// Replaced the arguments.
    Rewrote {
        /// As they were.
        from: Arguments,
        /// As they are now.
        to: Arguments,
    },
    /// Blocked the call.
    Blocked(Refusal),
    /// Had a person asked, with this outcome.
    Asked(Decision),
    /// Amended the result.
    Amended(Amendment),
    /// Failed, with this text.
    Failed(String),
}

/// Somebody who watches a run. A barrier: the loop goes on when every observer has dealt with an
/// event, save that a slow observer of one call's update does not hold up another call. Events of
/// calls that run at the same time may be delivered at the same time.
///
/// An observer cannot fail: there is no error in its type.
pub trait Observer: Send + Sync {
    /// Deals with one event.
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()>;
}
