//! Those who do again what is written: a model, tools, hooks and a person.

use super::script::{CallScript, Cue, Script};
use crate::session::format::ToolEntry;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::event::{CallEnd, HookAction, HookRecord};
use cofferdam_agent::hook::{
    AfterHook, Amendment, Approval, Approver, BeforeHook, Decision, Hooked, HookedCall, Question,
    Ran, Verdict,
};
use cofferdam_agent::message::{Arguments, Content, Message};
use cofferdam_agent::model::{Model, Request, Step};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure, ToolResult};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::future::{poll_fn, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The script, and how far it has been played.
pub(super) struct Prompter {
    state: Mutex<State>,
}

struct State {
    script: Script,
    /// The calls that have entered preflight, by their ids.
    calls: HashMap<String, CallScript>,
    /// The call in preflight.
    current: String,
    /// Tools that wait for their turn.
    waiting: HashMap<String, Waker>,
}

impl Prompter {
    pub(super) fn new(script: Script) -> Arc<Self> {
        let (calls, waiting) = Default::default();
        let state = State { script, calls, current: String::new(), waiting };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// A call enters preflight.
    pub(super) fn call_starts(&self, id: &str) {
        let mut state = self.state();
        id.clone_into(&mut state.current);
        let next = state.script.calls.get_mut(id).and_then(VecDeque::pop_front);
        state.calls.insert(id.to_owned(), next.unwrap_or_default());
    }

    /// What was queued while this turn ended.
    pub(super) fn queued(&self) -> Vec<Message> {
        self.state().script.queued.pop_front().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What the tool of this call does next, if it is its turn.
    fn take_cue(&mut self, id: &str, cx: &Context<'_>) -> Poll<Cue> {
        match self.script.cues.front() {
            Some(cue) if cue.id() == id => {
                let cue = self.script.cues.pop_front();
                let next = self.script.cues.front().map(|cue| cue.id().to_owned());
                if let Some(waker) = next.and_then(|id| self.waiting.remove(&id)) {
                    waker.wake();
                }
                cue.map_or(Poll::Pending, Poll::Ready)
            }
            _ => {
                self.waiting.insert(id.to_owned(), cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Gives the recorded answers.
pub(super) struct OldModel(pub(super) Arc<Prompter>);

impl Model for OldModel {
    fn stream(&self, _: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        let Some(answer) = self.0.state().script.answers.pop_front() else {
            return stream::pending().boxed();
        };
        if answer.aborts {
            abort.cancel();
        }
        let retries = stream::iter(answer.retries.into_iter().map(Step::Retry));
        match answer.message {
            Some(message) => retries.chain(stream::iter([Step::Done(message)])).boxed(),
            None => retries.chain(stream::pending()).boxed(),
        }
    }
}

/// Gives the recorded results, in their order.
pub(super) struct OldTool {
    prompter: Arc<Prompter>,
    declaration: Arc<Declaration>,
    execution: Execution,
    plugin: String,
}

impl OldTool {
    pub(super) fn new(prompter: &Arc<Prompter>, entry: &ToolEntry) -> Self {
        Self {
            prompter: prompter.clone(),
            declaration: Arc::new(Declaration {
                name: entry.name.clone(),
                label: entry.label.clone(),
                description: entry.description.clone(),
                parameters: entry.parameters.clone(),
            }),
            execution: entry.execution.clone().into(),
            plugin: entry.plugin.clone(),
        }
    }
}

impl Tool for OldTool {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    fn execution(&self) -> &Execution {
        &self.execution
    }

    fn plugin(&self) -> &str {
        &self.plugin
    }

    fn prepare<'a>(
        &'a self,
        _: &'a Arguments,
        abort: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        let mut state = self.prompter.state();
        let current = state.current.clone();
        let call = state.calls.get_mut(&current)?;
        if call.aborts && !call.ran && call.hooks.is_empty() {
            abort.cancel();
        }
        let prepared = call.prepared.take()?;
        Some(Box::pin(ready(prepared)))
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            loop {
                let cue = poll_fn(|cx| self.prompter.state().take_cue(&call.id, cx)).await;
                match cue {
                    Cue::Run(_) => {}
                    Cue::Progress(_, partial) => progress.report(partial),
                    Cue::End(_) => break,
                }
            }
            let mut state = self.prompter.state();
            let script = state.calls.get_mut(&*call.id);
            if script.as_ref().is_some_and(|script| script.aborts) {
                abort.cancel();
            }
            outcome(script.and_then(|script| script.end.as_ref()))
        })
    }
}

/// What the tool answered, as far as it can be told from what the call came to: the hooks after it
/// put in again what they had put in.
fn outcome(end: Option<&CallEnd>) -> Outcome {
    let Some(end) = end else { return Ok(ToolResult::default()).into() };
    let answer = match &end.ended_by {
        None => Ok(end.result.clone()),
        Some(code) => Err(ToolFailure {
            message: first_text(&end.result),
            ended_by: code.clone(),
            details: end.result.details.clone(),
        }),
    };
    Outcome { answer, receipt: end.receipt.clone() }
}

fn first_text(result: &ToolResult) -> String {
    let text = result.content.iter().find_map(|block| match block {
        Content::Text(text) => Some(text.clone()),
        Content::Image(_) => None,
    });
    text.unwrap_or_default()
}

/// Does what a hook before the calls did.
pub(super) struct OldBeforeHook {
    pub(super) prompter: Arc<Prompter>,
    pub(super) name: String,
    /// Whether the call does not run if the hook fails.
    pub(super) blocks: bool,
}

impl BeforeHook for OldBeforeHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn before<'a>(
        &'a self,
        call: HookedCall<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let mut state = self.prompter.state();
        let hooked = match state.calls.get_mut(&*call.call.id) {
            Some(script) => {
                let hooked = self.again(script, &call.call.arguments);
                if script.aborts && !script.ran && script.hooks.iter().all(is_asked) {
                    abort.cancel();
                }
                hooked
            }
            None => Ok(Verdict::Proceed).into(),
        };
        Box::pin(ready(hooked))
    }
}

impl OldBeforeHook {
    fn again(&self, script: &mut CallScript, arguments: &Arguments) -> Hooked<Verdict> {
        // What the hooks did is recorded with the end of the call. Where the record breaks off
        // before it, what they made of the arguments is known all the same.
        if let (None, Some(to)) = (&script.end, &script.ran_with) {
            let verdict =
                if to == arguments { Verdict::Proceed } else { Verdict::Rewrite(to.clone()) };
            return Ok(verdict).into();
        }
        // A question of this hook comes after the whole chain.
        let asks = script.hooks.iter().any(|record| is_asked(record) && record.hook == self.name);
        let ran = script.ran;
        let Some(record) = script.hooks.pop_front_if(|record| self.is_mine(record, ran)) else {
            return Ok(if asks { ask() } else { Verdict::Proceed }).into();
        };
        let answer = match record.action {
            HookAction::Rewrote { to, .. } => Ok(Verdict::Rewrite(to)),
            HookAction::Blocked(refusal) => Ok(Verdict::Block(refusal)),
            HookAction::Failed(problem) => Err(problem),
            _ if asks => Ok(ask()),
            _ => Ok(Verdict::Proceed),
        };
        Hooked { answer, receipt: record.receipt }
    }

    /// One plugin may be hooked before and after a call. What it did after the call is not taken
    /// for what it did before; where it only looked, either place gives the same record.
    fn is_mine(&self, record: &HookRecord, ran: bool) -> bool {
        let before = match record.action {
            HookAction::Amended(_) | HookAction::Asked(_) => false,
            HookAction::Failed(_) => !(ran && self.blocks),
            HookAction::Kept | HookAction::Rewrote { .. } | HookAction::Blocked(_) => true,
        };
        before && record.hook == self.name
    }
}

fn is_asked(record: &HookRecord) -> bool {
    matches!(record.action, HookAction::Asked(_))
}

fn ask() -> Verdict {
    Verdict::Ask(Question { title: "Was asked then".into(), message: String::new() })
}

/// Does what a hook after the calls did.
pub(super) struct OldAfterHook {
    pub(super) prompter: Arc<Prompter>,
    pub(super) name: String,
}

impl AfterHook for OldAfterHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn after<'a>(
        &'a self,
        call: HookedCall<'a>,
        _: Ran<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        let mut state = self.prompter.state();
        let script = state.calls.get_mut(&*call.call.id);
        let record = script.and_then(|s| s.hooks.pop_front_if(|record| record.hook == self.name));
        let hooked = match record {
            None => Ok(Amendment::default()).into(),
            Some(record) => {
                let answer = match record.action {
                    HookAction::Amended(amendment) => Ok(amendment),
                    HookAction::Failed(problem) => Err(problem),
                    _ => Ok(Amendment::default()),
                };
                Hooked { answer, receipt: record.receipt }
            }
        };
        Box::pin(ready(hooked))
    }
}

/// Answers what a person was asked.
pub(super) struct OldPerson(pub(super) Arc<Prompter>);

impl Approver for OldPerson {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        let mut state = self.0.state();
        let record = state.calls.get_mut(&*approval.call.id).and_then(|script| {
            let asked = |record: &HookRecord| is_asked(record) && record.hook == approval.hook;
            let at = script.hooks.iter().position(asked)?;
            script.hooks.remove(at)
        });
        let decision = match record.map(|record| record.action) {
            Some(HookAction::Asked(decision)) => decision,
            _ => Decision::declined(),
        };
        Box::pin(ready(decision))
    }
}
