//! In which order the calls of a batch may run: decided once, from the names that were asked for,
//! before preflight. A sequential call that is then blocked or invalid still counts.

use crate::config::ToolExecution;
use crate::message::{AssistantMessage, StopReason};
use crate::tool::Execution;
use crate::toolset::{Lookup, Toolset};
use std::collections::{HashMap, VecDeque};

/// How a batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Not at all: the output limit cut the answer (seed: "Truncated arguments validate fine").
    Truncated,
    /// One call after the other.
    Sequential,
    /// Together, lanes kept apart.
    Parallel,
}

/// One tool that must be alone makes the whole batch sequential: it may run beside nothing (seed:
/// "Preflight stays sequential", reference PR 3345).
pub(super) fn mode(
    answer: &AssistantMessage,
    configured: ToolExecution,
    toolset: &Toolset,
) -> Mode {
    if answer.stop_reason == StopReason::Length {
        return Mode::Truncated;
    }
    let alone = |name: &str| match toolset.lookup(name) {
        Lookup::Found(entry) => *entry.tool.execution() == Execution::Sequential,
        Lookup::Refused(refused) => *refused.tool.execution() == Execution::Sequential,
        Lookup::Unknown => false,
    };
    let sequential = configured == ToolExecution::Sequential
        || answer.tool_calls().any(|call| alone(&call.name));
    if sequential { Mode::Sequential } else { Mode::Parallel }
}

/// Keeps the calls of one lane apart: each waits for the one before it in every lane that it
/// names, in source order (seed: "exclusive against other writers"; a lane is the category that
/// the flag could not name). It never waits for a lane that it does not name, and since it only
/// ever waits for earlier calls, no two wait for each other.
#[derive(Debug, Default)]
pub(super) struct Lanes<'t> {
    /// The last call of each lane so far.
    last: HashMap<&'t str, usize>,
    /// For each call that is held, how many calls it waits for.
    waiting: HashMap<usize, usize>,
    /// For each call, which calls wait for it.
    behind: HashMap<usize, Vec<usize>>,
    released: VecDeque<usize>,
}

impl<'t> Lanes<'t> {
    /// Takes in the next call in source order. Says whether it may start at once.
    pub(super) fn admit(&mut self, call: usize, execution: &'t Execution) -> bool {
        let Execution::Exclusive(names) = execution else { return true };
        let mut before: Vec<usize> = names
            .iter()
            .filter_map(|name| self.last.insert(name, call))
            .filter(|earlier| *earlier != call)
            .collect();
        before.sort_unstable();
        before.dedup();
        if before.is_empty() {
            return true;
        }
        self.waiting.insert(call, before.len());
        for earlier in before {
            self.behind.entry(earlier).or_default().push(call);
        }
        false
    }

    /// Notes that a call is final, and releases those that waited for it alone.
    pub(super) fn done(&mut self, call: usize) {
        for behind in self.behind.remove(&call).unwrap_or_default() {
            let Some(left) = self.waiting.get_mut(&behind) else { continue };
            *left -= 1;
            if *left == 0 {
                self.waiting.remove(&behind);
                self.released.push_back(behind);
            }
        }
    }

    /// The next call that may start now.
    pub(super) fn next_released(&mut self) -> Option<usize> {
        self.released.pop_front()
    }
}
