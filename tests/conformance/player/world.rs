//! What all parties of a scenario share.

use super::print::HostTexts;
use cofferdam_agent::{AbortSignal, Agent};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Random waits at every await of the scripted parties.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delays {
    /// No waits without one.
    pub seed: Option<u64>,
}

pub(super) struct World {
    pub(super) scenario: Value,
    agent: OnceLock<Agent>,
    gates: Gates,
    pub(super) book: Mutex<Book>,
    random: Option<Mutex<u64>>,
}

/// What was recorded.
#[derive(Default)]
pub(super) struct Book {
    records: Vec<Value>,
    /// Tools that were entered; they stand together after the other records, in source order.
    tools: Vec<(usize, Value)>,
    starts: HashMap<String, usize>,
    pub(super) host_texts: HostTexts,
    /// What the contract has no field for, by call.
    pub(super) extras: HashMap<String, Extras>,
    /// Argument texts that were no JSON object, by call.
    pub(super) texts: HashMap<String, String>,
    counts: HashMap<String, u64>,
}

/// Parts of a scripted result that a tool result of the loop does not have.
#[derive(Debug, Clone, Default)]
pub(super) struct Extras {
    pub(super) structured_content: Option<Value>,
    pub(super) content_left_out: bool,
    /// The flag as it was given: the contract of plugins cannot tell a missing one from `false`.
    pub(super) is_error: Option<bool>,
}

#[derive(Default)]
struct Gates {
    open: Mutex<HashSet<String>>,
    opened: Notify,
}

impl World {
    pub(super) fn new(scenario: Value, delays: Delays) -> Arc<Self> {
        Arc::new(Self {
            scenario,
            agent: OnceLock::new(),
            gates: Gates::default(),
            book: Mutex::default(),
            random: delays.seed.map(|seed| Mutex::new(seed.wrapping_mul(2).wrapping_add(1))),
        })
    }

    pub(super) fn set_agent(&self, agent: Agent) {
        assert!(self.agent.set(agent).is_ok(), "one agent for a scenario");
    }

    pub(super) fn agent(&self) -> &Agent {
        self.agent.get().expect("set before anything is played")
    }

    /// A field of the scenario's configuration.
    pub(super) fn config(&self, name: &str) -> &Value {
        &self.scenario["config"][name]
    }

    pub(super) fn record(&self, record: Value) {
        self.book().records.push(record);
    }

    pub(super) fn mark(&self, name: &str) {
        self.record(json!({"rec": "mark", "name": name}));
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    pub(super) fn take_trace(&self) -> Vec<Value> {
        std::mem::take(&mut self.book().records)
    }

    pub(super) fn open_gate(&self, gate: impl Into<String>) {
        lock(&self.gates.open).insert(gate.into());
        self.gates.opened.notify_waiters();
    }

    pub(super) async fn wait_for_gate(&self, gate: &str) {
        loop {
            // Registered before the look, so that a gate that opens in between is not missed.
            let opened = self.gates.opened.notified();
            if lock(&self.gates.open).contains(gate) {
                return;
            }
            opened.await;
        }
    }

    /// Waits for the signal of the run that is active, or of the next one.
    pub(super) async fn wait_for_abort(&self, signal: Option<&AbortSignal>) {
        match signal {
            Some(signal) => signal.cancelled().await,
            None => match self.agent().abort_signal() {
                Some(signal) => signal.cancelled().await,
                None => std::future::pending().await,
            },
        }
    }

    /// Where a party may be slow: nothing, some turns of the executor, or a moment.
    pub(super) async fn pause(&self) {
        let Some(random) = &self.random else { return };
        let drawn = draw(&mut lock(random));
        match drawn % 8 {
            0..4 => {}
            4..7 => {
                for _ in 0..drawn / 8 % 5 {
                    tokio::task::yield_now().await;
                }
            }
            _ => tokio::time::sleep(Duration::from_micros(drawn / 8 % 1500)).await,
        }
    }
}

impl Book {
    /// Counts, from 1, how often something happened.
    pub(super) fn count(&mut self, what: impl Into<String>) -> u64 {
        let count = self.counts.entry(what.into()).or_default();
        *count += 1;
        *count
    }

    /// The error flag that the tool gave its result, if it gave one.
    pub(super) fn flag_of(&self, call: &str) -> Option<bool> {
        self.extras.get(call).and_then(|extras| extras.is_error)
    }

    pub(super) fn push(&mut self, record: Value) {
        self.records.push(record);
    }

    pub(super) fn note_start(&mut self, call: &str) {
        let order = self.starts.len() + self.tools.len() + self.records.len();
        self.starts.insert(call.to_owned(), order);
    }

    /// `variant` labels the tool where a scenario has several of one name.
    pub(super) fn enter_tool(
        &mut self,
        id: &str,
        name: &str,
        args: &Map<String, Value>,
        variant: &Value,
    ) {
        let order = self.starts.get(id).copied().unwrap_or(usize::MAX);
        let mut record =
            json!({"rec": "tool", "tool_call_id": id, "tool_name": name, "args": args});
        if !variant.is_null() {
            record["variant"] = variant.clone();
        }
        self.tools.push((order, record));
    }

    pub(super) fn close_tools(&mut self) {
        self.tools.sort_by_key(|(order, _)| *order);
        let tools = std::mem::take(&mut self.tools);
        self.records.extend(tools.into_iter().map(|(_, record)| record));
    }
}

/// xorshift64: enough to vary waits, the same for the same seed.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
