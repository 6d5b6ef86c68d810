//! The format of a session file: one JSON object a line, each with its `type` and its time. What
//! the entries mean is written down in `host/docs/sessions.md`.
//!
//! A reader skips entries of a type that it does not know, and fields that it does not know. What
//! an old reader would get wrong raises [`VERSION`].

use super::nesting;
use crate::json;
use crate::json::read::{self, Fields, Unreadable};
use cofferdam_agent::event::CallEnd;
use cofferdam_agent::message::{Arguments, Message};
use cofferdam_agent::model::Retry;
use cofferdam_agent::tool::{Execution, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The version that is written. Files of a later one are refused.
pub const VERSION: u64 = 1;

/// One line of a session file.
#[derive(Debug, Clone)]
pub struct Line {
    /// When it was written: microseconds since 1970. Within one process the clock is monotonic.
    pub at_us: u64,
    /// What it says.
    pub entry: Entry,
}

/// What a line says.
#[derive(Debug, Clone)]
pub enum Entry {
    /// `session`: always the first line.
    Session(Header),
    /// `setup`: what the runs that follow are made of.
    Setup(Box<Setup>),
    /// `opened`: the file was opened to go on with it.
    Opened {
        /// Bytes of a cut last line that were removed.
        cut_bytes: u64,
    },
    /// `run_start`: a run begins.
    RunStart,
    /// `turn_start`: a model answer and its calls begin.
    TurnStart,
    /// `model_retry`: a request failed and will be sent again.
    ModelRetry(Retry),
    /// `message`: a message of the transcript, in transcript order.
    Message(Arc<Message>),
    /// `call_start`: a call enters preflight.
    CallStart {
        /// Which call.
        id: String,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// `call_prepared`: the tool's own preparation of the arguments is done.
    CallPrepared {
        /// Which call.
        id: String,
        /// What it made of them, or why it refused them.
        prepared: Result<Value, String>,
    },
    /// `call_run`: the tool begins to run, after preflight.
    CallRun {
        /// Which call.
        id: String,
        /// The arguments that the tool gets; none if they are those that the model sent.
        arguments: Option<Arguments>,
    },
    /// `call_progress`: a running call reports.
    CallProgress {
        /// Which call.
        id: String,
        /// What it reports.
        partial: ToolResult,
    },
    /// `call_end`: a call is final. In completion order, before its message.
    CallEnd {
        /// Which call.
        id: String,
        /// The tool's name as the model wrote it.
        name: String,
        /// What it came to.
        end: Box<CallEnd>,
    },
    /// `turn_end`: a turn is over.
    TurnEnd,
    /// `run_end`: a run is over.
    RunEnd,
    /// An entry of a later version.
    Unknown,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub version: u64,
    /// The session's id: the name of its file.
    pub id: String,
    /// The version of Cofferdam that began it.
    pub cofferdam: String,
}

/// What runs are made of, as far as it decides what the loop does.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The operator's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The system prompt of every request.
    #[serde(default)]
    pub system_prompt: String,
    /// Whether every batch runs one call at a time.
    #[serde(default)]
    pub sequential: bool,
    /// Whether loosely typed arguments are coerced.
    #[serde(default)]
    pub coerce_arguments: bool,
    /// The limit of turns of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The limit of truncated answers in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_truncated_answers: Option<u32>,
    /// The plugins.
    #[serde(default)]
    pub plugins: Vec<PluginEntry>,
    /// The tools, those that are refused included.
    #[serde(default)]
    pub tools: Vec<ToolEntry>,
    /// The chain before calls.
    #[serde(default)]
    pub before: Vec<BeforeEntry>,
    /// The chain after calls.
    #[serde(default)]
    pub after: Vec<AfterEntry>,
}

/// One plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginEntry {
    /// The operator's name for it.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The digest of the file.
    pub sha256: String,
}

/// One tool as the model was told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEntry {
    /// Its name, with the operator's prefix.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the model is told.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Value,
    /// Which calls it may run beside.
    pub execution: ExecutionEntry,
    /// Its plugin; empty for a native tool.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plugin: String,
}

/// Which other calls of the same batch a call may run beside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionEntry {
    /// Beside any other.
    Parallel,
    /// Beside none.
    Sequential,
    /// Beside any that shares none of these lanes.
    Exclusive(Vec<String>),
}

/// One link of the chain before calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeEntry {
    /// The hook.
    pub hook: String,
    /// What its failure does to the call: `block`, `ask` or `proceed`.
    pub failure: String,
    /// What it may do to arguments: `trusted`, `revalidated` or `forbidden`.
    pub rewrites: String,
}

/// One link of the chain after calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterEntry {
    /// The hook.
    pub hook: String,
    /// What its failure does to the result: `error` or `keep`.
    pub failure: String,
}

impl Line {
    /// The line as it stands in the file, with its line feed.
    pub fn to_text(&self) -> String {
        let mut text = nesting::fold(self.to_json()).to_string();
        text.push('\n');
        text
    }

