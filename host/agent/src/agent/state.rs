//! What an agent is made of: what stays, what changes, and who watches.

use crate::AbortSignal;
use crate::config::{
    AgentConfig, Clock, ContextTransform, Conversion, Credentials, NextTurn, Policy, Settings,
    StopCheck,
};
use crate::error::AgentError;
use crate::event::Observer;
use crate::hook::Approver;
use crate::journal::Journal;
use crate::message::Message;
use crate::queue::Queues;
use crate::run::{Start, Waits};
use crate::transcript::Transcript;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::watch;

/// An agent behind its handles.
pub(crate) struct Inner {
    pub(crate) fixed: Fixed,
    state: Mutex<State>,
    observers: Mutex<Observers>,
    running: watch::Sender<bool>,
    /// Held while a call is in preflight.
    pub(crate) preflight: tokio::sync::Mutex<()>,
    /// Keeps calls outside a run apart.
    pub(crate) waits: Waits,
}

/// The part of the configuration that stays.
pub(crate) struct Fixed {
    /// Where the settings have none of their own.
    pub(crate) policy: Arc<Policy>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) transform: Option<Arc<dyn ContextTransform>>,
    pub(crate) conversion: Option<Arc<dyn Conversion>>,
    pub(crate) next_turn: Option<Arc<dyn NextTurn>>,
    pub(crate) stop: Option<Arc<dyn StopCheck>>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) clock: Clock,
}

/// What changes. Locked for moments only, never across an await.
pub(crate) struct State {
    pub(crate) settings: Arc<Settings>,
    pub(crate) transcript: Transcript,
    pub(crate) queues: Queues,
    pub(crate) active: Option<AbortSignal>,
    pub(crate) last_error: Option<String>,
    /// Messages of the transcript that the journal does not have yet: they come first.
    pub(crate) unwritten: Vec<Arc<Message>>,
}

type ObserverList = Arc<Vec<(u64, Arc<dyn Observer>)>>;

#[derive(Default)]
struct Observers {
    list: ObserverList,
    next_id: u64,
}

/// Keeps an observer subscribed; ends it when dropped.
#[derive(Debug)]
pub struct Subscription {
    agent: Weak<Inner>,
    id: u64,
}

impl Inner {
    pub(crate) fn new(config: AgentConfig) -> Self {
        // Destructured whole, so that a new field cannot be forgotten.
        let AgentConfig {
            settings,
            tool_execution,
            before,
            after,
            approver,
            steering_mode,
            follow_up_mode,
            transform,
            conversion,
            next_turn,
            stop,
            credentials,
            journal,
            guards,
            coercion,
            messages,
            clock,
        } = config;
        let mut queues = Queues::default();
        queues.steering.mode = steering_mode;
        queues.follow_up.mode = follow_up_mode;
        Self {
            fixed: Fixed {
                policy: Arc::new(Policy { tool_execution, before, after, guards, coercion }),
                approver,
                transform,
                conversion,
                next_turn,
                stop,
                credentials,
                journal,
                clock,
            },
            state: Mutex::new(State {
                settings: Arc::new(settings),
                transcript: Transcript::new(messages),
                queues,
                active: None,
                last_error: None,
                unwritten: Vec::new(),
            }),
            observers: Mutex::default(),
            running: watch::Sender::new(false),
            preflight: tokio::sync::Mutex::default(),
            waits: Waits::default(),
        }
    }

    /// What calls pass under these settings.
    pub(crate) fn policy(&self, settings: &Settings) -> Arc<Policy> {
        settings.policy.as_ref().unwrap_or(&self.fixed.policy).clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, unless a run is active.
    pub(crate) fn when_idle(&self, change: impl FnOnce(&mut State)) -> Result<(), AgentError> {
        let mut state = self.state();
        if state.active.is_some() {
            return Err(AgentError::Busy);
        }
        change(&mut state);
        Ok(())
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.send_replace(running);
    }

    pub(crate) async fn idle(&self) {
        let mut running = self.running.subscribe();
        // The sender lives as long as the agent, so waiting cannot fail.
        let _ = running.wait_for(|running| !running).await;
    }

    pub(crate) fn observers(&self) -> ObserverList {
        self.observer_lock().list.clone()
    }

    fn observer_lock(&self) -> MutexGuard<'_, Observers> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What `continue` begins with: the tail of the transcript decides.
    pub(crate) fn start_of_continuation(&mut self) -> Result<Start, AgentError> {
        let messages = self.transcript.messages();
        let Some(tail) = messages.last() else {
            return Err(AgentError::NothingToContinue);
        };
        if tail.as_assistant().is_none() {
            return Ok(Start::from_tail());
        }
        let steering = self.queues.steering.poll();
        if !steering.is_empty() {
            return Ok(Start::steered(steering));
        }
        let follow_ups = self.queues.follow_up.poll();
        if !follow_ups.is_empty() {
            return Ok(Start::prompt(follow_ups));
        }
        Err(AgentError::AssistantTail)
    }

    pub(crate) fn set_messages(&mut self, messages: Vec<Arc<Message>>) {
        self.transcript = Transcript::new(messages);
        self.unwritten.clear();
    }

    pub(crate) fn reset(&mut self) {
        self.set_messages(Vec::new());
        self.queues.clear();
        self.last_error = None;
    }

    /// Answers calls that are still open. Returns what that added.
    pub(crate) fn settle(&mut self) -> Vec<Arc<Message>> {
        let added = self.transcript.settle();
        self.unwritten.extend(added.iter().cloned());
        added
    }
}

pub(super) fn subscribe(agent: &Arc<Inner>, observer: Arc<dyn Observer>) -> Subscription {
    let mut observers = agent.observer_lock();
    let id = observers.next_id;
    observers.next_id += 1;
    Arc::make_mut(&mut observers.list).push((id, observer));
    Subscription { agent: Arc::downgrade(agent), id }
}

impl Subscription {
    /// Keeps the observer for as long as the agent lives.
    pub fn detach(self) {
        std::mem::forget(self);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.upgrade() {
            let mut observers = agent.observer_lock();
            Arc::make_mut(&mut observers.list).retain(|(id, _)| *id != self.id);
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}
