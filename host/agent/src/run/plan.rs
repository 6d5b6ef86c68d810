//! In which order the calls of a batch may run: decided once, from the names that were asked for,
//! before preflight. A sequential call that is then blocked or invalid still counts.

use crate::config::ToolExecution;
use crate::message::{AssistantMessage, StopReason};
use crate::tool::Execution;
use crate::toolset::Toolset;
use std::collections::{HashMap, HashSet, VecDeque};

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
    let sequential = configured == ToolExecution::Sequential
        || answer.tool_calls().any(|call| toolset.is_alone(&call.name));
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
    done: HashSet<usize>,
    released: VecDeque<usize>,
}

impl<'t> Lanes<'t> {
    /// Takes in the next call in source order. Says whether it may start at once.
    pub(super) fn admit(&mut self, call: usize, execution: &'t Execution) -> bool {
        let Execution::Exclusive(names) = execution else { return true };
        let mut before: Vec<usize> = names
            .iter()
            .filter_map(|name| self.last.insert(name, call))
            .filter(|earlier| *earlier != call && !self.done.contains(earlier))
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
        if self.last.is_empty() {
            return;
        }
        self.done.insert(call);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64.
    fn draw(state: &mut u64, below: u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state % below).unwrap()
    }

    fn random_batch(state: &mut u64) -> Vec<Execution> {
        let execution = |state: &mut u64| match draw(state, 4) {
            0 => Execution::Parallel,
            lanes => {
                // The same lane twice must not make a call wait for itself.
                let names = (0..lanes).map(|_| format!("lane {}", draw(state, 4)));
                Execution::Exclusive(names.collect())
            }
        };
        (0..1 + draw(state, 12)).map(|_| execution(state)).collect()
    }

    fn share(a: &Execution, b: &Execution) -> bool {
        match (a, b) {
            (Execution::Exclusive(a), Execution::Exclusive(b)) => {
                a.iter().any(|lane| b.contains(lane))
            }
            _ => false,
        }
    }

    /// Plays a batch whose calls end in random order, and returns the order of starts.
    fn play(batch: &[Execution], state: &mut u64) -> Vec<usize> {
        let mut lanes = Lanes::default();
        let (mut running, mut starts) = (Vec::new(), Vec::new());
        let mut ended = vec![false; batch.len()];
        let begin = |call: usize, running: &mut Vec<usize>, ended: &[bool]| {
            for earlier in 0..call {
                assert!(
                    ended[earlier] || !share(&batch[earlier], &batch[call]),
                    "{call} began before {earlier} ended: {batch:?}"
                );
            }
            running.push(call);
        };
        for (call, execution) in batch.iter().enumerate() {
            let free =
                (0..call).all(|earlier| ended[earlier] || !share(&batch[earlier], execution));
            let admitted = lanes.admit(call, execution);
            assert_eq!(admitted, free, "{call} of {batch:?}");
            if admitted {
                starts.push(call);
                begin(call, &mut running, &ended);
                if draw(state, 3) == 0 {
                    ended[running.pop().unwrap()] = true;
                    lanes.done(call);
                }
            }
        }
        while !running.is_empty() {
            let call = running.swap_remove(draw(state, running.len() as u64));
            ended[call] = true;
            lanes.done(call);
            while let Some(next) = lanes.next_released() {
                starts.push(next);
                begin(next, &mut running, &ended);
            }
        }
        assert!(ended.iter().all(|ended| *ended), "calls were left behind: {batch:?}");
        starts
    }

    #[test]
    fn calls_of_one_lane_run_one_at_a_time_in_source_order_and_nothing_else_waits() {
        let mut state = 88_172_645_463_325_252;
        for _ in 0..20_000 {
            let batch = random_batch(&mut state);
            let mut starts = play(&batch, &mut state);
            starts.sort_unstable();
            assert_eq!(starts, (0..batch.len()).collect::<Vec<_>>());
        }
    }
}
