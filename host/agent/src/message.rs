//! What a transcript is made of: user, assistant and tool-result messages and their blocks.
//!
//! These are the values of the loop, not a format: each edge (provider wire, session file, JSON
//! output) has types of its own and converts.

use serde_json::{Map, Value};
use std::sync::Arc;

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What a person, or whoever drives the agent, said.
    User(UserMessage),
    /// What a model answered.
    Assistant(AssistantMessage),
    /// What a tool call came to.
    ToolResult(ToolResultMessage),
    /// A message of a role of the embedder's own: kept in the transcript, not sent to a model
    /// unless the conversion makes something of it.
    Custom(CustomMessage),
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Text and images.
    pub content: Vec<Content>,
}

/// A message of a role that the loop does not know.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomMessage {
    /// The embedder's name of the role.
    pub role: String,
    /// Anything; the loop does not look into it.
    pub content: Value,
}

/// One block of a user message or a tool result.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text or Markdown.
    Text(String),
    /// An image.
    Image(Image),
}

/// Bytes of an image with their media type.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes themselves, not base64.
    pub data: Arc<[u8]>,
}

/// The answer of a model to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct AssistantMessage {
    /// The blocks in the order in which the model wrote them.
    pub content: Vec<AssistantBlock>,
    /// Why the answer ended; [`StopReason::Pending`] while it streams.
    pub stop_reason: StopReason,
    /// The provider's own word for the stop reason, if it gave one.
    pub raw_stop_reason: Option<String>,
    /// What went wrong, for stop reasons `error` and `aborted`.
    pub error_message: Option<String>,
    /// The provider that answered, such as `anthropic`.
    pub provider: String,
    /// The model that answered, by the provider's name for it.
    pub model: String,
    /// Tokens spent, as far as the provider told.
    pub usage: Usage,
}

/// One block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantBlock {
    /// Text for the user.
    Text(TextBlock),
    /// The model's reasoning.
    Thinking(ThinkingBlock),
    /// A tool that the model wants to be run.
    ToolCall(ToolCall),
}

/// Text for the user.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// The provider's signature of the block, kept byte for byte for replay.
    pub signature: Option<String>,
}

/// The model's reasoning.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThinkingBlock {
    /// The text; empty if the provider redacted it.
    pub thinking: String,
    /// The provider's signature of the block, kept byte for byte for replay; of a redacted block,
    /// its opaque content.
    pub signature: Option<String>,
    /// Whether the provider keeps the text to itself.
    pub redacted: bool,
    /// The provider's id of the block, where it wants that back on replay.
    pub id: Option<String>,
}

/// The arguments of a call: a JSON object, shared because transcript, events, hooks and tool all
/// hold it. Whoever changes it makes a copy.
pub type Arguments = Arc<Map<String, Value>>;

/// A tool that the model wants to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model sent them; empty if its complete text was no JSON object. In an
    /// answer that was cut or failed: as much as can be told, for eyes only.
    pub arguments: Arguments,
    /// Set if the model's argument text was no JSON object.
    pub malformed: Option<MalformedArguments>,
    /// The provider's signature of the block, kept byte for byte for replay.
    pub signature: Option<String>,
}

/// Argument text that is no JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct MalformedArguments {
    /// The text as received.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It has not ended yet.
    Pending,
    /// The model was done.
    Stop,
    /// The output limit cut it: no tool call of such an answer is trusted.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The request failed; `error_message` says why.
    Error,
    /// The run was aborted.
    Aborted,
}

/// Tokens spent on one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the request that were not read from a cache.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Tokens of the request that were read from a cache.
    pub cache_read: u64,
    /// Tokens that were written to a cache.
    pub cache_write: u64,
}

/// What a tool call came to, as the model gets to see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResultMessage {
    /// The id of the call that this answers.
    pub tool_call_id: String,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// What the model sees.
    pub content: Vec<Content>,
    /// Structured facts for interfaces and logs; never sent to a model.
    pub details: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl StopReason {
    const ALL: [StopReason; 6] =
        [Self::Pending, Self::Stop, Self::Length, Self::ToolUse, Self::Error, Self::Aborted];

    /// The word for it in events, transcripts and the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "tool_use",
            Self::Error => "error",
            Self::Aborted => "aborted",
        }
    }

    /// The stop reason of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

impl UserMessage {
    /// A message of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())] }
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

/// A user message of one text block.
impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::User(UserMessage::text(text))
    }
}

/// A user message of one text block.
impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::User(UserMessage::text(text))
    }
}

impl Message {
    /// The message as an answer, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(answer) => Some(answer),
            Self::User(_) | Self::ToolResult(_) | Self::Custom(_) => None,
        }
    }
}

impl AssistantMessage {
    /// An answer without content so far.
    pub fn pending() -> Self {
        Self {
            content: Vec::new(),
            stop_reason: StopReason::Pending,
            raw_stop_reason: None,
            error_message: None,
            provider: String::new(),
            model: String::new(),
            usage: Usage::default(),
        }
    }

    /// Whether the request failed or was aborted: the calls of such an answer are not run.
    pub fn failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }

    /// The tool calls among the blocks, in source order, whatever the stop reason.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call),
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) => None,
        })
    }
}
