//! A tool as the loop sees it: a declaration for the model, a scheduling rule, and a call that
//! always comes to something.
//!
//! ```
//! use cofferdam_agent::tool::{Call, Declaration, Outcome, Tool, ToolFailure, ToolResult};
//! use cofferdam_agent::{AbortSignal, Toolset, progress::Progress, toolset::Rules};
//! use futures::future::BoxFuture;
//! use std::sync::Arc;
//!
//! struct Length(Arc<Declaration>);
//!
//! impl Tool for Length {
//!     fn declaration(&self) -> &Arc<Declaration> {
//!         &self.0
//!     }
//!
//!     fn call<'a>(&'a self, call: Call, _: Progress, _: AbortSignal) -> BoxFuture<'a, Outcome> {
//!         Box::pin(async move {
//!             match call.arguments.get("text").and_then(|text| text.as_str()) {
//!                 Some(text) => Ok(ToolResult::text(text.len().to_string())).into(),
//!                 None => Err(ToolFailure::new("there is no text")).into(),
//!             }
//!         })
//!     }
//! }
//!
//! let declaration = Declaration {
//!     name: "length".into(),
//!     label: None,
//!     description: "The length of a text in bytes".into(),
//!     parameters: serde_json::json!({
//!         "type": "object",
//!         "properties": {"text": {"type": "string"}},
//!         "required": ["text"],
//!     }),
//! };
//! let tool: Arc<dyn Tool> = Arc::new(Length(Arc::new(declaration)));
//! assert_eq!(Toolset::new([tool], Rules::Portable).len(), 1);
//! ```

use crate::AbortSignal;
use crate::message::{Arguments, Content};
use crate::progress::Progress;
use crate::receipt::SharedReceipt;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// What the model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Unique among the tools of an agent.
    pub name: String,
    /// Short name for people; the name if absent.
    pub label: Option<String>,
    /// For the model: what it does, when to use it, what it returns.
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
}

/// Which other calls of the same batch a call may run beside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Execution {
    /// Beside any other call.
    #[default]
    Parallel,
    /// Beside none: a batch that names this tool runs one call at a time.
    Sequential,
    /// Beside any call that shares none of these lanes; calls that share one run in source order.
    Exclusive(Vec<String>),
}

/// One call with the arguments that the tool shall get.
#[derive(Debug, Clone)]
pub struct Call {
    /// The call's id in events and transcript.
    pub id: Arc<str>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// Valid arguments, as the before-hooks left them.
    pub arguments: Arguments,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResult {
    /// What the model sees.
    pub content: Vec<Content>,
    /// Structured facts for interfaces and logs; never sent to a model.
    pub details: Option<Value>,
    /// `Some(true)` if the call failed but still has content to show.
    pub is_error: Option<bool>,
    /// The call's vote on ending the run after this batch.
    pub terminate: Option<bool>,
}

/// A call that could not be carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    /// For the model: what went wrong and what would work.
    pub message: String,
    /// What ended the call, an open list: `failure`, `trap`, `exit`, `memory-limit`, `fuel-limit`,
    /// `time-limit`, `output-limit`, `aborted`.
    pub ended_by: String,
    /// Machine-readable facts, for interfaces and logs.
    pub details: Option<Value>,
}

/// How a call ended, with its bill. A failure is a value here: nothing that a tool does ends a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The answer, or why there is none.
    pub answer: Result<ToolResult, ToolFailure>,
    /// What the call cost, where its runner measures that.
    pub receipt: Option<SharedReceipt>,
}

/// A tool that an agent offers.
pub trait Tool: Send + Sync {
    /// What the model is told. Asked often: keep it ready.
    fn declaration(&self) -> &Arc<Declaration>;

    /// Which other calls of the same batch a call may run beside.
    fn execution(&self) -> &Execution {
        &Execution::Parallel
    }

    /// The operator's name of the plugin that owns the tool; empty for a native tool.
    fn plugin(&self) -> &str {
        ""
    }

    /// Repairs arguments before validation, for models that send an older or sloppier shape.
    /// `None`, the default, means that the tool has no such step. An `Err` refuses the call; its
    /// text goes to the model. (Seed: "optionally prepare raw arguments for compatibility".)
    fn prepare<'a>(
        &'a self,
        arguments: &'a Arguments,
        abort: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        let _ = (arguments, abort);
        None
    }

    /// Runs one call. The future is always polled to its end unless the whole run is dropped, so
    /// a tool should watch `abort`; a sandboxed one is stopped by its sandbox.
    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome>;
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], ..Self::default() }
    }
}

impl ToolFailure {
    /// A plain failure, ended by `failure`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ended_by: "failure".into(), details: None }
    }
}

impl From<Result<ToolResult, ToolFailure>> for Outcome {
    fn from(answer: Result<ToolResult, ToolFailure>) -> Self {
        Self { answer, receipt: None }
    }
}
