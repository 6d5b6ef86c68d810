//! Log lines of what an agent does, with spans for the run, the turn and the call that each belongs
//! to. They go to whatever subscriber of `tracing` the process has.
//!
//! What comes from outside is in fields, never in the message, where a formatter would print it raw.

use crate::bill::{self, Bill};
use crate::contents::{self, Contents};
use crate::subject::Subject;
use cofferdam_agent::EndReason;
use cofferdam_agent::event::{CallEnd, CallEvent, Event, HookRecord, Observer};
use cofferdam_agent::message::{AssistantMessage, Message};
use cofferdam_agent::model::Retry;
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::{Span, debug, error, error_span, info, warn};

/// The target of every line and span, for filters.
pub const TARGET: &str = "cofferdam";

/// Writes the events of one agent to the log.
#[derive(Debug)]
pub struct Logs {
    subject: Subject,
    contents: Contents,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    runs: u64,
    run: Span,
    began: Instant,
    turns: u64,
    turn: Span,
    /// When the model was asked last, as near as events tell.
    asked: Instant,
    /// The calls of the last answer. Others come from outside the run.
    wanted: Vec<String>,
    /// Calls that began and did not end. Ids may be there twice; the older one ends first.
    calls: Vec<(String, Span)>,
}

impl Logs {
    /// Watches one agent.
    pub fn new(subject: Subject, contents: Contents) -> Self {
        let now = Instant::now();
        let state = State {
            runs: 0,
            run: Span::none(),
            began: now,
            turns: 0,
            turn: Span::none(),
            asked: now,
            wanted: Vec::new(),
            calls: Vec::new(),
        };
        Self { subject, contents, state: Mutex::new(state) }
    }

    fn event(&self, state: &mut State, event: &Event<'_>) {
        match event {
            Event::AgentStart => self.run(state),
            Event::TurnStart => turn(state),
            Event::ModelRetry { retry } => self.retry(state, retry),
            Event::MessageEnd { message } => self.message(state, message),
            Event::ToolExecutionStart { call } => self.call(state, call),
            Event::ToolExecutionEnd { call, end } => self.call_end(state, call, end),
            Event::AgentEnd { reason, .. } => run_end(state, *reason),
            Event::MessageStart { .. }
            | Event::MessageUpdate { .. }
            | Event::ToolExecutionUpdate { .. }
            | Event::TurnEnd { .. } => {}
        }
    }

    fn run(&self, state: &mut State) {
        state.runs += 1;
        let session = self.subject.session.as_deref();
        // Spans are of the highest level, so that a filter that keeps a line keeps its spans too.
        state.run = error_span!(target: TARGET, parent: None, "run", number = state.runs, session);
        state.began = Instant::now();
        state.turns = 0;
        // Those of a run that was dropped never end.
        state.calls.clear();
        let (provider, model) = (self.subject.provider.as_deref(), self.subject.model.as_deref());
        state.run.in_scope(|| info!(target: TARGET, provider, model, "run begins"));
    }

    fn retry(&self, state: &State, retry: &Retry) {
        let problem = self.contents.text(|| retry.problem.clone());
        let (number, of, wait_ms) = (retry.retry, retry.retries_max, millis(retry.wait));
        state.turn.in_scope(|| {
            warn!(target: TARGET, retry = number, of, wait_ms, problem, "model is asked again");
        });
    }

    fn message(&self, state: &mut State, message: &Message) {
        match message {
            Message::Assistant(answer) => self.answer(state, answer),
            Message::User(user) => {
                let prompt = self.contents.text(|| contents::prompt(user));
                state.turn.in_scope(|| debug!(target: TARGET, prompt, "message of the user"));
            }
            Message::ToolResult(_) | Message::Custom(_) => {}
        }
        state.asked = Instant::now();
    }

