//! A session in the order in which people read it: runs, messages, and under each answer the batch
//! of its calls with the moments of each: preflight, start, progress, end, retirement.

use super::format::{Entry, Line};
use cofferdam_agent::event::CallEnd;
use cofferdam_agent::message::{Arguments, Message, ToolCall, ToolResultMessage};
use cofferdam_agent::model::Retry;
use cofferdam_agent::tool::ToolResult;

/// One thing of a session, in its order.
#[derive(Debug)]
pub struct Item<'r> {
    /// When: microseconds since 1970.
    pub at_us: u64,
    /// What.
    pub what: What<'r>,
}

/// What a session is made of.
#[derive(Debug)]
pub enum What<'r> {
    /// The session was gone on with.
    Opened {
        /// Bytes of a cut last line that were removed.
        cut_bytes: u64,
    },
    /// A run began.
    RunStart,
    /// A run came to its end.
    RunEnd,
    /// A request was sent again.
    Retry(&'r Retry),
    /// A message that is no answer, and no result of a call of a batch.
    Message(&'r Message),
    /// An answer, with what became of its calls.
    Answer(&'r Message, Batch<'r>),
}

/// The calls of one answer, in source order.
#[derive(Debug, Default)]
pub struct Batch<'r> {
    /// The calls.
    pub calls: Vec<Trace<'r>>,
}

/// What became of one call.
#[derive(Debug)]
pub struct Trace<'r> {
    /// The call as the model wrote it.
    pub call: &'r ToolCall,
    /// When it entered preflight.
    pub start_us: Option<u64>,
    /// When its tool began to run.
    pub run_us: Option<u64>,
    /// The arguments that the tool got, if not those of the model.
    pub ran_with: Option<&'r Arguments>,
    /// What it reported, and when.
    pub progress: Vec<(u64, &'r ToolResult)>,
    /// When it was final, and what it came to.
    pub end: Option<(u64, &'r CallEnd)>,
    /// Its place among the calls of the batch in the order of their ends, from 1.
    pub ended_as: Option<usize>,
    /// When its result took its place in the transcript.
    pub retired_us: Option<u64>,
    /// Its result in the transcript.
    pub result: Option<&'r ToolResultMessage>,
    /// Whether that was made up when the session was opened again: the process had ended before.
    pub mended: bool,
}

/// How a call came out, for whoever marks calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A result.
    Done,
    /// A result that reports a failure.
    Failed,
    /// The tool broke: trap, panic, exit.
    Broken,
    /// A limit stopped it.
    Limited,
    /// A hook or a person said no.
    Blocked,
    /// The loop refused it: no such tool, bad arguments, a cut answer.
    Refused,
    /// The run was aborted.
    Aborted,
    /// The process ended before the call did.
    Lost,
}

/// The items of a session.
pub fn items(lines: &[Line]) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> = Vec::new();
    // Where the answer is whose calls are on their way.
    let mut open: Option<usize> = None;
    let mut reopened = false;
    for Line { at_us, entry } in lines {
        let at_us = *at_us;
        let what = match entry {
            Entry::Opened { cut_bytes } => {
                reopened = true;
                What::Opened { cut_bytes: *cut_bytes }
            }
            Entry::RunStart => {
                reopened = false;
                What::RunStart
            }
            Entry::RunEnd => What::RunEnd,
            Entry::ModelRetry(retry) => What::Retry(retry),
            Entry::Message(message) => match &**message {
                Message::Assistant(answer) => {
                    let calls = answer.tool_calls().map(Trace::of).collect();
                    open = Some(items.len());
                    What::Answer(message, Batch { calls })
                }
                Message::ToolResult(result) => {
                    let batch = batch(&mut items, open);
                    if batch.is_some_and(|batch| batch.retire(at_us, result, reopened)) {
                        continue;
                    }
                    What::Message(message)
                }
                Message::User(_) | Message::Custom(_) => What::Message(message),
            },
            call => {
                if let Some(batch) = batch(&mut items, open) {
                    batch.note(at_us, call);
                }
                continue;
            }
        };
        items.push(Item { at_us, what });
    }
    items
}

