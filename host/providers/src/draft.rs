//! The answer under construction: what a wire's decoder writes into, and what makes the steps of
//! the stream and the final message out of it.
//!
//! Nothing here knows a wire. What all wires have in common is decided here: a natural end with a
//! call is `tool_use`, arguments of a natural end parse strictly or are an argument error, those of
//! any other end are a salvage for eyes only, and no two calls of a transcript share an id.

use crate::ids::MADE_PREFIX;
use crate::mask::Mask;
use cofferdam_agent::args;
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, MalformedArguments, Message, StopReason,
    TextBlock, ThinkingBlock, ToolCall, Usage,
};
use cofferdam_agent::model::Step;
use cofferdam_agent::preview::Preview;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// What a decoder found to be the end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) stop: Stop,
    /// The wire's own word.
    pub(crate) raw: Option<String>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The model was done, or waits for its tools.
    Natural,
    /// The output limit cut it.
    Length,
    /// It failed, with this text.
    Failed(String),
    /// The run was aborted.
    Aborted,
}

/// The blocks so far.
#[derive(Default)]
pub(crate) struct Draft {
    blocks: Vec<Block>,
    steps: VecDeque<Step>,
    started: bool,
    finished: bool,
    ids: Ids,
    /// Ids that hold the credential are replaced.
    pub(crate) mask: Mask,
    /// Tokens spent, as far as the provider told.
    pub(crate) usage: Usage,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    /// Text, thinking, or the text of arguments.
    text: String,
    /// The text of arguments, unless they come in pieces.
    whole: String,
    signature: Option<String>,
    ended: bool,
}

#[derive(Debug)]
enum Kind {
    Text,
    Thinking { redacted: bool, id: Option<String> },
    Call { id: String, made: bool, name: String, broken: Option<String> },
}

/// The ids of a transcript's calls, so that no new call gets one of them.
#[derive(Debug, Default)]
struct Ids {
    taken: HashSet<String>,
    made: usize,
}

impl Draft {
    /// An empty answer to these messages.
    pub(crate) fn new(messages: &[Arc<Message>]) -> Self {
        let answers = messages.iter().filter_map(|message| message.as_assistant());
        let taken = answers.flat_map(AssistantMessage::tool_calls).map(|call| call.id.clone());
        Self { ids: Ids { taken: taken.collect(), made: 0 }, ..Self::default() }
    }

