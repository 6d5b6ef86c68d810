//! Plays the runs of a session again, without network and without plugins: the recorded answers, the
//! recorded results and what the recorded hooks did go through the loop of this program, in the
//! order in which they came. What the loop makes of them is recorded as it was then, and the two
//! records are compared: they differ where the loop no longer does the same.

mod cast;
mod script;
mod stage;

#[cfg(test)]
mod tests;

use super::Record;
use super::format::{Entry, Line, Setup};
use cofferdam_agent::message::Message;
use script::Script;
use serde_json::Value;
use std::sync::Arc;

/// One run, played again.
#[derive(Debug)]
pub struct Replay {
    /// Model answers.
    pub answers: usize,
    /// Calls.
    pub calls: usize,
    /// Lines that were compared.
    pub lines: usize,
    /// Whether the record ends before the run does: its process was ended.
    pub cut: bool,
    /// The first line that is not the same.
    pub difference: Option<Difference>,
}

/// Where two records part. Times are left out.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// Which line of the run, from 1.
    pub line: usize,
    /// What the session has; none if it has no more lines.
    pub recorded: Option<Value>,
    /// What came of it now; none if nothing did.
    pub replayed: Option<Value>,
}

/// One run of a session.
struct Run<'r> {
    /// What it was made of.
    setup: Setup,
    /// What was said before.
    before: Vec<Arc<Message>>,
    /// Its lines, from its beginning to its end or to where they break off.
    lines: Vec<&'r Line>,
    cut: bool,
}

/// Plays every run of a session again.
pub fn replay(record: &Record) -> Vec<Replay> {
    runs(record).iter().map(play).collect()
}

fn play(run: &Run<'_>) -> Replay {
    let played = stage::play(&run.setup, run.before.clone(), Script::of(&run.lines));
    let recorded: Vec<Value> = run.lines.iter().map(|line| timeless(line)).collect();
    let replayed: Vec<Value> = played.iter().map(timeless).collect();
    let is = |kind: fn(&Entry) -> bool| run.lines.iter().filter(|line| kind(&line.entry)).count();
    Replay {
        answers: is(|entry| matches!(entry, Entry::Message(m) if m.as_assistant().is_some())),
        calls: is(|entry| matches!(entry, Entry::CallStart { .. })),
        lines: recorded.len(),
        cut: run.cut,
        difference: difference(recorded, replayed, run.cut),
    }
}

/// Of a run that was cut, the loop may have done more than was written.
fn difference(mut recorded: Vec<Value>, mut replayed: Vec<Value>, cut: bool) -> Option<Difference> {
    if cut {
        // Whether a turn begins may depend on a message that was queued, and not yet written.
        recorded.pop_if(|last| last["type"] == "turn_start");
        replayed.truncate(recorded.len());
    }
    let (longest, mut recorded, mut replayed) =
        (recorded.len().max(replayed.len()), recorded.into_iter(), replayed.into_iter());
    (1..=longest)
        .map(|line| Difference { line, recorded: recorded.next(), replayed: replayed.next() })
        .find(|pair| pair.recorded != pair.replayed)
}

/// A line without what is never the same twice.
fn timeless(line: &Line) -> Value {
    let mut line = line.to_json();
    if let Value::Object(fields) = &mut line {
        fields.shift_remove("at_us");
        fields.shift_remove("duration_ms");
    }
    line
}

fn runs(record: &Record) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut setup = Setup::default();
    let mut messages = Vec::new();
    let mut running = false;
    for line in &record.lines {
        match &line.entry {
            Entry::RunStart => {
                let (setup, before) = (setup.clone(), messages.clone());
                runs.push(Run { setup, before, lines: Vec::new(), cut: true });
                running = true;
            }
            Entry::Opened { .. } => running = false,
            Entry::Setup(changed) => setup = (**changed).clone(),
            Entry::Message(message) => messages.push(message.clone()),
            _ => {}
        }
        let Some(run) = runs.last_mut().filter(|_| running) else { continue };
        // A file that changed meanwhile is not what the loop did.
        if !matches!(line.entry, Entry::Unknown | Entry::Setup(_)) {
            run.lines.push(line);
        }
        if let Entry::RunEnd = line.entry {
            run.cut = false;
            running = false;
        }
    }
    runs
}
