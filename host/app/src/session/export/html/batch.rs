//! The calls of one answer on the page: one time line each, on a common axis.
//!
//! Positions are percentages in attributes of SVG, so that the lines stretch with the page and no
//! style stands in the markup.

use super::super::super::timeline::{Batch, Outcome, Trace};
use super::super::{count, one_line, span, text as plain_text};
use super::text::escaped;
use super::{Page, micros};
use crate::receipt;
use cofferdam_agent::event::{CallEnd, HookAction, HookRecord};
use cofferdam_agent::hook::Decision;
use cofferdam_agent::message::{AssistantMessage, Content};
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};

/// A batch of no more calls than this is shown with its results open.
const OPEN_MAX: usize = 1;
/// Marks of progress on one line: a call may report thousands of times.
const REPORTS_MAX: usize = 60;

/// Characters of the arguments on the line of a call.
const GLANCE_CHARS_MAX: usize = 120;

/// The common axis of a batch.
struct Axis {
    from_us: u64,
    length_us: u64,
}

impl Page {
    pub(super) fn batch(&mut self, batch: &Batch<'_>, answer: &AssistantMessage) -> fmt::Result {
        let Some((from_us, to_us)) = batch.span_us() else {
            let calls = count(batch.calls.len(), "call");
            let why = if answer.failed() { "of a failed answer" } else { "" };
            return self.note("", &format!("{calls} {why} never began."));
        };
        let axis = Axis { from_us, length_us: (to_us - from_us).max(1) };
        let bad = batch.calls.iter().filter(|call| !call.is_done()).count();
        let (calls, took) = (count(batch.calls.len(), "call"), span(to_us - from_us));
        write!(self.out, "<section class=\"batch\"><p class=\"sum\"><b>{calls}</b> in {took}")?;
        if bad > 0 {
            write!(self.out, ", <b class=\"bad\">{bad} failed</b>")?;
        }
        self.out.push_str("</p>\n<div class=\"lines\">");
        axis.write(&mut self.out)?;
        for (place, call) in batch.calls.iter().enumerate() {
            self.call(&axis, call, place + 1, batch.calls.len())?;
        }
        self.out.push_str("</div></section>\n");
        Ok(())
    }

    fn call(&mut self, axis: &Axis, call: &Trace<'_>, place: usize, of: usize) -> fmt::Result {
        self.calls += 1;
        let (number, outcome) = (self.calls, call.outcome());
        let class = outcome.as_str();
        let open = if of <= OPEN_MAX { " open" } else { "" };
        let name = escaped(&call.call.name);
        let glance = escaped(&glance(&call.call.arguments));
        write!(
            self.out,
            "<details class=\"call {class}\" id=\"call-{number}\"{open}><summary>\
             <span class=\"name\"><b>{name}</b> <i>{glance}</i></span>"
        )?;
        axis.line(&mut self.out, call)?;
        writeln!(self.out, "<span class=\"out\">{}</span></summary>", out(call, outcome))?;
        self.body(axis, call, place, of)?;
        self.out.push_str("</details>\n");
        Ok(())
    }

    fn body(&mut self, axis: &Axis, call: &Trace<'_>, place: usize, of: usize) -> fmt::Result {
        self.out.push_str("<div class=\"body\">");
        self.json("Arguments", &call.call.arguments)?;
        if let Some(malformed) = &call.call.malformed {
            self.pre(&format!("Arguments as received: {}", malformed.problem), &malformed.text)?;
        }
        if let Some(arguments) = call.ran_with {
            self.json("Arguments as the tool got them", arguments)?;
        }
        let result = call.result.map(|result| &result.content);
        if let Some(content) = result.or(call.end.map(|(_, end)| &end.result.content)) {
            let title = if call.mended {
                "Result, made up when the session was opened again"
            } else {
                "Result"
            };
            write!(self.out, "<h4>{title}</h4>")?;
            for block in content {
                match block {
                    Content::Text(text) => write!(self.out, "<pre>{}</pre>", escaped(text))?,
                    Content::Image(image) => self.image(image)?,
                }
            }
        }
        if let Some(details) = call.end.and_then(|(_, end)| end.result.details.as_ref()) {
            self.pre("Details", &as_text(details))?;
        }
        let receipt = receipt(axis, call, place, of);
        write!(self.out, "<h4>Receipt</h4><pre class=\"receipt\">{}</pre></div>", escaped(&receipt))
    }

