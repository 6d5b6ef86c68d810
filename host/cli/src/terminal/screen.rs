//! What the terminal shows: a state that takes events and keys, and gives rows. It knows no terminal, no
//! clock and no agent.
//!
//! Rows that are finished are given out once, to go up into the scrollback. The live ones are made anew
//! for each frame: the end of the answer, the calls that run, what is queued, what is typed.

use super::answer::Answer;
use super::call::{self, LiveCall, seconds, spinner};
use super::fold::{columns, cut, folded};
use super::history::History;
use super::input::Input;
use super::pane::Frame;
use super::theme::Theme;
use crate::approver;
use crate::render::{ended_early, retry, text};
use cofferdam_agent::event::Event;
use cofferdam_agent::hook::{Approval, Decision};
use cofferdam_agent::message::Message;
use cofferdam_agent::queue::QueueKind;
use cofferdam_sandbox::text::{harmless, visible};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::{Line, Span};
use std::sync::Arc;
use std::time::Duration;

/// Rows of what is typed.
const INPUT_ROWS_MAX: usize = 8;
/// Messages of an old session that are shown again.
const RECALLED: usize = 12;
/// Rows of what is queued.
const QUEUED_ROWS_MAX: usize = 4;

/// The state.
pub(super) struct Screen {
    theme: Theme,
    /// Columns that are written to. The last one of the terminal stays free: what is written there
    /// may wrap or not.
    width: usize,
    /// Rows of the terminal.
    height: usize,
    /// The time of the last event, key or tick, since the beginning.
    now: Duration,
    phase: Phase,
    /// Finished rows that nobody has taken.
    done: Vec<Line<'static>>,
    /// Finished rows that wait for an answer: nothing comes between a question and its answer.
    held: Vec<Line<'static>>,
    /// Whether the last finished row is blank.
    blank: bool,
    answer: Answer,
    /// Whether the answer has rows that are finished.
    answered: bool,
    calls: Vec<LiveCall>,
    queued: Vec<(QueueKind, String)>,
    question: Option<Asked>,
    input: Input,
}

/// Whether a run is active, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Works(Duration),
    Aborts(Duration),
}

/// A question that is open.
struct Asked {
    headline: String,
    /// What was typed when it came.
    draft: String,
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Begin a run.
    Prompt(String),
    /// Say something to the run that is active.
    Steer(String),
    /// Say something after it.
    FollowUp(String),
    /// Answer the open question.
    Answer(Decision),
    /// Abort the run.
    Abort,
    /// End the program.
    Leave,
    /// Draw everything again.
    Redraw,
    /// Stop until the shell goes on with this.
    Suspend,
}

impl Screen {
    pub(super) fn new(theme: Theme, history: History) -> Self {
        Self {
            theme,
            width: 79,
            height: 24,
            now: Duration::ZERO,
            phase: Phase::Idle,
            done: Vec::new(),
            held: Vec::new(),
            blank: false,
            answer: Answer::default(),
            answered: false,
            calls: Vec::new(),
            queued: Vec::new(),
            question: None,
            input: Input::new(history),
        }
    }

