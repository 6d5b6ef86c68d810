//! What an embedder decides: once for an agent ([`AgentConfig`]), or anew for each turn
//! ([`Settings`]).
//!
//! ```
//! use cofferdam_agent::config::{
//!     ContextTransform, Conversion, Credentials, Messages, NextTurn, StopCheck, TurnView,
//! };
//! use cofferdam_agent::message::Message;
//! use cofferdam_agent::model::{Secret, Thinking};
//! use cofferdam_agent::testing::ScriptedModel;
//! use cofferdam_agent::{AbortSignal, AgentConfig, Settings};
//! use futures::future::BoxFuture;
//! use std::sync::Arc;
//!
//! /// All loop hooks in one.
//! struct House;
//!
//! impl ContextTransform for House {
//!     fn transform<'a>(
//!         &'a self,
//!         messages: Messages,
//!         _: &'a AbortSignal,
//!     ) -> BoxFuture<'a, Messages> {
//!         let from = messages.len().saturating_sub(200);
//!         Box::pin(async move { Arc::new(messages[from..].to_vec()) })
//!     }
//! }
//!
//! impl Conversion for House {
//!     fn convert<'a>(&'a self, messages: Messages) -> BoxFuture<'a, Messages> {
//!         let convert = |message: &Arc<Message>| match &**message {
//!             Message::Custom(note) if note.role == "note" => {
//!                 Some(Arc::new(Message::from(note.content.to_string())))
//!             }
//!             Message::Custom(_) => None,
//!             _ => Some(message.clone()),
//!         };
//!         let converted = messages.iter().filter_map(convert).collect();
//!         Box::pin(async { Arc::new(converted) })
//!     }
//! }
//!
//! impl NextTurn for House {
//!     fn refresh<'a>(&'a self, turn: TurnView<'a>) -> BoxFuture<'a, Option<Settings>> {
//!         let thinks_more = turn.added.len() > 20;
//!         let settings = Settings { thinking: Thinking::High, ..(**turn.settings).clone() };
//!         Box::pin(async move { thinks_more.then_some(settings) })
//!     }
//! }
//!
//! impl StopCheck for House {
//!     fn should_stop<'a>(&'a self, turn: TurnView<'a>) -> BoxFuture<'a, bool> {
//!         Box::pin(async move { turn.added.len() > 1_000 })
//!     }
//! }
//!
//! impl Credentials for House {
//!     fn resolve(&self) -> BoxFuture<'_, Option<Secret>> {
//!         Box::pin(async { Some(Secret::new("from a vault, for this call only")) })
//!     }
//! }
//!
//! let mut config = AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default())));
//! config.transform = Some(Arc::new(House));
//! config.conversion = Some(Arc::new(House));
//! config.next_turn = Some(Arc::new(House));
//! config.stop = Some(Arc::new(House));
//! config.credentials = Some(Arc::new(House));
//! ```

mod hooks;
mod loop_hooks;

pub use hooks::{AfterEntry, AfterFailure, BeforeEntry, BeforeFailure, Rewrites, ToolFilter};
pub use loop_hooks::{
    ContextTransform, Conversion, Credentials, Messages, NextTurn, StopCheck, TurnView,
};

use crate::hook::Approver;
use crate::journal::Journal;
use crate::message::Message;
use crate::model::{Model, Thinking};
use crate::queue::QueueMode;
use crate::toolset::Toolset;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// What may change while an agent lives: it takes effect at the next turn boundary, never in a
/// request in flight or a running call (seed: "next-turn refresh").
#[derive(Clone)]
pub struct Settings {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// A field of each request, not a message.
    pub system_prompt: Arc<str>,
    /// The tools that the model may ask for.
    pub toolset: Arc<Toolset>,
    /// How much the model shall think.
    pub thinking: Thinking,
    /// What calls pass on their way; that of the agent's configuration if none is given.
    pub policy: Option<Arc<Policy>>,
}