    /// The provider began to answer.
    pub(crate) fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.steps.push_back(Step::Start);
        }
    }

    /// The next step that nobody has seen yet.
    pub(crate) fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Whether there is no block yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Begins a text.
    pub(crate) fn text(&mut self) -> usize {
        let index = self.add(Kind::Text);
        self.steps.push_back(Step::TextStart { index });
        index
    }

    /// Begins a piece of reasoning.
    pub(crate) fn thinking(&mut self) -> usize {
        let index = self.add(Kind::Thinking { redacted: false, id: None });
        self.steps.push_back(Step::ThinkingStart { index });
        index
    }

    /// Begins a call. An id that is empty or taken is replaced.
    pub(crate) fn call(&mut self, id: &str, name: &str) -> usize {
        let (id, made) = self.claim(id);
        let index = self.add(Kind::Call { id: id.clone(), made, name: name.into(), broken: None });
        self.steps.push_back(Step::ToolCallStart { index, id, name: name.into() });
        index
    }

    /// More of a block.
    pub(crate) fn push(&mut self, index: usize, delta: &str) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        if delta.is_empty() || block.ended {
            return;
        }
        block.text.push_str(delta);
        let delta = delta.to_owned();
        self.steps.push_back(match block.kind {
            Kind::Text => Step::TextDelta { index, delta },
            Kind::Thinking { .. } => Step::ThinkingDelta { index, delta },
            Kind::Call { .. } => Step::ToolCallDelta { index, delta },
        });
    }

    /// The whole of a block, which wins over what came in pieces.
    pub(crate) fn settle(&mut self, index: usize, whole: &str) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        match whole.strip_prefix(block.text.as_str()).map(str::to_owned) {
            Some(rest) => self.push(index, &rest),
            None => block.text = whole.into(),
        }
    }

    /// Arguments that came whole where a call began. Pieces win over them: an empty object may
    /// stand in their place.
    pub(crate) fn preset(&mut self, index: usize, whole: &Value) {
        let whole = arguments_text(whole);
        let says_nothing = arguments(&whole).is_ok_and(|fields| fields.is_empty());
        if let (Some(block), false) = (self.blocks.get_mut(index), says_nothing) {
            block.whole = whole;
        }
    }

    /// The text of a block so far.
    pub(crate) fn text_of(&self, index: usize) -> &str {
        self.blocks.get(index).map_or("", |block| &block.text)
    }

    /// More of a block's signature.
    pub(crate) fn sign(&mut self, index: usize, signature: &str) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        block.signature.get_or_insert_default().push_str(signature);
    }

    /// Marks a piece of reasoning as one that the provider keeps to itself.
    pub(crate) fn redact(&mut self, index: usize) {
        if let Some(Block { kind: Kind::Thinking { redacted, .. }, .. }) =
            self.blocks.get_mut(index)
        {
            *redacted = true;
        }
    }

    /// The provider's id of a piece of reasoning, or of a call that had none so far.
    pub(crate) fn identify(&mut self, index: usize, new: &str) {
        if new.is_empty() || self.mask.is_in(new) {
            return;
        }
        match self.blocks.get_mut(index).map(|block| &mut block.kind) {
            Some(Kind::Thinking { id, .. }) => *id = Some(new.into()),
            Some(Kind::Call { id, made: made @ true, .. }) => (*id, *made) = self.ids.claim(new),
            _ => {}
        }
    }

    /// The name of a call that had none so far.
    pub(crate) fn name(&mut self, index: usize, new: &str) {
        if let Some(Block { kind: Kind::Call { name, .. }, .. }) = self.blocks.get_mut(index)
            && name.is_empty()
        {
            *name = new.into();
        }
    }

    /// Marks a call whose arguments the provider never finished: it is not run even if they parse.
    pub(crate) fn break_call(&mut self, index: usize, problem: &str) {
        if let Some(Block { kind: Kind::Call { broken, .. }, .. }) = self.blocks.get_mut(index) {
            *broken = Some(problem.into());
        }
    }

    /// Ends a block.
    pub(crate) fn end(&mut self, index: usize) {
        if let Some(block) = self.blocks.get_mut(index)
            && block.text.is_empty()
        {
            let whole = std::mem::take(&mut block.whole);
            self.push(index, &whole);
        }
        let Some(block) = self.blocks.get_mut(index) else { return };
        if std::mem::replace(&mut block.ended, true) {
            return;
        }
        self.steps.push_back(match block.finished(&Stop::Natural) {
            AssistantBlock::Text(done) => Step::TextEnd { index, text: done.text },
            AssistantBlock::Thinking(done) => Step::ThinkingEnd { index, thinking: done.thinking },
            AssistantBlock::ToolCall(call) => Step::ToolCallEnd { index, call },
        });
    }

    /// Whether the last step is among the steps, or was.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The final message. Blocks that are open are ended, save where the answer failed.
    pub(crate) fn finish(&mut self, ending: Ending, provider: &str, model: &str) {
        let Ending { stop, raw } = ending;
        self.finished = true;
        match stop {
            Stop::Natural | Stop::Length => {
                self.start();
                (0..self.blocks.len()).for_each(|index| self.end(index));
            }
            // What nobody has seen yet is in the message.
            Stop::Aborted => self.steps.clear(),
            Stop::Failed(_) => {}
        }
        let content: Vec<_> = self.blocks.iter().map(|block| block.finished(&stop)).collect();
        let calls = content.iter().any(|block| matches!(block, AssistantBlock::ToolCall(_)));
        let (stop_reason, error_message) = match stop {
            Stop::Natural if calls => (StopReason::ToolUse, None),
            Stop::Natural => (StopReason::Stop, None),
            Stop::Length => (StopReason::Length, None),
            Stop::Failed(problem) => (StopReason::Error, Some(problem)),
            Stop::Aborted => (StopReason::Aborted, Some("the request was aborted".into())),
        };
        self.steps.push_back(Step::Done(AssistantMessage {
            content,
            stop_reason,
            raw_stop_reason: raw,
            error_message,
            provider: provider.into(),
            model: model.into(),
            usage: self.usage,
        }));
    }

    fn add(&mut self, kind: Kind) -> usize {
        self.start();
        self.blocks.push(Block {
            kind,
            text: String::new(),
            whole: String::new(),
            signature: None,
            ended: false,
        });
        self.blocks.len() - 1
    }

    fn claim(&mut self, id: &str) -> (String, bool) {
        self.ids.claim(if self.mask.is_in(id) { "" } else { id })
    }
}

