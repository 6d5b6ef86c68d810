//! Figures of what an agent does, for Prometheus.
//!
//! The values of labels are bounded: a tool that is not there is counted as `other`, and so is
//! whatever comes when a label has as many values as it may have.

use crate::bill::{self, Bill};
use crate::contents;
use cofferdam_agent::EndReason;
use cofferdam_agent::event::{CallEnd, Event, Observer, ended_by};
use cofferdam_agent::message::{AssistantMessage, Message};
use futures::future::BoxFuture;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Values of one label; what comes beyond is counted as `other`.
const VALUES_MAX: usize = 256;
/// What stands for values beyond the bound, and for tools that are not there.
const OTHER: &str = "other";

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, Buckets>;

/// The figures of one or several agents. Make an [observer](Metrics::observer) for each.
pub struct Metrics {
    registry: Registry,
    runs_started: Counter,
    runs: Counters<1>,
    turns: Counter,
    model_calls: Counters<2>,
    model_seconds: Histograms<1>,
    model_retries: Counter,
    tokens: Counters<1>,
    calls_started: Counter,
    calls: Counters<2>,
    call_seconds: Histograms<1>,
    waiting_seconds: Histograms<1>,
    fuel: Counters<1>,
    memory_peak: Histograms<1>,
    refusals: Counters<1>,
    cuts: Counters<1>,
    hooks: Counters<2>,
    hook_fuel: Counters<1>,
    models: Names,
    tools: Names,
    endings: Names,
    hook_names: Names,
}

/// The bounds of a histogram.
#[derive(Debug, Clone, Copy)]
enum Buckets {
    /// From a millisecond to a bit more than a minute.
    Seconds,
    /// From 10 microseconds to a bit more than 10 seconds.
    Waiting,
    /// From 64 KiB, a page, to 4 GiB.
    Bytes,
}

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        match self {
            Self::Seconds => Histogram::new(exponential_buckets(0.001, 2.0, 17)),
            Self::Waiting => Histogram::new(exponential_buckets(0.000_01, 4.0, 11)),
            Self::Bytes => Histogram::new(exponential_buckets(65_536.0, 4.0, 9)),
        }
    }
}

/// The values that a label may have: the first so many.
#[derive(Debug, Default)]
struct Names(Mutex<HashSet<String>>);

impl Names {
    fn bounded(&self, name: &str) -> String {
        let name = contents::name(name);
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(&name) || names.len() < VALUES_MAX {
            names.insert(name.clone());
            return name;
        }
        OTHER.into()
    }
}

/// What one agent is in the middle of.
struct Watch {
    metrics: Arc<Metrics>,
    /// When its model was asked last, as near as events tell.
    asked: Mutex<Instant>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("cofferdam");
        let seconds = || Histograms::new_with_constructor(Buckets::Seconds);
        let metrics = Self {
            runs_started: Counter::default(),
            runs: Family::default(),
            turns: Counter::default(),
            model_calls: Family::default(),
            model_seconds: seconds(),
            model_retries: Counter::default(),
            tokens: Family::default(),
            calls_started: Counter::default(),
            calls: Family::default(),
            call_seconds: seconds(),
            waiting_seconds: Histograms::new_with_constructor(Buckets::Waiting),
            fuel: Family::default(),
            memory_peak: Histograms::new_with_constructor(Buckets::Bytes),
            refusals: Family::default(),
            cuts: Family::default(),
            hooks: Family::default(),
            hook_fuel: Family::default(),
            models: Names::default(),
            tools: Names::default(),
            endings: Names::default(),
            hook_names: Names::default(),
            registry: Registry::default(),
        };
        let m = &metrics;
        registry.register("runs_started", "Runs that began", m.runs_started.clone());
        registry.register("runs", "Runs that ended, by how", m.runs.clone());
        registry.register(
            "turns",
            "Turns: model calls with what follows from them",
            m.turns.clone(),
        );
        let help = "Answers of models, by how they ended";
        registry.register("model_calls", help, m.model_calls.clone());
        let help = "Time from the request to the end of the answer";
        registry.register("model_call_duration_seconds", help, m.model_seconds.clone());
        let help = "Requests to models that were sent again";
        registry.register("model_retries", help, m.model_retries.clone());
        registry.register("tokens", "Tokens as providers counted them", m.tokens.clone());
        registry.register("tool_calls_started", "Calls that began", m.calls_started.clone());
        registry.register("tool_calls", "Calls that ended, by tool and how", m.calls.clone());
        let help = "Time that a tool ran, hooks not included";
        registry.register("tool_call_duration_seconds", help, m.call_seconds.clone());
        let help = "Time that a call waited for a slot of the sandbox";
        registry.register("tool_call_waiting_seconds", help, m.waiting_seconds.clone());
        registry.register("tool_call_fuel", "Fuel that tools used", m.fuel.clone());
        let help = "The most memory that a call had at a time";
        registry.register("tool_call_memory_peak_bytes", help, m.memory_peak.clone());
        let help = "What tools asked for and were not granted";
        registry.register("tool_call_refusals", help, m.refusals.clone());
        let help = "What of tools was cut at a limit";
        registry.register("tool_call_cuts", help, m.cuts.clone());
        registry.register("hook_actions", "What hooks did to calls", m.hooks.clone());
        registry.register("hook_fuel", "Fuel that hooks used", m.hook_fuel.clone());
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts what one agent does; see [`cofferdam_agent::Agent::subscribe`].
    pub fn observer(self: &Arc<Self>) -> Arc<dyn Observer> {
        Arc::new(Watch { metrics: self.clone(), asked: Mutex::new(Instant::now()) })
    }