/// What calls pass on their way, and the brakes of a run.
#[derive(Clone)]
pub struct Policy {
    /// Which calls of one batch may run at the same time.
    pub tool_execution: ToolExecution,
    /// The chain before a call, in order.
    pub before: Vec<BeforeEntry>,
    /// The chain after a call, in order.
    pub after: Vec<AfterEntry>,
    /// Brakes against endless repeats.
    pub guards: Guards,
    /// Whether loosely typed arguments are coerced, without loss, before they are validated.
    pub coercion: bool,
}

/// Which calls of one batch may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolExecution {
    /// All that their tools allow.
    #[default]
    Parallel,
    /// One after the other, whatever the tools declare.
    Sequential,
}

/// Brakes against a model that repeats itself without end. A run that reaches one ends; its last
/// error text says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Turns of one run.
    pub turns_max: Option<u32>,
    /// Answers in a row that the output limit cut.
    pub truncated_in_a_row_max: Option<u32>,
}

/// Reads a monotonic clock. The loop has none of its own.
pub type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Everything about an agent that stays as it is.
///
/// [`AgentConfig::new`] gives: parallel execution, no hooks, no approver (a hook that asks gets a
/// no), one queued message per poll, no loop hooks, no credential, no journal, coercion on, an
/// empty transcript, and the default [`Guards`].
pub struct AgentConfig {
    /// What may change later.
    pub settings: Settings,
    /// Which calls of one batch may run at the same time.
    pub tool_execution: ToolExecution,
    /// The chain before a call, in order.
    pub before: Vec<BeforeEntry>,
    /// The chain after a call, in order.
    pub after: Vec<AfterEntry>,
    /// Who answers the questions of before-hooks. Without one the answer is no.
    pub approver: Option<Arc<dyn Approver>>,
    /// How steering is polled.
    pub steering_mode: QueueMode,
    /// How follow-ups are polled.
    pub follow_up_mode: QueueMode,
    /// What of the transcript goes into a request.
    pub transform: Option<Arc<dyn ContextTransform>>,
    /// What becomes of messages that a model does not know. The default leaves custom roles out.
    pub conversion: Option<Arc<dyn Conversion>>,
    /// New settings between turns.
    pub next_turn: Option<Arc<dyn NextTurn>>,
    /// Whether a run ends though it could go on.
    pub stop: Option<Arc<dyn StopCheck>>,
    /// Where the credential of each model call comes from.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Where the transcript is written as it grows.
    pub journal: Option<Arc<dyn Journal>>,
    /// Brakes against endless repeats.
    pub guards: Guards,
    /// Whether loosely typed arguments are coerced, without loss, before they are validated.
    pub coercion: bool,
    /// What was said before, for an agent that goes on with an old conversation.
    pub messages: Vec<Arc<Message>>,
    /// Measures how long calls take.
    pub clock: Clock,
}

impl AgentConfig {
    /// The defaults, which the type's own text lists.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            tool_execution: ToolExecution::default(),
            before: Vec::new(),
            after: Vec::new(),
            approver: None,
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
            transform: None,
            conversion: None,
            next_turn: None,
            stop: None,
            credentials: None,
            journal: None,
            guards: Guards::default(),
            coercion: true,
            messages: Vec::new(),
            clock: Arc::new(Instant::now),
        }
    }
}

impl Settings {
    /// A model without tools, with an empty system prompt.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            system_prompt: "".into(),
            toolset: Arc::new(Toolset::default()),
            thinking: Thinking::default(),
            policy: None,
        }
    }

    /// The same with these tools.
    pub fn with_toolset(mut self, toolset: impl Into<Arc<Toolset>>) -> Self {
        self.toolset = toolset.into();
        self
    }

    /// The same with this system prompt.
    pub fn with_system_prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.system_prompt = prompt.into();
        self
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("system_prompt", &self.system_prompt)
            .field("toolset", &self.toolset)
            .field("thinking", &self.thinking)
            .finish_non_exhaustive()
    }
}

impl Guards {
    /// No brake at all.
    pub const NONE: Guards = Guards { turns_max: None, truncated_in_a_row_max: None };
}

/// 500 turns, 8 truncated answers in a row.
impl Default for Guards {
    fn default() -> Self {
        Self { turns_max: Some(500), truncated_in_a_row_max: Some(8) }
    }
}
