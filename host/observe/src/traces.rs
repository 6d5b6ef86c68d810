//! What an agent does as spans of OpenTelemetry, by the GenAI semantic conventions:
//!
//! ```text
//! invoke_agent cofferdam            a run
//!   chat claude-sonnet-5            a model call, retries included
//!   execute_tool grep               a call, from its preflight to its end, hooks included
//!   execute_tool calc
//!   chat claude-sonnet-5
//! ```
//!
//! A call from outside a run, as an MCP client makes one, is a trace of its own.

use crate::bill::{self, Bill};
use crate::contents::{self, Contents};
use crate::otlp::Sent;
use crate::subject::Subject;
use cofferdam_agent::EndReason;
use cofferdam_agent::event::{CallEnd, CallEvent, Event, Observer};
use cofferdam_agent::message::{AssistantMessage, Message, Usage, UserMessage};
use cofferdam_agent::model::Retry;
use futures::future::BoxFuture;
use opentelemetry::trace::{
    Event as Note, Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The name of the agent in spans.
const AGENT: &str = "cofferdam";

/// Makes spans of the events of one agent.
pub(crate) struct Traces {
    tracer: SdkTracer,
    subject: Subject,
    contents: Contents,
    sent: Arc<Sent>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    run: Option<Run>,
    calls: Vec<Open>,
}

/// A run that goes on.
struct Run {
    span: Context,
    turns: i64,
    usage: Usage,
    prompts: Vec<Json>,
    /// Since when the model is asked: the last event before an answer, as nothing else comes
    /// between it and the request.
    asked: SystemTime,
    /// When the answer began to stream.
    first: Option<SystemTime>,
    retries: Vec<Note>,
    /// The calls of the last answer. Others come from outside the run.
    wanted: Vec<String>,
}

/// A call that began and did not end. Ids may be there twice; the older one ends first.
struct Open {
    id: String,
    parent: Option<Context>,
    turn: Option<i64>,
    began: SystemTime,
}

impl Traces {
    pub(crate) fn new(
        tracer: SdkTracer,
        subject: Subject,
        contents: Contents,
        sent: Arc<Sent>,
    ) -> Self {
        Self { tracer, subject, contents, sent, state: Mutex::default() }
    }

    fn event(&self, state: &mut State, event: &Event<'_>, now: SystemTime) {
        match event {
            Event::AgentStart => self.run(state, now),
            Event::ToolExecutionStart { call } => state.call(call, now),
            Event::ToolExecutionEnd { call, end } => self.call_end(state, call, end, now),
            Event::AgentEnd { reason, .. } => {
                if let Some(run) = state.run.take() {
                    self.run_end(run, reason.map_or("journal_failed", EndReason::as_str), now);
                }
            }
            event => {
                if let Some(run) = &mut state.run {
                    self.event_of_run(run, event, now);
                }
            }
        }
    }

    fn event_of_run(&self, run: &mut Run, event: &Event<'_>, now: SystemTime) {
        match event {
            Event::TurnStart => {
                run.turns += 1;
                run.asked = now;
            }
            Event::ModelRetry { retry } => run.retries.push(self.retry(retry, now)),
            Event::MessageStart { message } => {
                run.first = message.as_assistant().map(|_| now);
            }
            Event::MessageEnd { message } => {
                match &***message {
                    Message::Assistant(answer) => self.chat(run, answer, now),
                    Message::User(message) => self.prompt(run, message),
                    Message::ToolResult(_) | Message::Custom(_) => {}
                }
                run.asked = now;
            }
            _ => {}
        }
    }

    /// Begins a run. One that was dropped has no end of its own.
    fn run(&self, state: &mut State, now: SystemTime) {
        if let Some(dropped) = state.run.take() {
            self.run_end(dropped, "dropped", now);
        }
        state.calls.clear();
        let mut attributes = self.operation("invoke_agent");
        attributes.push(KeyValue::new("gen_ai.agent.name", AGENT));
        attributes
            .extend(self.subject.model.clone().map(|model| text("gen_ai.request.model", &model)));
        let span = builder(format!("invoke_agent {AGENT}"), SpanKind::Internal, now, attributes);
        let span = self.tracer.build_with_context(span, &Context::new());
        state.run = Some(Run {
            span: Context::new().with_span(span),
            turns: 0,
            usage: Usage::default(),
            prompts: Vec::new(),
            asked: now,
            first: None,
            retries: Vec::new(),
            wanted: Vec::new(),
        });
    }

    fn run_end(&self, run: Run, reason: &'static str, now: SystemTime) {
        let span = run.span.span();
        span.set_attributes(usage(&run.usage));
        span.set_attribute(KeyValue::new("cofferdam.turns", run.turns));
        span.set_attribute(KeyValue::new("cofferdam.run.end", reason));
        if !run.prompts.is_empty() {
            let prompts = self.contents.text(|| Json::Array(run.prompts).to_string());
            span.set_attributes(
                prompts.map(|prompts| KeyValue::new("gen_ai.input.messages", prompts)),
            );
        }
        if !matches!(reason, "finished" | "terminated" | "stopped") {
            span.set_attribute(KeyValue::new("error.type", reason));
            span.set_status(Status::error(""));
        }
        self.sent.ended();
        span.end_with_timestamp(now);
    }

    fn prompt(&self, run: &mut Run, message: &UserMessage) {
        if self.contents == Contents::Shown {
            run.prompts.push(contents::input_message(message));
        }
    }

    fn retry(&self, retry: &Retry, now: SystemTime) -> Note {
        let wait_ms = i64::try_from(retry.wait.as_millis()).unwrap_or(i64::MAX);
        let mut attributes = vec![
            KeyValue::new("cofferdam.retry", i64::from(retry.retry)),
            KeyValue::new("cofferdam.wait_ms", wait_ms),
        ];
        let problem = self.contents.text(|| retry.problem.clone());
        attributes.extend(problem.map(|problem| KeyValue::new("cofferdam.problem", problem)));
        Note::new("cofferdam.model_retry", now, attributes, 0)
    }

    fn chat(&self, run: &mut Run, answer: &AssistantMessage, now: SystemTime) {
        run.usage.input += answer.usage.input;
        run.usage.output += answer.usage.output;
        run.usage.cache_read += answer.usage.cache_read;
        run.usage.cache_write += answer.usage.cache_write;
        run.wanted = answer.tool_calls().map(|call| call.id.clone()).collect();
        let mut attributes = self.operation("chat");
        let asked_for = self.subject.model.as_ref().unwrap_or(&answer.model);
        attributes.push(text("gen_ai.request.model", asked_for));
        attributes.push(text("gen_ai.response.model", &answer.model));
        let finish = answer.raw_stop_reason.as_deref().unwrap_or(answer.stop_reason.as_str());
        let finish = Array::String(vec![StringValue::from(contents::name(finish))]);
        attributes.push(KeyValue::new("gen_ai.response.finish_reasons", Value::Array(finish)));
        attributes.extend(usage(&answer.usage));
        attributes.push(KeyValue::new("cofferdam.turn", run.turns));
        let first = run.first.take().and_then(|first| first.duration_since(run.asked).ok());
        attributes.extend(first.map(|first| {
            KeyValue::new("gen_ai.response.time_to_first_chunk", first.as_secs_f64())
        }));
        let shown = self.contents.text(|| contents::output_messages(answer).to_string());
        attributes.extend(shown.map(|shown| KeyValue::new("gen_ai.output.messages", shown)));
        let name = format!("chat {}", contents::name(asked_for));
        let mut span = builder(name, SpanKind::Client, run.asked, attributes);
        span.events = Some(std::mem::take(&mut run.retries));
        let problem = answer.failed().then(|| answer.stop_reason.as_str());
        let said = self.contents.text(|| answer.error_message.clone().unwrap_or_default());
        self.leaf(span, Some(&run.span), problem, said, now);
    }

    fn call_end(&self, state: &mut State, call: &CallEvent<'_>, end: &CallEnd, now: SystemTime) {
        let Some(open) = state.calls.iter().position(|open| open.id == call.id) else { return };
        let open = state.calls.remove(open);
        let mut attributes = self.operation("execute_tool");
        attributes.extend([
            text("gen_ai.tool.name", call.name),
            text("gen_ai.tool.call.id", call.id),
            KeyValue::new("gen_ai.tool.type", "function"),
        ]);
        attributes.extend(open.turn.map(|turn| KeyValue::new("cofferdam.turn", turn)));
        attributes.extend(figures(end));
        let sent = self.contents.text(|| Json::Object((**call.arguments).clone()).to_string());
        attributes.extend(sent.map(|sent| KeyValue::new("gen_ai.tool.call.arguments", sent)));
        let result = self.contents.text(|| contents::result(&end.result));
        attributes
            .extend(result.clone().map(|result| KeyValue::new("gen_ai.tool.call.result", result)));
        let name = format!("execute_tool {}", contents::name(call.name));
        let span = builder(name, SpanKind::Internal, open.began, attributes);
        let problem = end.is_error.then(|| bill::ending(end));
        self.leaf(span, open.parent.as_ref(), problem, result, now);
    }

    /// A span without children, whole.
    fn leaf(
        &self,
        mut builder: SpanBuilder,
        parent: Option<&Context>,
        problem: Option<&str>,
        said: Option<String>,
        now: SystemTime,
    ) {
        if let Some(problem) = problem {
            builder.attributes.get_or_insert_default().push(text("error.type", problem));
        }
        let none = Context::new();
        let mut span = self.tracer.build_with_context(builder, parent.unwrap_or(&none));
        if problem.is_some() {
            span.set_status(Status::error(said.unwrap_or_default()));
        }
        self.sent.ended();
        span.end_with_timestamp(now);
    }

    /// What every span says.
    fn operation(&self, operation: &'static str) -> Vec<KeyValue> {
        let mut attributes = vec![KeyValue::new("gen_ai.operation.name", operation)];
        if let Some(session) = &self.subject.session {
            attributes.push(text("gen_ai.conversation.id", session));
        }
        if let (Some(provider), true) = (&self.subject.provider, operation != "execute_tool") {
            attributes.push(text("gen_ai.provider.name", well_known(provider)));
        }
        attributes
    }
}

impl Observer for Traces {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let now = SystemTime::now();
        self.event(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), event, now);
        Box::pin(std::future::ready(()))
    }
}

