//! One run on a stage of its own: an agent made of the cast, driven until it ends or until nobody
//! has anything more to do.

use super::cast::{OldAfterHook, OldBeforeHook, OldModel, OldPerson, OldTool, Prompter};
use super::script::Script;
use crate::session::format::{self, Line, Setup};
use crate::session::recorder::Recorder;
use crate::session::witnessed;
use cofferdam_agent::config::{
    AfterEntry, AfterFailure, BeforeEntry, BeforeFailure, Guards, Rewrites, ToolExecution,
};
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::message::Message;
use cofferdam_agent::queue::QueueMode;
use cofferdam_agent::tool::Tool;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use futures::future::BoxFuture;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::coop::unconstrained;

/// Plays one run, and returns what was recorded of it.
pub(super) fn play(setup: &Setup, before: Vec<Arc<Message>>, mut script: Script) -> Vec<Line> {
    let prompts = std::mem::take(&mut script.prompts);
    let prompter = Prompter::new(script);
    let recorder = Arc::new(Recorder::in_memory(String::new(), Box::new(|| 0)));
    let mut config = config(setup, &prompter, &recorder);
    config.messages = before;
    config.journal = Some(recorder.clone());
    let agent = Agent::new(config);
    let announcing = agent.subscribe(Arc::new(Announcing(prompter.clone())));
    let recording = agent.subscribe(recorder.clone());
    let queueing = agent.subscribe(Arc::new(Queueing { prompter, agent: agent.clone() }));
    until_stuck(agent.prompt(prompts));
    drop((announcing, recording, queueing));
    recorder.lines()
}

fn config(setup: &Setup, prompter: &Arc<Prompter>, recorder: &Arc<Recorder>) -> AgentConfig {
    let tools = setup.tools.iter().map(|entry| {
        let tool: Arc<dyn Tool> = Arc::new(OldTool::new(prompter, entry));
        tool
    });
    let toolset = Toolset::new(witnessed(tools, recorder), Rules::Portable);
    let settings = Settings::new(Arc::new(OldModel(prompter.clone())))
        .with_toolset(toolset)
        .with_system_prompt(setup.system_prompt.as_str());
    let mut config = AgentConfig::new(settings);
    if setup.sequential {
        config.tool_execution = ToolExecution::Sequential;
    }
    config.coercion = setup.coerce_arguments;
    config.guards =
        Guards { turns_max: setup.max_turns, truncated_in_a_row_max: setup.max_truncated_answers };
    config.approver = Some(Arc::new(OldPerson(prompter.clone())));
    config.steering_mode = QueueMode::All;
    config.before = setup.before.iter().map(|entry| before(entry, prompter)).collect();
    config.after = setup.after.iter().map(|entry| after(entry, prompter)).collect();
    config
}

fn before(entry: &format::BeforeEntry, prompter: &Arc<Prompter>) -> BeforeEntry {
    let hook = OldBeforeHook {
        prompter: prompter.clone(),
        name: entry.hook.clone(),
        blocks: !matches!(entry.failure.as_str(), "ask" | "proceed"),
    };
    let mut link = BeforeEntry::new(Arc::new(hook));
    link.failure = match entry.failure.as_str() {
        "ask" => BeforeFailure::Ask,
        "proceed" => BeforeFailure::Proceed,
        _ => BeforeFailure::Block,
    };
    // What a hook wrote then was what it was allowed to write; a refused rewrite is recorded as the
    // failure that it was.
    link.rewrites = Rewrites::Trusted;
    link
}

fn after(entry: &format::AfterEntry, prompter: &Arc<Prompter>) -> AfterEntry {
    let hook = OldAfterHook { prompter: prompter.clone(), name: entry.hook.clone() };
    let mut link = AfterEntry::new(Arc::new(hook));
    if entry.failure == "keep" {
        link.failure = AfterFailure::Keep;
    }
    link
}

/// Tells the prompter which call is in preflight, before anybody acts on it.
struct Announcing(Arc<Prompter>);

impl Observer for Announcing {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionStart { call } = event {
            self.0.call_starts(call.id);
        }
        Box::pin(ready(()))
    }
}

/// Queues again what was queued while a turn ended. Steering or follow-up, the loop takes either at
/// the same place once nothing else is left.
struct Queueing {
    prompter: Arc<Prompter>,
    agent: Agent,
}

impl Observer for Queueing {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::TurnEnd { .. } = event {
            self.prompter.queued().into_iter().for_each(|message| self.agent.steer(message));
        }
        Box::pin(ready(()))
    }
}

/// Polls a future as long as something wakes it. Nobody on this stage waits for anything outside.
///
/// The stage has to itself the thread that it is polled on. Where that is one of tokio's, its locks
/// would send us back to a scheduler once the task has used up its share of turns, and would do so for
/// ever: a new share is given by that scheduler only.
fn until_stuck<T>(future: impl Future<Output = T>) -> Option<T> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(unconstrained(future));
    while woken.0.swap(false, Ordering::AcqRel) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
    }
    None
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