    /// Everything in the text format of Prometheus, version 0.0.4.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut text, &self.registry);
        text
    }

    fn answer(&self, answer: &AssistantMessage, took: Duration) {
        let model = self.models.bounded(&answer.model);
        let end = answer.stop_reason.as_str().to_owned();
        self.model_calls.get_or_create(&[("model", model.clone()), ("end", end)]).inc();
        self.model_seconds.get_or_create(&[("model", model)]).observe(took.as_secs_f64());
        let usage = answer.usage;
        for (kind, tokens) in [
            ("input", usage.input),
            ("output", usage.output),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
        ] {
            self.tokens.get_or_create(&[("kind", kind.into())]).inc_by(tokens);
        }
    }

    fn call_end(&self, name: &str, end: &CallEnd) {
        // What was never looked up, or not found, may be a name that a model made up.
        let tool = match end.ended_by.as_deref() {
            Some(ended_by::UNKNOWN_TOOL | ended_by::TRUNCATED | ended_by::ABORTED)
                if end.receipt.is_none() =>
            {
                OTHER.into()
            }
            _ => self.tools.bounded(name),
        };
        let ending = self.endings.bounded(bill::ending(end));
        self.calls.get_or_create(&[("tool", tool.clone()), ("end", ending)]).inc();
        for record in &end.hooks {
            let hook = [("hook", self.hook_names.bounded(&record.hook))];
            let action = ("action", bill::action(record).to_owned());
            self.hooks.get_or_create(&[hook[0].clone(), action]).inc();
            if let Some(fuel) = Bill::of(&record.receipt).fuel {
                self.hook_fuel.get_or_create(&hook).inc_by(fuel);
            }
        }
        let tool = [("tool", tool)];
        if !end.duration.is_zero() {
            self.call_seconds.get_or_create(&tool).observe(end.duration.as_secs_f64());
        }
        if end.receipt.is_none() {
            return;
        }
        let bill = Bill::of(&end.receipt);
        self.refusals.get_or_create(&tool).inc_by(bill.refusals.len() as u64);
        self.cuts.get_or_create(&tool).inc_by(bill.cuts);
        if let Some(fuel) = bill.fuel {
            self.fuel.get_or_create(&tool).inc_by(fuel);
        }
        if let Some(bytes) = bill.memory_peak_bytes {
            self.memory_peak.get_or_create(&tool).observe(bytes as f64);
        }
        if let Some(waiting) = bill.waiting_us {
            let waiting = Duration::from_micros(waiting).as_secs_f64();
            self.waiting_seconds.get_or_create(&tool).observe(waiting);
        }
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Watch {
    fn event(&self, event: &Event<'_>) {
        let metrics = &self.metrics;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::AgentStart => {
                metrics.runs_started.inc();
            }
            Event::TurnStart => {
                metrics.turns.inc();
                *asked = Instant::now();
            }
            Event::ModelRetry { .. } => {
                metrics.model_retries.inc();
            }
            Event::MessageEnd { message } => {
                if let Message::Assistant(answer) = &***message {
                    metrics.answer(answer, asked.elapsed());
                }
                *asked = Instant::now();
            }
            Event::ToolExecutionStart { .. } => {
                metrics.calls_started.inc();
            }
            Event::ToolExecutionEnd { call, end } => metrics.call_end(call.name, end),
            Event::AgentEnd { reason, .. } => {
                let end = reason.map_or("journal_failed", EndReason::as_str).to_owned();
                metrics.runs.get_or_create(&[("end", end)]).inc();
            }
            Event::MessageStart { .. }
            | Event::MessageUpdate { .. }
            | Event::ToolExecutionUpdate { .. }
            | Event::TurnEnd { .. } => {}
        }
    }
}

impl Observer for Watch {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        self.event(event);
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_so_many_values_and_no_more() {
        let names = Names::default();
        for number in 0..VALUES_MAX {
            assert_eq!(names.bounded(&number.to_string()), number.to_string());
        }
        assert_eq!(names.bounded("one more"), OTHER);
        assert_eq!(names.bounded("7"), "7");
    }
}
