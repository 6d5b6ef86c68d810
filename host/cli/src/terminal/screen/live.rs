//! The live rows of a frame: the end of the answer, the calls that run, what is queued, what is going on,
//! what is typed, and the keys. Where there is little room, the last of these stay.

use super::{Phase, Screen};
use crate::render::fold::{columns, cut};
use crate::terminal::call::{LiveCall, seconds, spinner};
use crate::terminal::pane::Frame;
use crate::terminal::theme::Theme;
use cofferdam_agent::queue::QueueKind;
use cofferdam_sandbox::text::visible;
use ratatui::text::{Line, Span};

/// Rows of what is typed.
const INPUT_ROWS_MAX: usize = 8;
/// Rows of what is queued.
const QUEUED_ROWS_MAX: usize = 4;

impl Screen {
    /// The live rows.
    pub(in crate::terminal) fn frame(&self) -> Frame {
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
            let more = cut(&format!("    … and {more} more calls"), self.width);
            calls.push(Theme::row(self.theme.quiet(), more));
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
                rows.push(cut(&format!("  … and {more} more queued"), self.width));
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
}