    /// How many columns and rows the terminal has.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        self.width = columns.saturating_sub(1).max(10);
        self.height = rows;
    }

    /// What time it is.
    pub(super) fn at(&mut self, now: Duration) {
        self.now = now;
    }

    /// What waits in the agent's queues.
    pub(super) fn queue(&mut self, queued: Vec<(QueueKind, String)>) {
        self.queued = queued;
    }

    /// A run begins.
    pub(super) fn begins(&mut self) {
        self.phase = Phase::Works(self.now);
    }

    /// The run was told to abort.
    pub(super) fn aborts(&mut self) {
        if let Phase::Works(since) = self.phase {
            self.phase = Phase::Aborts(since);
        }
    }

    /// The run is over. What it was is a word, as in "done".
    pub(super) fn ends(&mut self, how: &str, is_bad: bool) {
        let (Phase::Works(since) | Phase::Aborts(since)) = self.phase else { return };
        let text = format!("{how} after {}", seconds(self.now.saturating_sub(since)));
        let style = |theme: Theme| if is_bad { theme.bad() } else { theme.quiet() };
        self.gap();
        self.text(&text, "  ", "  ", style);
        self.gap();
        self.phase = Phase::Idle;
        self.calls.clear();
        self.answer = Answer::default();
    }

    /// Messages that were queued and not delivered: the person has them back.
    pub(super) fn give_back(&mut self, messages: &[String]) {
        if !messages.is_empty() {
            self.input.put_back(&messages.join("\n"));
        }
    }

    /// Keeps what was said elsewhere than here.
    pub(super) fn remember(&mut self, text: &str) {
        self.input.remember(text);
    }

    /// The end of what was said before.
    pub(super) fn recall(&mut self, messages: &[Arc<Message>]) {
        let skipped = messages.len().saturating_sub(RECALLED);
        if skipped > 0 {
            let more = format!("  … {skipped} earlier messages: cofferdam session show has them");
            self.push(Theme::row(self.theme.quiet(), cut(&more, self.width)));
        }
        for message in &messages[skipped..] {
            self.message(message);
            if let Message::ToolResult(result) = &**message {
                let name = visible(&result.tool_name, 80);
                self.push(call::headline(&name, result.is_error, "", self.theme, self.width));
                call::result(&result.content, self.width)
                    .into_iter()
                    .for_each(|row| self.push(row));
            }
        }
        self.gap();
    }

    /// Takes an event of the run.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::ModelRetry { retry } => {
                self.text(&self::retry(retry), "  ", "    ", |theme| theme.quiet());
            }
            Event::MessageUpdate { message, .. } => {
                let rows = self.answer.follow(message, self.width);
                self.answer_rows(rows);
            }
            Event::MessageEnd { message } => self.message(message),
            Event::ToolExecutionStart { call } => self.calls.push(LiveCall::new(call, self.now)),
            Event::ToolExecutionUpdate { call, partial } => {
                if let Some(live) = self.calls.iter_mut().find(|live| live.is(call)) {
                    live.report(partial);
                }
            }
            Event::ToolExecutionEnd { call, end } => {
                if let Some(at) = self.calls.iter().position(|live| live.is(call)) {
                    self.calls.remove(at);
                }
                for row in call::ended(call, end, self.theme, self.width) {
                    self.push(row);
                }
            }
            Event::AgentStart
            | Event::TurnStart
            | Event::MessageStart { .. }
            | Event::TurnEnd { .. }
            | Event::AgentEnd { .. } => {}
        }
    }

    fn message(&mut self, message: &Message) {
        match message {
            Message::User(user) => {
                self.gap();
                self.text(&text(&user.content), "› ", "  ", |theme| theme.person());
                self.gap();
            }
            Message::Assistant(answer) => {
                let rows = self.answer.end(answer, self.width);
                self.answer_rows(rows);
                if self.answered {
                    self.gap();
                }
                self.answered = false;
                if let Some(problem) = ended_early(answer) {
                    self.text(&format!("✗ {problem}"), "  ", "    ", |theme| theme.bad());
                }
            }
            // Shown when the call ended.
            Message::ToolResult(_) | Message::Custom(_) => {}
        }
    }

    fn answer_rows(&mut self, rows: Vec<String>) {
        if rows.is_empty() {
            return;
        }
        if !self.answered {
            self.gap();
            self.answered = true;
        }
        rows.into_iter().for_each(|row| self.push(Line::from(row)));
    }

    /// Puts a question: all of it above the live rows, before it can be answered.
    pub(super) fn ask(&mut self, approval: &Approval<'_>) {
        self.gap();
        for row in approver::question(approval, self.width).lines() {
            let row = match row.starts_with('┌') {
                true => Theme::row(self.theme.asks(), row),
                false => Line::from(row.to_owned()),
            };
            self.push(row);
        }
        let call = approval.call;
        let (name, id) = (visible(&call.name, 80), visible(&call.id, 80));
        let headline = format!("approval needed: {name}, call {id}, shown above");
        self.question = Some(Asked { headline, draft: self.input.take() });
    }

    /// The question is answered, or was taken back.
    pub(super) fn asked(&mut self, outcome: &str) {
        let Some(asked) = self.question.take() else { return };
        self.input.take();
        self.input.put_back(&asked.draft);
        self.text(&visible(outcome, 2_000), "└ ", "  ", |theme| theme.asks());
        let held = std::mem::take(&mut self.held);
        held.into_iter().for_each(|row| self.push(row));
    }

    /// Takes a key; says what it asks for, if anything.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Intent> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => Some(self.interrupt()),
            KeyCode::Char('d') if control && self.input.is_empty() => {
                (self.phase == Phase::Idle).then_some(Intent::Leave)
            }
            KeyCode::Char('l') if control => Some(Intent::Redraw),
            KeyCode::Char('z') if control => Some(Intent::Suspend),
            KeyCode::Enter if key.modifiers.is_empty() => self.enter(),
            KeyCode::Tab if self.question.is_none() && self.phase != Phase::Idle => {
                self.said().map(Intent::FollowUp)
            }
            _ => {
                self.input.key(key);
                None
            }
        }
    }

    /// Text from the clipboard.
    pub(super) fn paste(&mut self, text: &str) {
        self.input.paste(text);
    }

    /// An interrupt, from the keyboard or as a signal: the first aborts, the second leaves.
    pub(super) fn interrupt(&mut self) -> Intent {
        match self.phase {
            Phase::Works(_) => Intent::Abort,
            Phase::Idle | Phase::Aborts(_) => {
                // Nothing that was typed is lost with it.
                if self.question.is_none() {
                    self.input.say();
                }
                Intent::Leave
            }
        }
    }

    fn enter(&mut self) -> Option<Intent> {
        if self.question.is_some() {
            return approver::decision(&self.input.text()).map(Intent::Answer);
        }
        let said = self.said()?;
        Some(if self.phase == Phase::Idle { Intent::Prompt(said) } else { Intent::Steer(said) })
    }

    fn said(&mut self) -> Option<String> {
        (!self.input.text().trim().is_empty()).then(|| self.input.say())
    }

    /// The finished rows since the last time.
    pub(super) fn take_done(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.done)
    }

    /// The live rows.
    pub(super) fn frame(&self) -> Frame {
        let room = self.height.saturating_sub(1).max(2);
        let prompt = if self.question.is_some() { "run it? " } else { "› " };
        let beside = columns(prompt);
        let (typed, cursor) = self
            .input
            .rows(self.width.saturating_sub(beside + 1), INPUT_ROWS_MAX.min(room / 2).max(1));
        let status = self.status();
        let hints = if room > 5 { self.hints() } else { Vec::new() };
        let room = room.saturating_sub(typed.len() + hints.len() + usize::from(status.is_some()));
        let queued = self.queued_rows(room / 2);
        let room = room - queued.len();
        // A blank row between what is said and done and what is typed, if there is one to spare.
        let mut rows = self.work_rows(room.saturating_sub(2).max(room.min(1)));
        if self.question.is_some() && !rows.is_empty() && rows.len() < room {
            rows.insert(0, Line::default());
        }
        if rows.len() < room && (!rows.is_empty() || !self.blank) {
            rows.push(Line::default());
        }
        rows.extend(queued);
        rows.extend(status);
        let cursor = (rows.len() + cursor.0, beside + cursor.1);
        for (at, row) in typed.into_iter().enumerate() {
            let before = if at == 0 { prompt.to_owned() } else { " ".repeat(beside) };
            let style = self.question.as_ref().map_or(self.theme.person(), |_| self.theme.asks());
            rows.push(Line::from(vec![Span::styled(before, style), Span::raw(row)]));
        }
        rows.extend(hints.into_iter().map(|row| Theme::row(self.theme.quiet(), row)));
        Frame { rows, cursor }
    }

    /// The end of the answer and the calls that run, in at most so many rows.
    fn work_rows(&self, room: usize) -> Vec<Line<'static>> {
        let mut rows = self.answer.live(self.theme, self.width);
        if !rows.is_empty() && !self.blank && !self.answered {
            rows.insert(0, Line::default());
        }
        rows.truncate(room);
        let room = room - rows.len();
        let live = |roomy| {
            let rows = |call: &LiveCall| call.live(self.now, self.theme, self.width, roomy);
            self.calls.iter().flat_map(rows).collect::<Vec<_>>()
        };
        let mut calls = live(true);
        if calls.len() > room {
            calls = live(false);
        }
        if calls.len() > room && room > 0 {
            let more = calls.len() + 1 - room;
            calls.truncate(room - 1);
            calls.push(Theme::row(self.theme.quiet(), format!("    … and {more} more calls")));
        }
        calls.truncate(room);
        rows.extend(calls);
        rows
    }

    fn queued_rows(&self, room: usize) -> Vec<Line<'static>> {
        let row = |(kind, text): &(QueueKind, String)| {
            let kind = match kind {
                QueueKind::Steering => "steers next",
                QueueKind::FollowUp => "follows up",
            };
            cut(&format!("  {kind}: {}", visible(text, 400)), self.width)
        };
        let mut rows: Vec<String> = self.queued.iter().map(row).collect();
        let room = room.min(QUEUED_ROWS_MAX);
        if rows.len() > room {
            let more = rows.len() + 1 - room.max(1);
            rows.truncate(room.saturating_sub(1));
            if room > 0 {
                rows.push(format!("  … and {more} more queued"));
            }
        }
        rows.into_iter().map(|row| Theme::row(self.theme.quiet(), row)).collect()
    }

    /// What is going on; none if nothing is.
    fn status(&self) -> Option<Line<'static>> {
        if let Some(asked) = &self.question {
            return Some(Theme::row(self.theme.asks(), cut(&asked.headline, self.width)));
        }
        let (what, since) = match self.phase {
            Phase::Idle => return None,
            Phase::Aborts(since) => ("aborting".to_owned(), since),
            Phase::Works(since) => (self.doing(), since),
        };
        let passed = seconds(self.now.saturating_sub(since));
        let text = format!("{} {what} · {passed}", spinner(self.now));
        Some(Theme::row(self.theme.busy(), cut(&text, self.width)))
    }

    fn doing(&self) -> String {
        match (self.calls.len(), self.answer.doing()) {
            (0, Some(doing)) => visible(&doing, 120),
            (0, None) => "waiting for the model".into(),
            (1, _) => "running a call".into(),
            (calls, _) => format!("running {calls} calls"),
        }
    }

    /// The keys that do something, as many as fit in two rows.
    fn hints(&self) -> Vec<String> {
        let keys: &[&str] = match (&self.question, self.phase) {
            (Some(_), _) => {
                &["y Enter: yes", "n Enter: no", "words, Enter: no, and why", "Ctrl-C: abort"]
            }
            (None, Phase::Idle) => {
                &["Enter: send", "Ctrl-J: new line", "↑: history", "Ctrl-D: leave"]
            }
            (None, Phase::Works(_)) => {
                &["Enter: steer", "Tab: follow up", "Ctrl-J: new line", "Ctrl-C: abort"]
            }
            (None, Phase::Aborts(_)) => &["Ctrl-C: leave at once"],
        };
        let mut rows = vec![String::new()];
        for key in keys {
            let row = rows.last_mut().filter(|row| columns(row) + columns(key) + 5 <= self.width);
            match row {
                Some(row) if row.is_empty() => *row = format!("  {key}"),
                Some(row) => row.push_str(&format!(" · {key}")),
                None => rows.push(format!("  {}", cut(key, self.width - 2))),
            }
        }
        rows.retain(|row| !row.is_empty());
        rows.truncate(2);
        rows
    }

    /// Finishes a text, folded.
    fn text(
        &mut self,
        text: &str,
        first: &str,
        other: &str,
        style: impl Fn(Theme) -> ratatui::style::Style,
    ) {
        let width = self.width.saturating_sub(columns(first)).max(8);
        let mut before = first;
        for line in harmless(text).replace('\t', "    ").lines() {
            for row in folded(line, width) {
                self.push(Theme::row(style(self.theme), format!("{before}{row}")));
                before = other;
            }
        }
    }

    /// Finishes a row.
    fn push(&mut self, row: Line<'static>) {
        self.blank = row.width() == 0;
        match self.question {
            Some(_) => self.held.push(row),
            None => self.done.push(row),
        }
    }

    /// One blank row, unless there is one.
    fn gap(&mut self) {
        if !self.blank {
            self.push(Line::default());
        }
    }
}

/// What was decided, for the person who decided it.
pub(super) fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Approved => "yes".into(),
        Decision::Declined { reason: None } => "no".into(),
        Decision::Declined { reason: Some(reason) } => format!("no: {reason}"),
        Decision::Unanswered { why } => format!("no: {why}"),
    }
}

/// The text of a queued message.
pub(super) fn words(message: &Message) -> String {
    match message {
        Message::User(user) => text(&user.content),
        Message::Assistant(_) | Message::ToolResult(_) | Message::Custom(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;
