//! A model as the loop sees it: one request in, one stream of steps out, never an error.

use crate::AbortSignal;
use crate::message::{AssistantMessage, Message, ToolCall};
use crate::tool::Declaration;
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Everything that one model call needs.
#[derive(Debug, Clone)]
pub struct Request {
    /// Not a message: a field of each request.
    pub system_prompt: Arc<str>,
    /// The conversation so far, after transform and conversion.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The tools that the model may ask for.
    pub tools: Arc<Vec<Arc<Declaration>>>,
    /// How much the model shall think.
    pub thinking: Thinking,
    /// Resolved anew for every call, because a short-lived one may expire during a long tool phase
    /// (seed: "the API key is resolved per model call").
    pub credential: Option<Secret>,
}

/// How much a model shall think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Thinking {
    /// Not at all.
    #[default]
    Off,
    /// As little as the provider offers.
    Minimal,
    /// A little.
    Low,
    /// A fair amount.
    Medium,
    /// A lot.
    High,
}

/// A credential. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// One step of a streaming answer. Blocks are numbered from 0 in the order of their starts.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "`index` is the block's number, the other fields say what they are"
)]
pub enum Step {
    /// The request failed before anything was answered, and will be sent again. Comes before
    /// [`Step::Start`] only.
    Retry(Retry),
    /// The provider began to answer.
    Start,
    /// A text block begins.
    TextStart { index: usize },
    /// More text.
    TextDelta { index: usize, delta: String },
    /// A text block is complete; `text` is authoritative.
    TextEnd { index: usize, text: String },
    /// A thinking block begins.
    ThinkingStart { index: usize },
    /// More thinking.
    ThinkingDelta { index: usize, delta: String },
    /// A thinking block is complete; `thinking` is authoritative.
    ThinkingEnd { index: usize, thinking: String },
    /// A tool call begins.
    ToolCallStart { index: usize, id: String, name: String },
    /// More of the argument text.
    ToolCallDelta { index: usize, delta: String },
    /// A tool call is complete; `call` is authoritative.
    ToolCallEnd { index: usize, call: ToolCall },
    /// The answer is complete; this message is authoritative. Always the last step.
    Done(AssistantMessage),
}

/// A request that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Which of the retries this is, counted from 1.
    pub retry: u32,
    /// How many there may be.
    pub retries_max: u32,
    /// How long it waits before it.
    pub wait: Duration,
    /// What went wrong.
    pub problem: String,
}

/// Something that answers requests.
///
/// A model does not fail: whatever goes wrong ends the stream with [`Step::Done`] and a message of
/// stop reason `error` (or `aborted`, also if `abort` was already set when it was called).
pub trait Model: Send + Sync {
    /// Answers one request. Dropping the stream ends the request at once.
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step>;
}

impl Secret {
    /// Wraps a credential.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The credential itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