/// A run that nobody waits for any more is told all the same.
impl Drop for Traces {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = state.run.take() {
            self.run_end(run, "dropped", SystemTime::now());
        }
    }
}

impl State {
    fn call(&mut self, call: &CallEvent<'_>, now: SystemTime) {
        let run = self.run.as_ref();
        let run = run.filter(|run| run.wanted.iter().any(|wanted| wanted == call.id));
        self.calls.push(Open {
            id: call.id.to_owned(),
            parent: run.map(|run| run.span.clone()),
            turn: run.map(|run| run.turns),
            began: now,
        });
    }
}

fn builder(
    name: String,
    kind: SpanKind,
    start: SystemTime,
    attributes: Vec<KeyValue>,
) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(kind).with_start_time(start).with_attributes(attributes)
}

/// The receipt of a call, and what hooks did to it.
fn figures(end: &CallEnd) -> Vec<KeyValue> {
    let bill = Bill::of(&end.receipt);
    let duration_us = u64::try_from(end.duration.as_micros()).unwrap_or(u64::MAX);
    let mut attributes = vec![number("cofferdam.duration_us", duration_us)];
    attributes.extend(bill.plugin.as_ref().map(|plugin| text("cofferdam.plugin", plugin)));
    for (key, figure) in [
        ("cofferdam.fuel", bill.fuel),
        ("cofferdam.memory_peak_bytes", bill.memory_peak_bytes),
        ("cofferdam.wall_us", bill.wall_us),
        ("cofferdam.waiting_us", bill.waiting_us),
        ("cofferdam.http_requests", bill.http_requests),
    ] {
        attributes.extend(figure.map(|figure| number(key, figure)));
    }
    if end.receipt.is_some() {
        attributes.push(number("cofferdam.refusals", bill.refusals.len() as u64));
        attributes.push(number("cofferdam.cuts", bill.cuts));
    }
    if !end.hooks.is_empty() {
        let hooks = end.hooks.iter().map(|record| {
            StringValue::from(format!("{}: {}", contents::name(&record.hook), bill::action(record)))
        });
        let hooks = Value::Array(Array::String(hooks.collect()));
        attributes.push(KeyValue::new("cofferdam.hooks", hooks));
    }
    attributes
}

/// Tokens by the conventions, where those that were read from a cache or written to one are part of
/// the input.
fn usage(usage: &Usage) -> [KeyValue; 4] {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    [
        number("gen_ai.usage.input_tokens", input),
        number("gen_ai.usage.output_tokens", usage.output),
        number("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        number("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
    ]
}

/// A provider by the name that the conventions have for it.
fn well_known(provider: &str) -> &str {
    match provider {
        "gemini" => "gcp.gemini",
        "openai-responses" => "openai",
        other => other,
    }
}

fn text(key: &'static str, value: &str) -> KeyValue {
    KeyValue::new(key, contents::name(value))
}

fn number(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}
