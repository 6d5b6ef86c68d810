//! A tool call: one live row while it runs, with its progress below; at the end what it came to, what it
//! cost, and the first lines of its result.

use super::theme::Theme;
use crate::render::fold::{columns, cut, folded};
use crate::render::{changes, partial_line, preview, summary};
use cofferdam_agent::event::{CallEnd, CallEvent};
use cofferdam_agent::message::Content;
use cofferdam_agent::tool::ToolResult;
use cofferdam_sandbox::text::visible;
use ratatui::text::{Line, Span};
use std::time::Duration;

/// Bytes of arguments that are kept for a row.
const ARGUMENTS_BYTES: usize = 400;
/// How long each picture of the spinner stays.
const SPIN_MS: u128 = 100;

/// A call that runs.
#[derive(Debug)]
pub(super) struct LiveCall {
    id: String,
    name: String,
    arguments: String,
    began: Duration,
    progress: String,
}

impl LiveCall {
    pub(super) fn new(call: &CallEvent<'_>, now: Duration) -> Self {
        Self {
            id: call.id.to_owned(),
            name: visible(call.name, 80),
            arguments: arguments(call),
            began: now,
            progress: String::new(),
        }
    }

    pub(super) fn is(&self, call: &CallEvent<'_>) -> bool {
        self.id == call.id
    }

    pub(super) fn report(&mut self, partial: &ToolResult) {
        self.progress = partial_line(partial);
    }

    /// Its rows: one, or two if there is room for its progress.
    pub(super) fn live(
        &self,
        now: Duration,
        theme: Theme,
        width: usize,
        roomy: bool,
    ) -> Vec<Line<'static>> {
        let passed = seconds(now.saturating_sub(self.began));
        let says = match (roomy, &*self.progress) {
            (_, "") | (true, _) => &self.arguments,
            (false, progress) => progress,
        };
        let text = cut(&format!(" {} {passed} {says}", self.name), width.saturating_sub(3));
        let rest = text.get(self.name.len() + 1..).unwrap_or_default().to_owned();
        let name = text[..text.len() - rest.len()].to_owned();
        let mut rows = vec![Line::from(vec![
            Span::styled(format!("  {}", spinner(now)), theme.busy()),
            Span::raw(name),
            Span::styled(rest, theme.quiet()),
        ])];
        if roomy && !self.progress.is_empty() {
            let progress = cut(&format!("    · {}", self.progress), width);
            rows.push(Theme::row(theme.quiet(), progress));
        }
        rows
    }
}

/// The rows of a call that has ended.
pub(super) fn ended(
    call: &CallEvent<'_>,
    end: &CallEnd,
    theme: Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let arguments = cut(&arguments(call), width.saturating_sub(5 + call.name.len()).max(8));
    let mut rows = vec![headline(&visible(call.name, 80), end.is_error, &arguments, theme, width)];
    let mut cost = vec![visible(call.id, 80)];
    if !end.duration.is_zero() {
        cost.push(format!("{:.1} ms", end.duration.as_secs_f64() * 1000.0));
    }
    cost.extend(end.ended_by.as_ref().map(|ended_by| visible(ended_by, 80)));
    cost.extend(end.receipt.as_ref().map(|receipt| summary(&receipt.to_json())));
    cost.retain(|part| !part.is_empty());
    rows.extend(below(&cost.join(" · "), theme, width));
    for change in changes(end) {
        rows.extend(below(&format!("hook {change}"), theme, width));
    }
    rows.extend(result(&end.result.content, width));
    rows
}

/// The first row of a call that has ended, in this run or long ago.
pub(super) fn headline(
    name: &str,
    is_error: bool,
    more: &str,
    theme: Theme,
    width: usize,
) -> Line<'static> {
    let (mark, style) = if is_error { ("✗", theme.bad()) } else { ("✓", theme.good()) };
    let name = cut(name, width.saturating_sub(4));
    let mut spans = vec![Span::styled(format!("  {mark}"), style), Span::raw(format!(" {name}"))];
    let left = width.saturating_sub(4 + columns(&name));
    if !more.is_empty() && left > 4 {
        spans.push(Span::styled(format!(" {}", cut(more, left - 1)), theme.quiet()));
    }
    Line::from(spans)
}

/// The first lines of a result.
pub(super) fn result(content: &[Content], width: usize) -> Vec<Line<'static>> {
    let row = |line: String| Line::from(cut(&format!("      {line}"), width));
    preview(content).into_iter().map(row).collect()
}

/// The picture of the spinner for a moment.
pub(super) fn spinner(now: Duration) -> char {
    const PICTURES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    let at = now.as_millis() / SPIN_MS % PICTURES.len() as u128;
    // Smaller than ten.
    PICTURES[usize::try_from(at).unwrap_or(0)]
}

/// A time for people.
pub(super) fn seconds(time: Duration) -> String {
    let whole = time.as_secs();
    match whole {
        0..100 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min {:02} s", whole / 60, whole % 60),
    }
}

/// A line that belongs to what is above it, folded.
fn below(text: &str, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let rows = folded(text, width.saturating_sub(6).max(8));
    rows.iter().map(|row| Theme::row(theme.quiet(), format!("      {row}"))).collect()
}

fn arguments(call: &CallEvent<'_>) -> String {
    let text = serde_json::to_string(&**call.arguments).unwrap_or_default();
    visible(&text, ARGUMENTS_BYTES)
}
