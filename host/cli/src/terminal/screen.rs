//! What the terminal shows: a state that takes events and keys, and gives rows. It knows no terminal, no
//! clock and no agent.
//!
//! Rows that are finished are given out once, to go up into the scrollback. The live ones are made anew
//! for each frame: the end of the answer, the calls that run, what is queued, what is typed.

mod live;

use super::answer::Answer;
use super::call::{self, LiveCall, seconds};
use super::history::History;
use super::input::Input;
use super::theme::Theme;
use crate::approver;
use crate::render::fold::{columns, cut, folded};
use crate::render::{ended_early, retry, text};
use cofferdam_agent::event::Event;
use cofferdam_agent::hook::{Approval, Decision};
use cofferdam_agent::message::Message;
use cofferdam_agent::queue::QueueKind;
use cofferdam_sandbox::text::{harmless, visible};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::Line;
use std::sync::Arc;
use std::time::Duration;

/// Messages of an old session that are shown again.
const RECALLED: usize = 12;

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

    /// What became of a file that changed.
    pub(super) fn told(&mut self, text: &str) {
        self.gap();
        for line in text.lines() {
            self.text(&visible(line, 2_000), "  note: ", "  ", |theme| theme.asks());
        }
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
