//! Plays one answer as a stream of steps, and ends it where an abort finds it.

use super::answer::{Answer, Block, StreamShape};
use super::{PROVIDER, Steps};
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, StopReason, TextBlock, ThinkingBlock, ToolCall, Usage,
};
use cofferdam_agent::model::Step;
use cofferdam_agent::partial::Partial;
use cofferdam_agent::{AbortSignal, args};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// The error message of an answer that an abort ended.
const ABORTED: &str = "scripted model: request aborted";

/// An answer that an abort found before it began.
pub(super) fn aborted() -> BoxStream<'static, Step> {
    ended(message(Vec::new(), StopReason::Aborted, Some(ABORTED.into())))
}

/// An answer that failed before it began.
pub(super) fn failed(problem: String) -> BoxStream<'static, Step> {
    ended(message(Vec::new(), StopReason::Error, Some(problem)))
}

/// The answer as its script says.
pub(super) fn play(
    answer: Answer,
    steps: Arc<dyn Steps>,
    abort: AbortSignal,
) -> BoxStream<'static, Step> {
    let play = Play { parts: parts(answer).into(), sent: Partial::default(), steps, abort };
    stream::unfold(Some(play), |play| async move { play?.next().await }).boxed()
}

/// What is left to play, and what was sent of it.
struct Play {
    parts: VecDeque<Part>,
    sent: Partial,
    steps: Arc<dyn Steps>,
    abort: AbortSignal,
}

enum Part {
    Do(Value),
    Send(Step),
}

impl Play {
    /// The next step, and what is left after it: nothing after the last.
    async fn next(mut self) -> Option<(Step, Option<Play>)> {
        loop {
            if self.abort.is_cancelled() {
                let sent = std::mem::take(&mut self.sent).into_content();
                return Some((
                    Step::Done(message(sent, StopReason::Aborted, Some(ABORTED.into()))),
                    None,
                ));
            }
            match self.parts.pop_front()? {
                Part::Do(step) => self.steps.clone().run(&step, &self.abort).await,
                Part::Send(step) => {
                    self.sent.fold(&step);
                    let last = matches!(step, Step::Done(_));
                    return Some((step, (!last).then_some(self)));
                }
            }
        }
    }
}

fn ended(message: AssistantMessage) -> BoxStream<'static, Step> {
    stream::iter([Step::Done(message)]).boxed()
}

fn parts(answer: Answer) -> Vec<Part> {
    let mut parts: Vec<Part> = answer.before.iter().cloned().map(Part::Do).collect();
    if let Some(problem) = answer.throw {
        parts.push(Part::Send(Step::Done(message(Vec::new(), StopReason::Error, Some(problem)))));
        return parts;
    }
    let stop_reason = answer.stop_reason();
    let done = AssistantMessage {
        raw_stop_reason: answer.raw_stop_reason,
        usage: Usage {
            input: answer.usage.input_tokens,
            output: answer.usage.output_tokens,
            cache_read: answer.usage.cache_read_tokens,
            cache_write: answer.usage.cache_write_tokens,
        },
        ..message(answer.content.iter().map(block).collect(), stop_reason, answer.error_message)
    };
    if answer.stream != StreamShape::None {
        parts.push(Part::Send(Step::Start));
    }
    parts.extend(answer.after_start.into_iter().map(Part::Do));
    if answer.stream == StreamShape::Deltas {
        let mut chunks = 0;
        for (index, block) in answer.content.iter().enumerate() {
            for step in deltas(index, block) {
                let chunk = is_chunk(&step);
                parts.push(Part::Send(step));
                if chunk {
                    chunks += 1;
                    let due = answer.pauses.iter().filter(|pause| pause.after_chunk == chunks);
                    parts.extend(due.flat_map(|pause| pause.steps.iter().cloned()).map(Part::Do));
                }
            }
        }
    }
    parts.push(Part::Send(Step::Done(done)));
    parts
}

fn is_chunk(step: &Step) -> bool {
    matches!(step, Step::TextDelta { .. } | Step::ThinkingDelta { .. } | Step::ToolCallDelta { .. })
}

fn deltas(index: usize, source: &Block) -> Vec<Step> {
    match source {
        Block::Text { text, chunks, .. } => surround(
            Step::TextStart { index },
            pieces(chunks, text).map(|delta| Step::TextDelta { index, delta }),
            Step::TextEnd { index, text: text.clone() },
        ),
        Block::Thinking { thinking, chunks, .. } => surround(
            Step::ThinkingStart { index },
            pieces(chunks, thinking).map(|delta| Step::ThinkingDelta { index, delta }),
            Step::ThinkingEnd { index, thinking: thinking.clone() },
        ),
        Block::ToolCall { id, name, arguments, arguments_text, chunks, .. } => {
            let text = arguments_text.clone().unwrap_or_else(|| as_text(arguments));
            let AssistantBlock::ToolCall(call) = block(source) else { return Vec::new() };
            surround(
                Step::ToolCallStart { index, id: id.clone(), name: name.clone() },
                pieces(chunks, &text).map(|delta| Step::ToolCallDelta { index, delta }),
                Step::ToolCallEnd { index, call },
            )
        }
    }
}

fn surround(start: Step, middle: impl Iterator<Item = Step>, end: Step) -> Vec<Step> {
    std::iter::once(start).chain(middle).chain([end]).collect()
}

fn pieces(chunks: &Option<Vec<String>>, whole: &str) -> impl Iterator<Item = String> {
    chunks.clone().unwrap_or_else(|| vec![whole.to_owned()]).into_iter()
}

fn block(source: &Block) -> AssistantBlock {
    match source.clone() {
        Block::Text { text, signature, .. } => AssistantBlock::Text(TextBlock { text, signature }),
        Block::Thinking { thinking, signature, redacted, id, .. } => {
            AssistantBlock::Thinking(ThinkingBlock { thinking, signature, redacted, id })
        }
        Block::ToolCall { id, name, arguments, arguments_text, signature, .. } => {
            let (arguments, malformed) = match arguments_text.as_deref().map(args::parse) {
                None => (Arc::new(arguments), None),
                Some(Ok(arguments)) => (arguments, None),
                Some(Err(malformed)) => (Arc::new(arguments), Some(malformed)),
            };
            AssistantBlock::ToolCall(ToolCall { id, name, arguments, malformed, signature })
        }
    }
}

fn as_text(arguments: &Map<String, Value>) -> String {
    Value::Object(arguments.clone()).to_string()
}

fn message(
    content: Vec<AssistantBlock>,
    stop_reason: StopReason,
    error_message: Option<String>,
) -> AssistantMessage {
    AssistantMessage {
        content,
        stop_reason,
        raw_stop_reason: None,
        error_message,
        provider: PROVIDER.into(),
        model: PROVIDER.into(),
        usage: Usage::default(),
    }
}
