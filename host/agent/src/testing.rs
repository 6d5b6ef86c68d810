//! Scripted models and fake tools, for the tests of this and other crates (feature `testing`).

use crate::AbortSignal;
use crate::event::{Event, Observer};
use crate::message::{
    Arguments, AssistantBlock, AssistantMessage, StopReason, TextBlock, ToolCall,
};
use crate::model::{Model, Request, Step};
use crate::progress::Progress;
use crate::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure, ToolResult};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures::executor::block_on(future)
}

/// Answers to give to a [`ScriptedModel`].
pub mod answer {
    use super::{
        Arguments, AssistantBlock, AssistantMessage, StopReason, TextBlock, ToolCall, Value,
    };

    /// A finished text.
    pub fn text(text: &str) -> AssistantMessage {
        let block = TextBlock { text: text.into(), signature: None };
        AssistantMessage {
            content: vec![AssistantBlock::Text(block)],
            stop_reason: StopReason::Stop,
            ..AssistantMessage::pending()
        }
    }

    /// Calls, each with its id, its tool's name and its arguments (an object).
    pub fn calls<'a>(
        calls: impl IntoIterator<Item = (&'a str, &'a str, Value)>,
    ) -> AssistantMessage {
        let block = |(id, name, arguments): (&str, &str, Value)| {
            let arguments = match arguments {
                Value::Object(arguments) => Arguments::new(arguments),
                _ => Arguments::default(),
            };
            AssistantBlock::ToolCall(ToolCall { arguments, ..ToolCall::from_text(id, name, "") })
        };
        AssistantMessage {
            content: calls.into_iter().map(block).collect(),
            stop_reason: StopReason::ToolUse,
            ..AssistantMessage::pending()
        }
    }
}

/// A model that gives prepared answers in order, then the text `done` for ever. It answers `aborted`
/// when the run is.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    answers: Mutex<VecDeque<AssistantMessage>>,
    requests: Mutex<Vec<Request>>,
    keep: bool,
}

impl ScriptedModel {
    /// A model that gives these answers.
    pub fn new(answers: impl IntoIterator<Item = AssistantMessage>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() }
    }

    /// The same, keeping every request for [`ScriptedModel::requests`].
    pub fn keeping_requests(mut self) -> Self {
        self.keep = true;
        self
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }
}

impl Model for ScriptedModel {
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        if self.keep {
            lock(&self.requests).push(request);
        }
        if abort.is_cancelled() {
            let aborted = AssistantMessage {
                stop_reason: StopReason::Aborted,
                error_message: Some("aborted".into()),
                ..AssistantMessage::pending()
            };
            return stream::iter([Step::Done(aborted)]).boxed();
        }
        let answer = lock(&self.answers).pop_front().unwrap_or_else(|| answer::text("done"));
        stream::iter([Step::Start, Step::Done(answer)]).boxed()
    }
}

type Body = dyn Fn(Call, Progress, AbortSignal) -> BoxFuture<'static, Outcome> + Send + Sync;

/// A native tool from a closure, with a schema that takes any object.
pub struct FnTool {
    declaration: Arc<Declaration>,
    execution: Execution,
    plugin: String,
    body: Arc<Body>,
}

impl FnTool {
    /// A tool that runs `body` for each call.
    pub fn new<F>(
        name: &str,
        body: impl Fn(Call, Progress, AbortSignal) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolResult, ToolFailure>> + Send + 'static,
    {
        let declaration = Declaration {
            name: name.into(),
            label: None,
            description: format!("The tool {name}"),
            parameters: json!({"type": "object", "properties": {}, "required": []}),
        };
        Self {
            declaration: Arc::new(declaration),
            execution: Execution::default(),
            plugin: String::new(),
            body: Arc::new(move |call, progress, abort| {
                let running = body(call, progress, abort);
                Box::pin(async move { running.await.into() })
            }),
        }
    }

    /// A tool that answers every call with the same text.
    pub fn text(name: &str, text: &str) -> Self {
        let text = text.to_owned();
        Self::new(name, move |_, _, _| std::future::ready(Ok(ToolResult::text(&*text))))
    }

    /// The same with another schema.
    pub fn with_parameters(mut self, parameters: Value) -> Self {
        let declaration = (*self.declaration).clone();
        self.declaration = Arc::new(Declaration { parameters, ..declaration });
        self
    }

    /// The same with another scheduling rule.
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// The same as a tool of a plugin.
    pub fn of_plugin(mut self, plugin: &str) -> Self {
        self.plugin = plugin.into();
        self
    }

    /// As a toolset takes it.
    pub fn shared(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

impl Tool for FnTool {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    fn execution(&self) -> &Execution {
        &self.execution
    }

    fn plugin(&self) -> &str {
        &self.plugin
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        (self.body)(call, progress, abort)
    }
}

/// An observer that notes what it saw, by name.
#[derive(Debug, Default)]
pub struct Recorder {
    names: Mutex<Vec<&'static str>>,
}

impl Recorder {
    /// The names of the events so far.
    pub fn names(&self) -> Vec<&'static str> {
        lock(&self.names).clone()
    }
}

impl Observer for Recorder {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        lock(&self.names).push(name(event));
        Box::pin(std::future::ready(()))
    }
}

/// The name of an event.
pub fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::AgentStart => "agent_start",
        Event::TurnStart => "turn_start",
        Event::ModelRetry { .. } => "model_retry",
        Event::MessageStart { .. } => "message_start",
        Event::MessageUpdate { .. } => "message_update",
        Event::MessageEnd { .. } => "message_end",
        Event::ToolExecutionStart { .. } => "tool_execution_start",
        Event::ToolExecutionUpdate { .. } => "tool_execution_update",
        Event::ToolExecutionEnd { .. } => "tool_execution_end",
        Event::TurnEnd { .. } => "turn_end",
        Event::AgentEnd { .. } => "agent_end",
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