    fn answer(&self, state: &mut State, answer: &AssistantMessage) {
        state.wanted = answer.tool_calls().map(|call| call.id.clone()).collect();
        let usage = answer.usage;
        let text = self.contents.text(|| contents::answer(answer));
        let (provider, model) = (contents::name(&answer.provider), contents::name(&answer.model));
        let calls = state.wanted.len();
        let stop_reason = answer.stop_reason.as_str();
        let ms = millis(state.asked.elapsed());
        let _turn = state.turn.enter();
        if answer.failed() {
            let problem = self.contents.text(|| answer.error_message.clone().unwrap_or_default());
            warn!(
                target: TARGET, provider, model, stop_reason, ms, problem, "no whole answer"
            );
        } else {
            info!(
                target: TARGET, provider, model, stop_reason, ms, calls, input_tokens = usage.input, output_tokens = usage.output,
                cache_read_tokens = usage.cache_read, cache_write_tokens = usage.cache_write,
                answer = text, "answer"
            );
        }
    }

    fn call(&self, state: &mut State, call: &CallEvent<'_>) {
        let (id, tool) = (contents::name(call.id), contents::name(call.name));
        let of_run = state.wanted.iter().any(|wanted| wanted == call.id);
        let parent = state.turn.id().filter(|_| of_run);
        let span = error_span!(target: TARGET, parent: parent, "call", id, tool);
        let arguments =
            self.contents.text(|| Value::Object((**call.arguments).clone()).to_string());
        span.in_scope(|| debug!(target: TARGET, arguments, "call begins"));
        state.calls.push((call.id.to_owned(), span));
    }

    fn call_end(&self, state: &mut State, call: &CallEvent<'_>, end: &CallEnd) {
        let open = state.calls.iter().position(|(id, _)| id == call.id);
        let span = open.map_or_else(Span::none, |open| state.calls.remove(open).1);
        let _call = span.enter();
        for record in &end.hooks {
            hook(record);
        }
        let bill = Bill::of(&end.receipt);
        for refusal in &bill.refusals {
            // Already without secrets and fit to show. The operator has to see it to act on it.
            warn!(target: TARGET, plugin = bill.plugin, refusal, "refused");
        }
        let refusals = bill.refusals.len();
        let ending = contents::name(bill::ending(end));
        let result = self.contents.text(|| contents::result(&end.result));
        macro_rules! ended {
            ($level:ident) => {
                $level!(
                    target: TARGET, end = ending, ms = millis(end.duration),
                    plugin = bill.plugin, fuel = bill.fuel,
                    memory_peak_bytes = bill.memory_peak_bytes, wall_us = bill.wall_us,
                    waiting_us = bill.waiting_us, http_requests = bill.http_requests,
                    refusals, cuts = bill.cuts, result, "call ended"
                )
            };
        }
        match end.is_error {
            true => ended!(warn),
            false => ended!(info),
        }
    }
}

impl Observer for Logs {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        self.event(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), event);
        Box::pin(std::future::ready(()))
    }
}

fn turn(state: &mut State) {
    state.turns += 1;
    state.turn = error_span!(target: TARGET, parent: &state.run, "turn", number = state.turns);
    state.asked = Instant::now();
    state.turn.in_scope(|| debug!(target: TARGET, "turn begins"));
}

fn hook(record: &HookRecord) {
    let (hook, did) = (contents::name(&record.hook), bill::action(record));
    let fuel = Bill::of(&record.receipt).fuel;
    match did {
        "kept" => debug!(target: TARGET, hook, did, fuel, "hook"),
        "failed" => warn!(target: TARGET, hook, did, fuel, "hook"),
        _ => info!(target: TARGET, hook, did, fuel, "hook"),
    }
}

fn run_end(state: &mut State, reason: Option<EndReason>) {
    let (turns, ms) = (state.turns, millis(state.began.elapsed()));
    let run = std::mem::replace(&mut state.run, Span::none());
    run.in_scope(|| match reason {
        None => error!(target: TARGET, end = "journal_failed", turns, ms, "run ended"),
        Some(end @ (EndReason::Finished | EndReason::Terminated | EndReason::Stopped)) => {
            info!(target: TARGET, end = end.as_str(), turns, ms, "run ended");
        }
        Some(end) => warn!(target: TARGET, end = end.as_str(), turns, ms, "run ended"),
    });
    state.turn = Span::none();
    state.wanted.clear();
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