impl Block {
    fn finished(&self, stop: &Stop) -> AssistantBlock {
        let text = if self.text.is_empty() { &self.whole } else { &self.text };
        let (text, signature) = (text.clone(), self.signature.clone());
        match &self.kind {
            Kind::Text => AssistantBlock::Text(TextBlock { text, signature }),
            Kind::Thinking { redacted, id } => AssistantBlock::Thinking(ThinkingBlock {
                thinking: text,
                signature,
                redacted: *redacted,
                id: id.clone(),
            }),
            Kind::Call { id, name, broken, .. } => {
                let (arguments, malformed) = match (arguments(&text), broken) {
                    (Ok(arguments), None) => (arguments, None),
                    (Err(malformed), _) => (salvage(&text, stop), Some(malformed)),
                    (Ok(_), Some(problem)) => (
                        salvage(&text, stop),
                        Some(MalformedArguments { problem: problem.clone(), text }),
                    ),
                };
                AssistantBlock::ToolCall(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments,
                    malformed,
                    signature,
                })
            }
        }
    }
}

/// The arguments of a complete text: `null` and nothing at all mean none.
pub(crate) fn arguments(text: &str) -> Result<Arguments, MalformedArguments> {
    if text.trim() == "null" { Ok(Arguments::default()) } else { args::parse(text) }
}

/// The text of arguments as a server gave them: as a text, or as a value in its place.
pub(crate) fn arguments_text(given: &Value) -> String {
    match given {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What can be told of arguments that were cut. Shown and stored, never run: the message's stop
/// reason is not a natural one.
fn salvage(text: &str, stop: &Stop) -> Arguments {
    match stop {
        Stop::Natural => Arguments::default(),
        _ => Preview::default().push(text).unwrap_or_default(),
    }
}

impl Ids {
    /// The id itself if it may be used, else one of our own and `true`.
    fn claim(&mut self, id: &str) -> (String, bool) {
        if !id.is_empty() && self.taken.insert(id.to_owned()) {
            return (id.to_owned(), false);
        }
        loop {
            self.made += 1;
            let made = format!("{MADE_PREFIX}{}", self.made);
            if self.taken.insert(made.clone()) {
                return (made, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finished(mut draft: Draft, stop: Stop) -> AssistantMessage {
        draft.finish(Ending { stop, raw: None }, "p", "m");
        while let Some(step) = draft.next_step() {
            if let Step::Done(message) = step {
                return message;
            }
        }
        panic!("no last step")
    }

    fn call(text: &str, stop: Stop) -> ToolCall {
        let mut draft = Draft::default();
        let index = draft.call("a", "f");
        draft.push(index, text);
        finished(draft, stop).tool_calls().next().unwrap().clone()
    }

    #[test]
    fn arguments_of_a_natural_end_parse_or_are_an_error_with_the_raw_text() {
        for text in ["", " ", "null", "{}"] {
            let call = call(text, Stop::Natural);
            assert_eq!((json!(*call.arguments), call.malformed), (json!({}), None), "{text}");
        }
        for text in ["{\"x\":48151", "{\"a\":1}{\"b\":2}", "[1]", "\"{}\"", "{\"a\":\"\\ud800\"}"] {
            let call = call(text, Stop::Natural);
            assert!(call.arguments.is_empty(), "{text}");
            assert_eq!(call.malformed.unwrap().text, text);
        }
    }

    #[test]
    fn a_cut_call_shows_its_salvage_and_stays_marked() {
        for stop in [Stop::Length, Stop::Failed("x".into()), Stop::Aborted] {
            let call = call("{\"x\":48151", stop);
            assert_eq!(json!(*call.arguments), json!({"x": 48151}));
            assert!(call.malformed.is_some());
        }
    }

    #[test]
    fn ids_are_unique_in_the_whole_transcript() {
        let old = Message::Assistant(AssistantMessage {
            content: vec![AssistantBlock::ToolCall(ToolCall::from_text("a", "f", ""))],
            ..AssistantMessage::pending()
        });
        let mut draft = Draft::new(&[Arc::new(old)]);
        for id in ["a", "b", "b", ""] {
            draft.call(id, "f");
        }
        let message = finished(draft, Stop::Natural);
        let ids: HashSet<_> = message.tool_calls().map(|call| call.id.clone()).collect();
        assert_eq!(ids.len(), 4);
        assert!(ids.contains("b") && !ids.contains("a") && !ids.contains(""), "{ids:?}");
    }

    #[test]
    fn what_is_whole_wins_over_the_pieces() {
        let mut draft = Draft::default();
        let (lost, fine) = (draft.text(), draft.text());
        draft.push(lost, "Hlo");
        draft.push(fine, "Hel");
        draft.settle(lost, "Hello");
        draft.settle(fine, "Hello");
        let message = finished(draft, Stop::Natural);
        let text = AssistantBlock::Text(TextBlock { text: "Hello".into(), signature: None });
        assert_eq!(message.content, [text.clone(), text]);
    }
}