    fn json(&mut self, title: &str, fields: &Map<String, Value>) -> fmt::Result {
        if fields.is_empty() {
            return Ok(());
        }
        self.pre(title, &as_text(fields))
    }

    fn pre(&mut self, title: &str, text: &str) -> fmt::Result {
        write!(self.out, "<h4>{}</h4><pre>{}</pre>", escaped(title), escaped(text))
    }
}

impl Axis {
    fn percent(&self, at_us: u64) -> f64 {
        let at = at_us.saturating_sub(self.from_us).min(self.length_us);
        at as f64 * 100.0 / self.length_us as f64
    }

    /// Marks at round times, and the whole length at the end.
    fn write(&self, out: &mut String) -> fmt::Result {
        out.push_str("<svg class=\"axis\" aria-hidden=\"true\">");
        let step = round_step(self.length_us);
        for at in (1..).map(|n| n * step).take_while(|at| *at < self.length_us) {
            let x = self.percent(self.from_us + at);
            write!(out, "<line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"15\" y2=\"100%\"/>")?;
            // Not into the label of the end.
            if x < 82.0 {
                write!(out, "<text x=\"{x:.2}%\" y=\"10\">{}</text>", span(at))?;
            }
        }
        let length = span(self.length_us);
        writeln!(out, "<text class=\"last\" x=\"100%\" y=\"10\">{length}</text></svg>")
    }

    /// One call: preflight, run, reports, and how long its result was kept.
    fn line(&self, out: &mut String, call: &Trace<'_>) -> fmt::Result {
        out.push_str("<svg class=\"track\" aria-hidden=\"true\">");
        let end = call.end.map(|(at, _)| at);
        let mut line = |class: &str, from: Option<u64>, to: Option<u64>| match (from, to) {
            (Some(from), Some(to)) => {
                let (x1, x2) = (self.percent(from), self.percent(to));
                write!(
                    out,
                    "<line class=\"{class}\" x1=\"{x1:.2}%\" x2=\"{x2:.2}%\" y1=\"50%\" y2=\"50%\"/>"
                )
            }
            _ => Ok(()),
        };
        line("pre", call.start_us, call.run_us.or(end))?;
        line("kept", end, call.retired_us)?;
        let last_seen = call.progress.last().map(|(at, _)| *at).or(call.run_us);
        line("ran", call.run_us, end.or(last_seen))?;
        let every = call.progress.len().div_ceil(REPORTS_MAX).max(1);
        for (at, _) in call.progress.iter().step_by(every) {
            let x = self.percent(*at);
            write!(out, "<circle class=\"said\" cx=\"{x:.2}%\" cy=\"50%\" r=\"2.2\"/>")?;
        }
        if let Some(at) = call.retired_us {
            let x = self.percent(at);
            write!(out, "<circle class=\"home\" cx=\"{x:.2}%\" cy=\"50%\" r=\"3\"/>")?;
        }
        if let (None, Some(at)) = (call.run_us, end) {
            let x = self.percent(at);
            write!(
                out,
                "<svg x=\"{x:.2}%\" y=\"50%\" overflow=\"visible\">\
                 <path class=\"stop\" d=\"M-4-4 4 4M4-4-4 4\"/></svg>"
            )?;
        }
        out.push_str("</svg>");
        Ok(())
    }
}

/// A round number of microseconds of which three to five fit into a length.
fn round_step(length_us: u64) -> u64 {
    let mut unit = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if length_us / step <= 5 {
                return step;
            }
        }
        unit *= 10;
    }
}

/// The end of a line: how it came out, how long it ran, what was refused and cut.
fn out(call: &Trace<'_>, outcome: Outcome) -> String {
    let mut html = String::new();
    let ran = call.run_us.and(call.end).map(|(_, end)| span(micros(end.duration)));
    let word = match (call.end.and_then(|(_, end)| end.ended_by.as_deref()), outcome) {
        (Some(code), _) => escaped(code),
        (None, Outcome::Done) => String::new(),
        (None, outcome) => outcome.as_str().to_owned(),
    };
    let bill = bill(call.end.map(|(_, end)| end));
    for (key, noun, class) in [("refusals", "refused", "warn"), ("cuts", "cut", "warn")] {
        match bill.get(key).and_then(Value::as_array).map_or(0, Vec::len) {
            0 => {}
            number => html.push_str(&format!("<em class=\"{class}\">{number} {noun}</em> ")),
        }
    }
    if !word.is_empty() {
        html.push_str(&format!("<strong>{word}</strong> "));
    }
    html.push_str(&ran.unwrap_or_default());
    html.trim_end().to_owned()
}

