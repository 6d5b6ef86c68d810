//! One call outside a run, for a model that lives elsewhere. There is no batch whose order could say
//! what may run beside what, so the calls that are there at the same time are taken for one.

use super::Walk;
use super::batch::{Calls, OneCall};
use super::finish::Finished;
use super::preflight::{Preflight, Ready};
use crate::AbortSignal;
use crate::agent::Inner;
use crate::config::{Settings, ToolExecution};
use crate::event::{CallEnd, Event, Observer, ended_by};
use crate::message::{AssistantBlock, AssistantMessage, StopReason, ToolCall};
use crate::refusal;
use crate::tool::Execution;
use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError, Weak};
use tokio::sync::{Mutex, OwnedMutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keeps calls apart that may not run at the same time.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Written by a call that must be alone, read by all others.
    alone: RwLock<()>,
    /// A lock for each lane that a call uses or waits for.
    lanes: StdMutex<HashMap<String, Weak<Mutex<()>>>>,
}

/// What a call holds while it runs.
#[expect(dead_code, reason = "held, not read")]
enum Held<'a> {
    Alone(RwLockWriteGuard<'a, ()>),
    Beside(RwLockReadGuard<'a, ()>, Vec<OwnedMutexGuard<()>>),
}

/// See [`crate::Agent::call`].
pub(crate) async fn call_outside(
    agent: &Inner,
    call: ToolCall,
    abort: &AbortSignal,
    watcher: &dyn Observer,
) -> CallEnd {
    let walk = Walk { agent, abort, watcher: Some(watcher) };
    let settings = refreshed(agent, abort).await;
    let policy = agent.policy(&settings);
    let calls = Calls {
        list: vec![&call],
        toolset: &settings.toolset,
        policy: &policy,
        answer: Some(Arc::new(answer(&call))),
    };
    let one = OneCall { index: 0, call: &call, all: &calls };
    walk.emit(&Event::ToolExecutionStart { call: one.event() }).await;
    let finished = match walk.preflight(one).await {
        Preflight::Ready(ready) => in_turn(&walk, ready).await,
        Preflight::Refused(finished) => finished,
    };
    walk.emit(&Event::ToolExecutionEnd { call: one.event(), end: &finished.end }).await;
    finished.end
}

/// What changed since the last call is in force from this one on.
async fn refreshed(agent: &Inner, abort: &AbortSignal) -> Arc<Settings> {
    let settings = agent.state().settings.clone();
    let Some(hook) = &agent.fixed.next_turn else { return settings };
    match abort.run_until_cancelled(hook.begin(&settings)).await.flatten() {
        None => agent.state().settings.clone(),
        Some(new) => {
            let mut state = agent.state();
            state.settings = Arc::new(new);
            state.settings.clone()
        }
    }
}

/// Hooks are shown the answer that holds a call; of one that came alone there is no more than it.
fn answer(call: &ToolCall) -> AssistantMessage {
    AssistantMessage {
        content: vec![AssistantBlock::ToolCall(call.clone())],
        stop_reason: StopReason::ToolUse,
        ..AssistantMessage::pending()
    }
}

async fn in_turn(walk: &Walk<'_>, ready: Ready<'_>) -> Finished {
    let execution = match ready.one.all.policy.tool_execution {
        ToolExecution::Sequential => &Execution::Sequential,
        ToolExecution::Parallel => ready.entry.tool.execution(),
    };
    match walk.abort.run_until_cancelled(walk.agent.waits.wait(execution)).await {
        Some(_held) => walk.execute(ready).await,
        None => {
            let mut finished = Finished::refused(ended_by::ABORTED, refusal::aborted());
            finished.end.hooks = ready.records;
            finished
        }
    }
}

impl Waits {
    async fn wait(&self, execution: &Execution) -> Held<'_> {
        let names = match execution {
            Execution::Sequential => return Held::Alone(self.alone.write().await),
            Execution::Parallel => &[][..],
            Execution::Exclusive(names) => names,
        };
        let beside = self.alone.read().await;
        // Everybody takes lanes in the same order, so no two wait for each other.
        let mut names: Vec<&String> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        let mut lanes = Vec::with_capacity(names.len());
        for name in names {
            lanes.push(self.lane(name).lock_owned().await);
        }
        Held::Beside(beside, lanes)
    }

    fn lane(&self, name: &str) -> Arc<Mutex<()>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(name).and_then(Weak::upgrade) {
            return lane;
        }
        // Lanes that nobody uses any more go when another is made.
        lanes.retain(|_, lane| lane.strong_count() > 0);
        let lane = Arc::new(Mutex::new(()));
        lanes.insert(name.to_owned(), Arc::downgrade(&lane));
        lane
    }
}
