//! The format of a script.

use super::Steps;
use cofferdam_agent::message::StopReason;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A JSON list of answers, used in order, one per model call:
///
/// ```
/// # use cofferdam_providers::scripted::Script;
/// let script = Script::parse(r#"[
///   {"content": [{"type": "tool_call", "id": "c1", "name": "grep", "arguments": {"pattern": "fn"}}],
///    "stop_reason": "tool_use"},
///   {"content": [{"type": "text", "text": "grep said: ${results.c1}"}], "stop_reason": "stop"}
/// ]"#);
/// assert!(script.is_ok());
/// ```
///
/// In every string of `content`, `${results.ID}` stands for the text of the result of call `ID`,
/// and `${results.ID.PATH}` for a part of it: `text`, `is_error`, `details`, or a dotted path
/// below `details` such as `details.matches.0.line`. A string that is one reference and nothing
/// else becomes the value itself, with its type; elsewhere anything that is no text is written as
/// JSON. `$${` stands for a plain `${`.
#[derive(Debug, Clone)]
pub struct Script {
    /// The answers.
    pub answers: Vec<Answer>,
}

/// A script that cannot be played.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ScriptError {
    /// It is no JSON of the right shape.
    #[error("read the script: {0}")]
    Format(String),
    /// An answer has a step or a shape that makes no sense.
    #[error("answer {answer} of the script: {problem}")]
    Answer {
        /// Counted from 1.
        answer: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The blocks of the message.
    #[serde(default)]
    pub content: Vec<Block>,
    /// `stop`, `tool_use`, `length`, `error` or `aborted`; by default `tool_use` if there is a
    /// call among the blocks, else `stop`.
    #[serde(default, deserialize_with = "stop_reason")]
    pub stop_reason: Option<StopReason>,
    /// The provider's own word for the stop reason.
    pub raw_stop_reason: Option<String>,
    /// For stop reasons `error` and `aborted`.
    pub error_message: Option<String>,
    /// Instead of all else: the request fails with this text before anything is sent.
    pub throw: Option<String>,
    /// How the message is sent.
    #[serde(default)]
    pub stream: StreamShape,
    /// Tokens spent.
    #[serde(default)]
    pub usage: Tokens,
    /// Which model gave the answer, where a run was recorded. For readers only.
    pub recorded_from: Option<String>,
    /// Steps before the answer begins.
    #[serde(default)]
    pub before: Vec<Value>,
    /// Steps between the beginning of the answer and the end of a `plain` one.
    #[serde(default)]
    pub after_start: Vec<Value>,
    /// Steps between the chunks of an answer with `deltas`.
    #[serde(default)]
    pub pauses: Vec<Pause>,
}

/// Tokens spent on an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tokens {
    /// Of the request, without those from a cache.
    pub input_tokens: u64,
    /// Of the answer.
    pub output_tokens: u64,
    /// Of the request, from a cache.
    pub cache_read_tokens: u64,
    /// Written to a cache.
    pub cache_write_tokens: u64,
}

/// Steps after the n-th chunk of an answer, counted from 1.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Which chunk.
    pub after_chunk: usize,
    /// What to do.
    pub steps: Vec<Value>,
}

/// How a message is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamShape {
    /// A start without content, then the final message.
    #[default]
    Plain,
    /// Only the final message.
    None,
    /// Start, then each block as a start, one delta for each of its `chunks`, an end.
    Deltas,
    /// Start, then the stream closes with the message as its result.
    NoDone,
}

/// One block of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    /// Text for the user.
    Text {
        /// The text.
        text: String,
        /// What it is sent in; by default one piece.
        chunks: Option<Vec<String>>,
        /// Kept byte for byte.
        signature: Option<String>,
    },
    /// Reasoning.
    Thinking {
        /// The text.
        thinking: String,
        /// What it is sent in; by default one piece.
        chunks: Option<Vec<String>>,
        /// Kept byte for byte.
        signature: Option<String>,
        /// Whether the provider keeps the text to itself.
        #[serde(default)]
        redacted: bool,
        /// The provider's id of it.
        id: Option<String>,
    },
    /// A tool that shall be run.
    ToolCall {
        /// Pairs the call with its result.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments.
        #[serde(default)]
        arguments: Map<String, Value>,
        /// The raw text of the arguments, in place of `arguments`. If it is no JSON object, the
        /// call is malformed and `arguments` is what can be told of it.
        arguments_text: Option<String>,
        /// What the argument text is sent in; by default one piece.
        chunks: Option<Vec<String>>,
        /// Kept byte for byte.
        signature: Option<String>,
    },
}

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let answers = serde_json::from_str(text).map_err(|problem| {
            ScriptError::Format(format!("{problem} (a script is a JSON list of answers)"))
        })?;
        Ok(Script { answers })
    }

    pub(super) fn check_steps(&self, known: &dyn Steps) -> Result<(), ScriptError> {
        for (at, answer) in self.answers.iter().enumerate() {
            let pauses = answer.pauses.iter().flat_map(|pause| &pause.steps);
            for step in answer.before.iter().chain(&answer.after_start).chain(pauses) {
                known
                    .check(step)
                    .map_err(|problem| ScriptError::Answer { answer: at + 1, problem })?;
            }
        }
        Ok(())
    }
}

impl Answer {
    /// The stop reason, or what it is by default.
    pub fn stop_reason(&self) -> StopReason {
        let calls = self.content.iter().any(|block| matches!(block, Block::ToolCall { .. }));
        self.stop_reason.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::Stop })
    }
}

fn stop_reason<'de, D>(input: D) -> Result<Option<StopReason>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let Some(word) = Option::<String>::deserialize(input)? else { return Ok(None) };
    match StopReason::from_word(&word) {
        Some(StopReason::Pending) | None => Err(serde::de::Error::custom(format!(
            "stop_reason `{word}` is none of stop, tool_use, length, error, aborted"
        ))),
        reason => Ok(reason),
    }
}