fn bill(end: Option<&CallEnd>) -> Value {
    end.and_then(|end| end.receipt.as_ref()).map(|bill| bill.to_json()).unwrap_or_default()
}

/// The moments of a call and what it cost, one figure a line.
fn receipt(axis: &Axis, call: &Trace<'_>, place: usize, of: usize) -> String {
    let since = |at: u64| format!("+{}", span(at.saturating_sub(axis.from_us)));
    let mut rows: Vec<(&str, String)> =
        vec![("call", format!("{}, {place} of {of}", call.call.id))];
    rows.extend(call.start_us.map(|at| ("preflight", since(at))));
    rows.extend(call.run_us.map(|at| ("started", since(at))));
    if let (Some((first, _)), Some((last, report))) = (call.progress.first(), call.progress.last())
    {
        let reports = count(call.progress.len(), "report");
        rows.push(("progress", format!("{reports}, {} to {}", since(*first), since(*last))));
        rows.push(("", format!("last: {}", one_line(&plain_text(&report.content), 60))));
    }
    if let Some((at, _)) = call.end {
        let nth = call.ended_as.unwrap_or_default();
        rows.push(("ended", format!("{}, {nth} of {of} to end", since(at))));
    }
    rows.extend(call.retired_us.map(|at| ("retired", since(at))));
    let mut text = String::new();
    for (key, value) in rows {
        text.push_str(&format!("{key:<10} {value}\n"));
    }
    if let Some((_, end)) = call.end {
        text.push_str(&format!(
            "{:<10} {}\n",
            "outcome",
            end.ended_by.as_deref().unwrap_or(call.outcome().as_str())
        ));
        end.hooks
            .iter()
            .for_each(|record| text.push_str(&format!("{:<10} {}\n", "hook", hook(record))));
        let bill = bill(Some(end));
        if !bill.is_null() {
            text.push('\n');
            for line in receipt::table(&bill).lines() {
                text.push_str(line.trim_start());
                text.push('\n');
            }
        }
    }
    text.trim_end().to_owned()
}

fn hook(record: &HookRecord) -> String {
    let done = match &record.action {
        HookAction::Kept => "looked and let it be".into(),
        HookAction::Rewrote { .. } => "rewrote the arguments".into(),
        HookAction::Blocked(refusal) => format!("blocked it: {}", one_line(&refusal.reason, 120)),
        HookAction::Asked(Decision::Approved) => "asked; the answer was yes".into(),
        HookAction::Asked(_) => "asked; the answer was no".into(),
        HookAction::Amended(_) => "amended the result".into(),
        HookAction::Failed(problem) => format!("failed: {}", one_line(problem, 120)),
    };
    format!("{} {done}", record.hook)
}

/// Arguments in a few words: `path=/repo pattern=^fn`.
fn glance(arguments: &Map<String, Value>) -> String {
    let mut words = String::new();
    for (key, value) in arguments {
        let value = match value {
            Value::String(text) => one_line(text, GLANCE_CHARS_MAX),
            other => one_line(&other.to_string(), GLANCE_CHARS_MAX),
        };
        words.push_str(&format!("{key}={value} "));
    }
    one_line(&words, GLANCE_CHARS_MAX)
}

/// JSON on one line if it is short.
fn as_text(value: &impl serde::Serialize) -> String {
    let line = serde_json::to_string(value).unwrap_or_default();
    match line.len() {
        0..100 => line,
        _ => serde_json::to_string_pretty(value).unwrap_or(line),
    }
}

#[cfg(test)]
mod tests {
    use super::round_step;

    #[test]
    fn the_axis_has_two_to_five_round_marks() {
        for length in (1..200_000).chain([1_020_000, 59_999_999, 3_600_000_000]) {
            let step = round_step(length);
            let marks = length / step;
            assert!((2..=5).contains(&marks) || length < 2, "{length}: {step}");
        }
    }
}
