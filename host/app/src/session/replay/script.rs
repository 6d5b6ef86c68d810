//! What happened in one run, sorted by who has to do it again: the model, the tools, the hooks, the
//! person, and whoever queued messages.

use crate::session::format::{Entry, Line};
use cofferdam_agent::event::{CallEnd, HookRecord, ended_by};
use cofferdam_agent::message::{Arguments, AssistantMessage, Message, StopReason};
use cofferdam_agent::model::Retry;
use cofferdam_agent::tool::ToolResult;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// One run as it is to be played.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What the run began with.
    pub(super) prompts: Vec<Message>,
    /// What was queued while each turn ended.
    pub(super) queued: VecDeque<Vec<Message>>,
    /// Model calls.
    pub(super) answers: VecDeque<Answer>,
    /// What the tools do, in the order in which they did it.
    pub(super) cues: VecDeque<Cue>,
    /// The calls of each id, in the order in which they entered preflight.
    pub(super) calls: HashMap<String, VecDeque<CallScript>>,
}

/// One model call.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Requests that failed before it.
    pub(super) retries: Vec<Retry>,
    /// The answer; none if the record breaks off before it.
    pub(super) message: Option<AssistantMessage>,
    /// Whether the run is aborted while it streams.
    pub(super) aborts: bool,
}

/// One thing that a tool does.
#[derive(Debug)]
pub(super) enum Cue {
    /// It begins.
    Run(String),
    /// It reports.
    Progress(String, ToolResult),
    /// It answers.
    End(String),
}

/// One call.
#[derive(Debug, Default)]
pub(super) struct CallScript {
    /// What its tool made of the arguments before they were validated.
    pub(super) prepared: Option<Result<Value, String>>,
    /// What the hooks before it did, then the person, then the hooks after it.
    pub(super) hooks: VecDeque<HookRecord>,
    /// What it came to; none if the record breaks off before it.
    pub(super) end: Option<CallEnd>,
    /// Whether its tool ran.
    pub(super) ran: bool,
    /// The arguments that the tool got, if not those of the model.
    pub(super) ran_with: Option<Arguments>,
    /// Whether the run is aborted in its preflight, or else while its tool runs.
    pub(super) aborts: bool,
}

impl Cue {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Run(id) | Self::Progress(id, _) | Self::End(id) => id,
        }
    }
}

impl Script {
    pub(super) fn of(lines: &[&Line]) -> Self {
        let mut script = Self::default();
        for line in lines {
            script.add(&line.entry);
        }
        script.find_abort(lines);
        script
    }

    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Message(message) => self.message(message),
            Entry::ModelRetry(retry) => self.answer().retries.push(retry.clone()),
            Entry::TurnEnd => self.queued.push_back(Vec::new()),
            Entry::CallStart { id, .. } => {
                self.calls.entry(id.clone()).or_default().push_back(CallScript::default());
            }
            Entry::CallPrepared { id, prepared } => {
                self.last(id, |call| call.prepared = Some(prepared.clone()));
            }
            Entry::CallRun { id, arguments } => {
                self.last(id, |call| {
                    call.ran = true;
                    call.ran_with.clone_from(arguments);
                });
                self.cues.push_back(Cue::Run(id.clone()));
            }
            Entry::CallProgress { id, partial } => {
                self.cues.push_back(Cue::Progress(id.clone(), partial.clone()));
            }
            Entry::CallEnd { id, end, .. } => {
                let mut ran = false;
                self.last(id, |call| {
                    call.hooks = end.hooks.iter().cloned().collect();
                    call.end = Some((**end).clone());
                    ran = call.ran;
                });
                if ran {
                    self.cues.push_back(Cue::End(id.clone()));
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &Arc<Message>) {
        match &**message {
            Message::Assistant(answer) => {
                self.answer().message = Some(answer.clone());
            }
            Message::ToolResult(_) => {}
            queued => match self.queued.back_mut() {
                Some(at_turn_end) => at_turn_end.push(queued.clone()),
                None => self.prompts.push(queued.clone()),
            },
        }
    }

    /// The model call that is not answered yet.
    fn answer(&mut self) -> &mut Answer {
        if self.answers.back().is_none_or(|last| last.message.is_some()) {
            self.answers.push_back(Answer::default());
        }
        let last = self.answers.len() - 1;
        &mut self.answers[last]
    }

    fn last(&mut self, id: &str, change: impl FnOnce(&mut CallScript)) {
        if let Some(call) = self.calls.get_mut(id).and_then(VecDeque::back_mut) {
            change(call);
        }
    }

    /// Where the run was aborted, as far as the record shows it: at the first thing that an abort
    /// ended.
    fn find_abort(&mut self, lines: &[&Line]) {
        let mut answers = 0;
        let mut last_end: Option<(String, usize)> = None;
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for line in lines {
            match &line.entry {
                Entry::Message(message) => {
                    let Some(answer) = message.as_assistant() else { continue };
                    if answer.stop_reason == StopReason::Aborted {
                        self.answers[answers].aborts = true;
                        return;
                    }
                    answers += 1;
                }
                Entry::CallStart { id, .. } => {
                    *seen.entry(id.as_str()).or_default() += 1;
                    // What ended before this call began is no longer the place to abort.
                    last_end = None;
                }
                Entry::CallEnd { id, end, .. } => {
                    let nth = seen.get(id.as_str()).map_or(0, |count| count - 1);
                    let aborted = end.ended_by.as_deref() == Some(ended_by::ABORTED);
                    let ran = self.nth(id, nth).is_some_and(|call| call.ran);
                    if aborted {
                        let (id, nth) = match last_end {
                            Some(last) if !ran => last,
                            _ => (id.clone(), nth),
                        };
                        if let Some(call) = self.nth(&id, nth) {
                            call.aborts = true;
                        }
                        return;
                    }
                    if ran {
                        last_end = Some((id.clone(), nth));
                    }
                }
                _ => {}
            }
        }
    }

    fn nth(&mut self, id: &str, nth: usize) -> Option<&mut CallScript> {
        self.calls.get_mut(id)?.get_mut(nth)
    }
}
