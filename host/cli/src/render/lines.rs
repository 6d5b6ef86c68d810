//! The events of a run as lines for people.
//!
//! A call shows when it starts and when it ends, with what it came to and what it cost; text from
//! models and plugins has its control characters written out.

use super::{Output, summary};
use cofferdam_agent::event::{CallEnd, CallEvent, Event, HookAction, HookRecord, Observer};
use cofferdam_agent::hook::Decision;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Content, Message, StopReason};
use cofferdam_agent::model::Retry;
use cofferdam_agent::tool::ToolResult;
use cofferdam_sandbox::text::{harmless, visible};
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Characters of arguments and progress shown on their line.
const LINE_MAX: usize = 160;
/// Lines of a result shown under its call.
const RESULT_LINES_MAX: usize = 6;

/// Writes events as lines.
pub(crate) struct Lines {
    to: Output,
    turn: AtomicUsize,
    /// Whether answers are written here as well.
    answers: bool,
}

impl Lines {
    /// Lines for `to`; without `answers`, whoever calls writes the final answer itself.
    pub(crate) fn new(to: Output, answers: bool) -> Self {
        Self { to, turn: AtomicUsize::new(0), answers }
    }

    fn event(&self, event: &Event<'_>) {
        match event {
            Event::TurnStart => {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed) + 1;
                self.to.line(&format!("── turn {turn}"));
            }
            Event::ModelRetry { retry } => self.to.line(&format!("  {}", self::retry(retry))),
            Event::MessageEnd { message } => self.message(message),
            Event::ToolExecutionStart { call } => self.to.line(&start(call)),
            Event::ToolExecutionUpdate { call, partial } => {
                let (name, id) = (visible(call.name, 80), visible(call.id, 80));
                self.to.line(&format!("  · {name} {id}: {}", partial_line(partial)));
            }
            Event::ToolExecutionEnd { call, end } => self.to.line(&self::end(call, end)),
            Event::AgentStart
            | Event::MessageStart { .. }
            | Event::MessageUpdate { .. }
            | Event::TurnEnd { .. }
            | Event::AgentEnd { .. } => {}
        }
    }

    fn message(&self, message: &Message) {
        match message {
            Message::User(user) => {
                self.to.line(&format!("user: {}", indented(&text(&user.content), "      ")));
            }
            Message::Assistant(assistant) => {
                for block in &assistant.content {
                    if let (AssistantBlock::Text(block), true) = (block, self.answers) {
                        self.to.line(&indented(&harmless(&block.text), ""));
                    }
                }
                if let Some(problem) = ended_early(assistant) {
                    self.to.line(&format!("  ✗ {problem}"));
                }
            }
            // Shown when the call ended; here only its place in the transcript is settled.
            Message::ToolResult(_) | Message::Custom(_) => {}
        }
    }
}

impl Observer for Lines {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        self.event(event);
        Box::pin(std::future::ready(()))
    }
}

/// Why an answer is not whole; none if it is.
pub(crate) fn ended_early(answer: &AssistantMessage) -> Option<String> {
    let (StopReason::Error | StopReason::Aborted | StopReason::Length) = answer.stop_reason else {
        return None;
    };
    let problem = answer.error_message.as_deref().unwrap_or("the output limit cut it");
    Some(format!("the answer ended early: {}", visible(problem, 400)))
}

/// Why and when a model is asked again.
pub(crate) fn retry(retry: &Retry) -> String {
    format!(
        "↻ {}; asking again in {:.1} s (retry {} of {})",
        visible(&retry.problem, 400),
        retry.wait.as_secs_f64(),
        retry.retry,
        retry.retries_max
    )
}

/// The text of an answer.
pub(crate) fn answer(message: &Message) -> String {
    let Message::Assistant(assistant) = message else { return String::new() };
    let texts = assistant.content.iter().filter_map(|block| match block {
        AssistantBlock::Text(block) => Some(harmless(&block.text)),
        AssistantBlock::Thinking(_) | AssistantBlock::ToolCall(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn start(call: &CallEvent<'_>) -> String {
    let arguments = serde_json::to_string(&**call.arguments).unwrap_or_default();
    let (name, id) = (visible(call.name, 80), visible(call.id, 80));
    format!("  → {name} {id}  {}", visible(&arguments, LINE_MAX))
}

fn end(call: &CallEvent<'_>, end: &CallEnd) -> String {
    let mark = if end.is_error { '✗' } else { '✓' };
    let mut line = format!("  {mark} {} {}", visible(call.name, 80), visible(call.id, 80));
    if !end.duration.is_zero() {
        line.push_str(&format!("  {:.1} ms", end.duration.as_secs_f64() * 1000.0));
    }
    if let Some(ended_by) = &end.ended_by {
        line.push_str(&format!("  [{}]", visible(ended_by, 80)));
    }
    if let Some(receipt) = &end.receipt {
        line.push_str(&format!("  {}", summary(&receipt.to_json())));
    }
    for change in changes(end) {
        line.push_str(&format!("\n      hook {change}"));
    }
    for shown in preview(&end.result.content) {
        line.push_str(&format!("\n      {shown}"));
    }
    line
}

/// What the hooks of a call did that changed something.
pub(crate) fn changes(end: &CallEnd) -> impl Iterator<Item = String> {
    end.hooks.iter().filter(|record| record.action != HookAction::Kept).map(hook)
}

fn hook(record: &HookRecord) -> String {
    let done = match &record.action {
        HookAction::Kept => "looked".into(),
        HookAction::Rewrote { to, .. } => {
            let arguments = serde_json::to_string(&**to).unwrap_or_default();
            format!("rewrote the arguments: {}", visible(&arguments, LINE_MAX))
        }
        HookAction::Blocked(_) => "blocked the call".into(),
        HookAction::Asked(decision) => format!("asked, and {}", decided(decision)),
        HookAction::Amended(_) => "amended the result".into(),
        HookAction::Failed(problem) => format!("failed: {}", visible(problem, LINE_MAX)),
    };
    format!("{}: {done}", visible(&record.hook, 80))
}

fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Approved => "the answer was yes".into(),
        Decision::Declined { reason: None } => "the answer was no".into(),
        Decision::Declined { reason: Some(reason) } => {
            format!("the answer was no: {}", visible(reason, LINE_MAX))
        }
        Decision::Unanswered { why } => visible(why, LINE_MAX),
    }
}

/// The first lines of a result, and how many more there are.
pub(crate) fn preview(content: &[Content]) -> Vec<String> {
    let text = text(content);
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: Vec<String> =
        lines.iter().take(RESULT_LINES_MAX).map(|line| visible(line, LINE_MAX)).collect();
    if lines.len() > RESULT_LINES_MAX {
        shown.push(format!("… {} more lines", lines.len() - RESULT_LINES_MAX));
    }
    shown
}

/// A partial result on one line.
pub(crate) fn partial_line(result: &ToolResult) -> String {
    visible(&text(&result.content), LINE_MAX)
}

/// The text of a content, images named.
pub(crate) fn text(content: &[Content]) -> String {
    let one = |block: &Content| match block {
        Content::Text(text) => harmless(text),
        Content::Image(image) => format!("[{}, {} bytes]", image.media_type, image.data.len()),
    };
    content.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}