fn batch<'i, 'r>(items: &'i mut [Item<'r>], open: Option<usize>) -> Option<&'i mut Batch<'r>> {
    match &mut items.get_mut(open?)?.what {
        What::Answer(_, batch) => Some(batch),
        _ => None,
    }
}

impl<'r> Batch<'r> {
    /// From the first preflight to the last moment of the batch.
    pub fn span_us(&self) -> Option<(u64, u64)> {
        let first = self.calls.iter().filter_map(|call| call.start_us).min()?;
        let last = self.calls.iter().flat_map(Trace::moments).max()?;
        Some((first, last))
    }

    fn note(&mut self, at_us: u64, entry: &'r Entry) {
        let ended = self.calls.iter().filter(|call| call.end.is_some()).count();
        match entry {
            Entry::CallStart { id, .. } => {
                if let Some(call) = self.find(id, |call| call.start_us.is_none()) {
                    call.start_us = Some(at_us);
                }
            }
            Entry::CallRun { id, arguments } => {
                if let Some(call) = self.find(id, |call| call.run_us.is_none()) {
                    call.run_us = Some(at_us);
                    call.ran_with = arguments.as_ref();
                }
            }
            Entry::CallProgress { id, partial } => {
                if let Some(call) = self.find(id, |call| call.end.is_none()) {
                    call.progress.push((at_us, partial));
                }
            }
            Entry::CallEnd { id, end, .. } => {
                if let Some(call) = self.find(id, |call| call.end.is_none()) {
                    call.end = Some((at_us, end));
                    call.ended_as = Some(ended + 1);
                }
            }
            _ => {}
        }
    }

    fn find(&mut self, id: &str, wants: impl Fn(&Trace<'r>) -> bool) -> Option<&mut Trace<'r>> {
        self.calls.iter_mut().find(|call| call.call.id == id && wants(call))
    }

    /// Results retire in source order, so each belongs to the first call that has none.
    fn retire(&mut self, at_us: u64, result: &'r ToolResultMessage, mended: bool) -> bool {
        let Some(call) = self.calls.iter_mut().find(|call| call.result.is_none()) else {
            return false;
        };
        if call.call.id != result.tool_call_id {
            return false;
        }
        call.result = Some(result);
        call.mended = mended;
        call.retired_us = (!mended).then_some(at_us);
        true
    }
}

impl<'r> Trace<'r> {
    fn of(call: &'r ToolCall) -> Self {
        Self {
            call,
            start_us: None,
            run_us: None,
            ran_with: None,
            progress: Vec::new(),
            end: None,
            ended_as: None,
            retired_us: None,
            result: None,
            mended: false,
        }
    }

    fn moments(&self) -> impl Iterator<Item = u64> {
        let ended = self.end.map(|(at, _)| at);
        let progress = self.progress.iter().map(|(at, _)| *at);
        [self.start_us, self.run_us, ended, self.retired_us].into_iter().flatten().chain(progress)
    }

    /// Whether it came to a result that reports no failure.
    pub fn is_done(&self) -> bool {
        self.outcome() == Outcome::Done
    }

    /// How the call came out.
    pub fn outcome(&self) -> Outcome {
        let Some((_, end)) = self.end else { return Outcome::Lost };
        match end.ended_by.as_deref() {
            _ if !end.is_error => Outcome::Done,
            None | Some("failure") => Outcome::Failed,
            Some("trap" | "panic" | "exit") => Outcome::Broken,
            Some("aborted") => Outcome::Aborted,
            Some("blocked" | "not-approved" | "hook") => Outcome::Blocked,
            Some(code) if code.ends_with("-limit") => Outcome::Limited,
            Some(_) if self.run_us.is_none() => Outcome::Refused,
            Some(_) => Outcome::Failed,
        }
    }
}

impl Outcome {
    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Broken => "broken",
            Self::Limited => "limited",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Aborted => "aborted",
            Self::Lost => "lost",
        }
    }
}
