//! The bill of one call: what it used, what it was refused and what was cut. Written for every
//! call, also for one that traps.

use crate::seeds::Seeds;
use crate::spill::Spilled;
use serde::Serialize;
use std::any::Any;
use std::sync::Arc;

/// What one call cost. Names are stable: the bill is in events and session files.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Receipt {
    /// The operator's name of the plugin.
    pub plugin: Arc<str>,
    /// What ended the call; absent if the plugin answered.
    pub ended_by: Option<&'static str>,
    /// Fuel used; absent if the plugin runs uncounted. Of a function that crashes, or is stopped, in
    /// the middle of a computation it counts full millions only.
    pub fuel: Option<u64>,
    /// The most linear memory that the call had at a time.
    pub memory_peak_bytes: u64,
    /// Microseconds from the slot to the answer.
    pub wall_us: u64,
    /// Microseconds of waiting for the slot.
    pub waiting_us: u64,
    /// Calls into the host and the bytes that went with them, by kind.
    pub host_calls: HostCalls,
    /// Progress reports.
    pub progress: ProgressBill,
    /// Log lines.
    pub log: Dropping,
    /// Bytes of standard output.
    pub stdout: Dropping,
    /// Bytes of standard error.
    pub stderr: Dropping,
    /// HTTP requests that were sent.
    pub http_requests: u64,
    /// What the plugin asked for and did not get, with the line that would allow it.
    pub refusals: Vec<String>,
    /// What was cut, and where.
    pub cuts: Vec<String>,
    /// The whole of a result that was cut, where the operator has it kept.
    pub spilled: Option<Spilled>,
    /// What the call can be repeated from, where the operator has that recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<Seeds>,
}

/// Calls into the host by kind.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct HostCalls {
    /// Progress reports; bytes of their content.
    pub progress: Tally,
    /// Questions about cancellation and time.
    pub cancellation: Tally,
    /// Log lines; their bytes.
    pub log: Tally,
    /// Configuration values; bytes read.
    pub config: Tally,
    /// The key-value store; bytes read and written.
    pub key_value: Tally,
    /// HTTP requests; bytes of their bodies both ways.
    pub http: Tally,
    /// Files; bytes read and written.
    pub files: Tally,
    /// Random bytes.
    pub random: Tally,
    /// Functions of the embedder's own; bytes of texts both ways.
    pub embedder: Tally,
}

/// How often, and how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Calls.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Progress reports of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ProgressBill {
    /// Shown.
    pub shown: u64,
    /// Dropped because nobody may report here: hooks and `list-tools`.
    pub dropped: u64,
    /// Dropped because the call had settled.
    pub late: u64,
}

/// Something that is taken up to a limit and dropped beyond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Dropping {
    /// Lines taken; zero where there are no lines.
    pub lines: u64,
    /// Bytes taken.
    pub bytes: u64,
    /// Lines dropped.
    pub lines_dropped: u64,
    /// Bytes dropped.
    pub bytes_dropped: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.calls += 1;
        self.bytes += bytes as u64;
    }
}

impl Receipt {
    /// Notes something that the plugin did not get. A guest that asks for ever does not fill the
    /// host's memory.
    pub(crate) fn refuse(&mut self, refusal: String) {
        const REFUSALS_MAX: usize = 20;
        if self.refusals.len() < REFUSALS_MAX && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

impl cofferdam_agent::receipt::Receipt for Receipt {
    fn to_json(&self) -> serde_json::Value {
        // A struct of numbers and strings has nothing that could fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
