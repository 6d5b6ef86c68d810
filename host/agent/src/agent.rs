//! The agent: a transcript, two queues, settings, and at most one run at a time.

mod claim;
mod state;

pub use state::Subscription;

pub(crate) use claim::Claim;
pub(crate) use state::{Inner, State};

use crate::AbortSignal;
use crate::config::{AgentConfig, Messages, Settings};
use crate::error::AgentError;
use crate::event::{CallEnd, Observer};
use crate::message::{Message, ToolCall};
use crate::queue::{QueueKind, QueueMode};
use crate::run::{self, RunEnd, Start};
use std::fmt;
use std::sync::Arc;

/// A handle to an agent; clones are handles to the same one.
///
/// Nothing runs by itself: [`Agent::prompt`] and [`Agent::continue_run`] return a future that is
/// the whole run, polled by the embedder's executor. Dropping it ends the run: whatever was running
/// is dropped with it, every open call gets an error result, and the agent is idle again.
///
/// ```
/// # use cofferdam_agent::testing::{ScriptedModel, block_on, answer};
/// # use cofferdam_agent::{Agent, AgentConfig, Settings};
/// # use std::sync::Arc;
/// let model = Arc::new(ScriptedModel::new([answer::text("Hello.")]));
/// let agent = Agent::new(AgentConfig::new(Settings::new(model)));
/// let end = block_on(agent.prompt("Say hello."))?;
/// assert_eq!(end.messages.len(), 2);
/// assert_eq!(agent.messages().len(), 2);
/// # Ok::<(), cofferdam_agent::AgentError>(())
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

/// What a run begins with: one message or several.
#[derive(Debug, Clone, Default)]
pub struct Prompt(Vec<Message>);

impl Agent {
    /// An idle agent.
    pub fn new(config: AgentConfig) -> Self {
        Self { inner: Arc::new(Inner::new(config)) }
    }