    /// The line as JSON.
    pub fn to_json(&self) -> Value {
        let (kind, fields) = self.entry.parts();
        let mut line = Map::new();
        line.insert("type".into(), kind.into());
        line.insert("at_us".into(), self.at_us.into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        Value::Object(line)
    }

    /// Reads a line.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        let value = serde_json::from_str(text).map_err(|e| Unreadable(e.to_string()))?;
        let mut fields = Fields::of(nesting::unfold(value), "a line")?;
        let kind = fields.text("type")?;
        let at_us = fields.number("at_us")?;
        Ok(Self { at_us, entry: Entry::of(&kind, fields)? })
    }
}

impl Entry {
    fn parts(&self) -> (&'static str, Value) {
        match self {
            Self::Session(header) => ("session", plain(header)),
            Self::Setup(setup) => ("setup", plain(setup)),
            Self::Opened { cut_bytes } => ("opened", json!({"cut_bytes": cut_bytes})),
            Self::RunStart => ("run_start", Value::Null),
            Self::TurnStart => ("turn_start", Value::Null),
            Self::Message(message) => ("message", json!({"message": json::message(message)})),
            Self::ModelRetry(retry) => ("model_retry", Value::Object(json::retry(retry))),
            Self::CallStart { id, name } => ("call_start", of_call(id, name)),
            Self::CallPrepared { id, prepared: Ok(arguments) } => {
                ("call_prepared", json!({"tool_call_id": id, "arguments": arguments}))
            }
            Self::CallPrepared { id, prepared: Err(problem) } => {
                ("call_prepared", json!({"tool_call_id": id, "problem": problem}))
            }
            Self::CallRun { id, arguments: None } => ("call_run", json!({"tool_call_id": id})),
            Self::CallRun { id, arguments: Some(arguments) } => {
                ("call_run", json!({"tool_call_id": id, "arguments": **arguments}))
            }
            Self::CallProgress { id, partial } => {
                let partial = json::tool_result(partial);
                ("call_progress", json!({"tool_call_id": id, "partial_result": partial}))
            }
            Self::CallEnd { id, name, end } => {
                let mut fields = of_call(id, name);
                if let Value::Object(fields) = &mut fields {
                    fields.extend(json::call_end(end));
                }
                ("call_end", fields)
            }
            Self::TurnEnd => ("turn_end", Value::Null),
            Self::RunEnd => ("run_end", Value::Null),
            Self::Unknown => ("unknown", Value::Null),
        }
    }

    fn of(kind: &str, mut fields: Fields) -> Result<Self, Unreadable> {
        Ok(match kind {
            "session" => Self::Session(typed(fields)?),
            "setup" => Self::Setup(typed(fields)?),
            "opened" => Self::Opened { cut_bytes: fields.number("cut_bytes")? },
            "run_start" => Self::RunStart,
            "turn_start" => Self::TurnStart,
            "message" => Self::Message(Arc::new(read::message(fields.any("message")?)?)),
            "model_retry" => Self::ModelRetry(read::retry(&mut fields)?),
            "call_start" => Self::CallStart {
                id: fields.text("tool_call_id")?,
                name: fields.text("tool_name")?,
            },
            "call_prepared" => Self::CallPrepared {
                id: fields.text("tool_call_id")?,
                prepared: match fields.text_or_none("problem")? {
                    Some(problem) => Err(problem),
                    None => Ok(fields.any_or_none("arguments").unwrap_or_default()),
                },
            },
            "call_run" => Self::CallRun {
                id: fields.text("tool_call_id")?,
                arguments: fields.any_or_none("arguments").map(read::arguments).transpose()?,
            },
            "call_progress" => Self::CallProgress {
                id: fields.text("tool_call_id")?,
                partial: read::tool_result(fields.any("partial_result")?)?,
            },
            "call_end" => Self::CallEnd {
                id: fields.text("tool_call_id")?,
                name: fields.text("tool_name")?,
                end: Box::new(read::call_end(fields.rest())?),
            },
            "turn_end" => Self::TurnEnd,
            "run_end" => Self::RunEnd,
            _ => Self::Unknown,
        })
    }
}

impl From<&Execution> for ExecutionEntry {
    fn from(execution: &Execution) -> Self {
        match execution {
            Execution::Parallel => Self::Parallel,
            Execution::Sequential => Self::Sequential,
            Execution::Exclusive(lanes) => Self::Exclusive(lanes.clone()),
        }
    }
}

impl From<ExecutionEntry> for Execution {
    fn from(entry: ExecutionEntry) -> Self {
        match entry {
            ExecutionEntry::Parallel => Self::Parallel,
            ExecutionEntry::Sequential => Self::Sequential,
            ExecutionEntry::Exclusive(lanes) => Self::Exclusive(lanes),
        }
    }
}

fn of_call(id: &str, name: &str) -> Value {
    json!({"tool_call_id": id, "tool_name": name})
}

/// Structs of texts, numbers and JSON have nothing that could fail.
fn plain(fields: &impl Serialize) -> Value {
    serde_json::to_value(fields).unwrap_or_default()
}

fn typed<T: for<'de> Deserialize<'de>>(fields: Fields) -> Result<T, Unreadable> {
    serde_json::from_value(Value::Object(fields.rest())).map_err(|e| Unreadable(e.to_string()))
}