    /// Runs until nothing is left to do: the answer asks for no tool and nothing is queued. A
    /// failed model or tool is in the transcript, not in the error.
    ///
    /// Fails with [`AgentError::Busy`] while a run is active, and if the journal cannot be written.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<RunEnd, AgentError> {
        let claim = Claim::new(&self.inner)?;
        run::run(&claim, Start::prompt(prompt.into().0)).await
    }

    /// Goes on from the transcript as it is, for a retry or after a crash. If it ends with an
    /// answer, what is queued is the prompt: steering first.
    ///
    /// ```
    /// # use cofferdam_agent::testing::{ScriptedModel, block_on};
    /// # use cofferdam_agent::{Agent, AgentConfig, AgentError, Settings};
    /// # use std::sync::Arc;
    /// # let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default()))));
    /// assert!(matches!(block_on(agent.continue_run()), Err(AgentError::NothingToContinue)));
    /// agent.set_messages(vec![Arc::new("An old question".into())])?;
    /// assert_eq!(block_on(agent.continue_run())?.messages.len(), 1);
    /// # Ok::<(), AgentError>(())
    /// ```
    ///
    /// Fails with [`AgentError::Busy`] while a run is active, with
    /// [`AgentError::NothingToContinue`] or [`AgentError::AssistantTail`] if there is nothing to
    /// go on from, and if the journal cannot be written.
    pub async fn continue_run(&self) -> Result<RunEnd, AgentError> {
        let claim = Claim::new(&self.inner)?;
        let start = self.inner.state().start_of_continuation()?;
        run::run(&claim, start).await
    }

    /// Queues a message for the running agent: it is delivered before the next request, when the
    /// answer and its calls are done. While idle it waits for the next run.
    ///
    /// ```
    /// # use cofferdam_agent::testing::{ScriptedModel, block_on, answer};
    /// # use cofferdam_agent::{Agent, AgentConfig, Settings};
    /// # use std::sync::Arc;
    /// # let model = Arc::new(ScriptedModel::new([answer::text("Fine.")]));
    /// # let agent = Agent::new(AgentConfig::new(Settings::new(model)));
    /// agent.steer("And be brief.");
    /// let end = block_on(agent.prompt("How are you?"))?;
    /// assert_eq!(end.messages.len(), 3);
    /// # Ok::<(), cofferdam_agent::AgentError>(())
    /// ```
    pub fn steer(&self, message: impl Into<Message>) {
        self.enqueue(QueueKind::Steering, message);
    }

    /// Queues a message for when the run would end; it goes on with it instead.
    ///
    /// ```
    /// # use cofferdam_agent::queue::{QueueKind, QueueMode};
    /// # use cofferdam_agent::testing::{ScriptedModel, block_on};
    /// # use cofferdam_agent::{Agent, AgentConfig, Settings};
    /// # use std::sync::Arc;
    /// # let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default()))));
    /// agent.follow_up("Then the second task.");
    /// agent.set_queue_mode(QueueKind::FollowUp, QueueMode::All);
    /// assert_eq!(agent.queued(QueueKind::FollowUp).len(), 1);
    /// assert_eq!(block_on(agent.prompt("The first task."))?.messages.len(), 4);
    /// # Ok::<(), cofferdam_agent::AgentError>(())
    /// ```
    pub fn follow_up(&self, message: impl Into<Message>) {
        self.enqueue(QueueKind::FollowUp, message);
    }

    /// Queues a message.
    pub fn enqueue(&self, queue: QueueKind, message: impl Into<Message>) {
        self.inner.state().queues.of(queue).push(message.into());
    }

    /// What waits in a queue, oldest first.
    pub fn queued(&self, queue: QueueKind) -> Vec<Message> {
        self.inner.state().queues.of(queue).all().cloned().collect()
    }

    /// What the next poll of a queue that is not empty would take: steering goes first.
    pub fn next_queued(&self) -> Vec<Message> {
        self.inner.state().queues.next()
    }

    /// Drops what waits in a queue.
    pub fn clear_queue(&self, queue: QueueKind) {
        self.inner.state().queues.of(queue).clear();
    }

    /// Sets how a queue is polled, from the next poll on.
    pub fn set_queue_mode(&self, queue: QueueKind, mode: QueueMode) {
        self.inner.state().queues.of(queue).mode = mode;
    }

    /// Runs one call outside a run, for a model that lives elsewhere: the same lookup, preparation,
    /// validation, hooks, approval and execution, and the same events, which `watcher` sees too. It
    /// is in no transcript and in no journal. `abort` is the call's own signal; [`Agent::abort`] is
    /// not about it.
    ///
    /// Calls may come at the same time, also while a run is active: each waits for its turn in
    /// preflight, and they keep the scheduling rules of their tools among each other.
    ///
    /// ```
    /// # use cofferdam_agent::message::ToolCall;
    /// # use cofferdam_agent::testing::{FnTool, Recorder, ScriptedModel, block_on};
    /// # use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset, toolset::Rules};
    /// # use std::sync::Arc;
    /// # let model = Arc::new(ScriptedModel::default());
    /// let toolset = Toolset::new([FnTool::text("greet", "Hello.").shared()], Rules::Portable);
    /// let agent = Agent::new(AgentConfig::new(Settings::new(model).with_toolset(toolset)));
    /// let call = ToolCall::from_text("c1", "greet", "{}");
    /// let end = block_on(agent.call(call, &AbortSignal::new(), &Recorder::default()));
    /// assert!(!end.is_error && agent.messages().is_empty());
    /// ```
    pub async fn call(
        &self,
        call: ToolCall,
        abort: &AbortSignal,
        watcher: &dyn Observer,
    ) -> CallEnd {
        run::call_outside(&self.inner, call, abort, watcher).await
    }

    /// Aborts the run: model, tools and hooks get the signal, no further call begins, and the run
    /// ends after the results of those that were running. Empties no queue. Without a run it does
    /// nothing.
    ///
    /// ```
    /// # use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
    /// # use cofferdam_agent::toolset::Rules;
    /// # use cofferdam_agent::{Agent, AgentConfig, EndReason, Settings, Toolset};
    /// # use cofferdam_agent::tool::{ToolFailure, ToolResult};
    /// # use std::sync::Arc;
    /// let waits = FnTool::new("wait", |_, _, abort| async move {
    ///     abort.cancelled().await;
    ///     Err(ToolFailure::new("stopped"))
    /// });
    /// let model = ScriptedModel::new([answer::calls([("c1", "wait", serde_json::json!({}))])]);
    /// let toolset = Toolset::new([waits.shared()], Rules::Portable);
    /// let settings = Settings::new(Arc::new(model)).with_toolset(toolset);
    /// let agent = Agent::new(AgentConfig::new(settings));
    /// let run = async { futures::join!(agent.prompt("go"), async { agent.abort() }).0 };
    /// assert_eq!(block_on(run)?.reason, EndReason::Aborted);
    /// # Ok::<(), cofferdam_agent::AgentError>(())
    /// ```
    pub fn abort(&self) {
        if let Some(abort) = &self.inner.state().active {
            abort.cancel();
        }
    }

    /// The signal of the run that is active, for work that belongs to it.
    pub fn abort_signal(&self) -> Option<AbortSignal> {
        self.inner.state().active.clone()
    }

    /// Waits until no run is active, observers of its last event included. Never call it from an
    /// observer, hook or tool of the same agent: it would wait for itself.
    pub async fn wait_for_idle(&self) {
        self.inner.idle().await;
    }

    /// Whether a run is active.
    pub fn is_running(&self) -> bool {
        self.inner.state().active.is_some()
    }

    /// The ids of the calls that have begun and not ended.
    pub fn pending_tool_calls(&self) -> Vec<String> {
        self.inner.state().transcript.pending()
    }

    /// Why the last run ended early: the error of a failed answer, or the guard that was reached.
    /// Cleared when a run begins.
    pub fn last_error(&self) -> Option<String> {
        self.inner.state().last_error.clone()
    }

    /// The transcript as it is now.
    pub fn messages(&self) -> Messages {
        self.inner.state().transcript.messages()
    }

    /// Replaces the transcript. Fails with [`AgentError::Busy`] while a run is active.
    pub fn set_messages(&self, messages: Vec<Arc<Message>>) -> Result<(), AgentError> {
        self.inner.when_idle(|state| state.set_messages(messages))
    }

    /// Empties transcript and queues. Fails with [`AgentError::Busy`] while a run is active.
    pub fn reset(&self) -> Result<(), AgentError> {
        self.inner.when_idle(State::reset)
    }

    /// The settings of the next turn.
    pub fn settings(&self) -> Arc<Settings> {
        self.inner.state().settings.clone()
    }

    /// Replaces the settings: other tools, model, prompt or thinking level. A running agent takes
    /// them at its next turn; the request in flight and the running calls keep theirs.
    ///
    /// ```
    /// # use cofferdam_agent::testing::ScriptedModel;
    /// # use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
    /// # use std::sync::Arc;
    /// # let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default()))));
    /// let settings = (*agent.settings()).clone();
    /// agent.set_settings(settings.with_system_prompt("Be brief.").with_toolset(Toolset::default()));
    /// ```
    pub fn set_settings(&self, settings: impl Into<Arc<Settings>>) {
        self.inner.state().settings = settings.into();
    }

    /// Lets an observer see every event from now on, after those that are there already.
    ///
    /// ```
    /// # use cofferdam_agent::testing::{Recorder, ScriptedModel, block_on, answer};
    /// # use cofferdam_agent::{Agent, AgentConfig, Settings};
    /// # use std::sync::Arc;
    /// # let model = Arc::new(ScriptedModel::new([answer::text("Fine.")]));
    /// # let agent = Agent::new(AgentConfig::new(Settings::new(model)));
    /// let recorder = Arc::new(Recorder::default());
    /// let subscription = agent.subscribe(recorder.clone());
    /// block_on(agent.prompt("How are you?"))?;
    /// assert_eq!(recorder.names().first(), Some(&"agent_start"));
    /// drop(subscription);
    /// # Ok::<(), cofferdam_agent::AgentError>(())
    /// ```
    #[must_use = "dropping the subscription ends it"]
    pub fn subscribe(&self, observer: Arc<dyn Observer>) -> Subscription {
        state::subscribe(&self.inner, observer)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("running", &self.is_running()).finish_non_exhaustive()
    }
}

impl From<Message> for Prompt {
    fn from(message: Message) -> Self {
        Self(vec![message])
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Message::from(text).into()
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Message::from(text).into()
    }
}

impl From<Vec<Message>> for Prompt {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages)
    }
}
