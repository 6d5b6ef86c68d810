//! An answer as it streams: whole rows are finished at once, the last one is still growing.

use super::theme::Theme;
use crate::render::fold::{cut, folded};
use cofferdam_agent::message::{AssistantBlock, AssistantMessage};
use cofferdam_sandbox::text::{harmless, tail};
use ratatui::text::Line;
use std::collections::HashMap;

/// Bytes at the end of the model's thinking that are looked at for its last line.
const THOUGHT_BYTES: usize = 400;

/// The answer that is being written.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Bytes of each text block that were taken.
    taken: HashMap<usize, usize>,
    /// The block that was written last, of those with text.
    block: Option<usize>,
    /// What is not finished: a part of a line.
    rest: String,
    /// What the model is at.
    doing: Doing,
}

/// What a model is at.
#[derive(Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Nothing,
    /// The end of what it thinks.
    Thinks(String),
    Answers,
    /// The name of the tool.
    WritesCall(String),
}

impl Answer {
    /// Takes the answer so far; returns the rows that are finished by it.
    pub(super) fn follow(&mut self, message: &AssistantMessage, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for (index, block) in message.content.iter().enumerate() {
            let AssistantBlock::Text(block) = block else { continue };
            let taken = self.taken.entry(index).or_default();
            // A block that was replaced by a shorter one has nothing more to show.
            let text = block.text.get(*taken..).unwrap_or_default();
            if text.is_empty() {
                continue;
            }
            *taken = block.text.len();
            if self.block.replace(index).is_some_and(|before| before != index) {
                rows.extend(self.finish(width));
            }
            self.push(text, width, &mut rows);
        }
        self.doing = match message.content.last() {
            None => Doing::Nothing,
            Some(AssistantBlock::Text(_)) => Doing::Answers,
            Some(AssistantBlock::Thinking(block)) => {
                let end = tail(&block.thinking, THOUGHT_BYTES);
                let line = end.lines().rfind(|line| !line.trim().is_empty());
                Doing::Thinks(line.unwrap_or_default().trim().to_owned())
            }
            Some(AssistantBlock::ToolCall(call)) => Doing::WritesCall(call.name.clone()),
        };
        rows
    }

    /// The answer is complete: returns its last rows, and is ready for another.
    pub(super) fn end(&mut self, message: &AssistantMessage, width: usize) -> Vec<String> {
        let mut rows = self.follow(message, width);
        rows.extend(self.finish(width));
        *self = Self::default();
        rows
    }

    /// What the model is at, in a word or two.
    pub(super) fn doing(&self) -> Option<String> {
        match &self.doing {
            Doing::Nothing => None,
            Doing::Thinks(_) => Some("thinking".into()),
            Doing::Answers => Some("answering".into()),
            Doing::WritesCall(name) => Some(format!("writing a call of {name}")),
        }
    }

    /// The rows that are not finished.
    pub(super) fn live(&self, theme: Theme, width: usize) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        if !self.rest.is_empty() {
            rows.extend(folded(&self.rest, width).iter().map(|row| Line::from((*row).to_owned())));
        }
        if let Doing::Thinks(line) = &self.doing
            && !line.is_empty()
        {
            rows.push(Theme::row(theme.quiet(), cut(&format!("  {}", harmless(line)), width)));
        }
        rows
    }

    fn push(&mut self, text: &str, width: usize, rows: &mut Vec<String>) {
        let mut lines = text.split('\n').peekable();
        while let Some(line) = lines.next() {
            self.rest.push_str(&harmless(line).replace('\t', "    "));
            if lines.peek().is_some() {
                let line = std::mem::take(&mut self.rest);
                rows.extend(folded(&line, width).into_iter().map(str::to_owned));
            }
        }
        // A line that grows at its end changes its last row only.
        let mut grown = folded(&self.rest, width);
        let last = grown.pop().unwrap_or_default().to_owned();
        rows.extend(grown.into_iter().map(str::to_owned));
        self.rest = last;
    }

    fn finish(&mut self, width: usize) -> Vec<String> {
        let rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            return Vec::new();
        }
        folded(&rest, width).into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_agent::message::{TextBlock, ThinkingBlock};

    fn text(text: &str) -> AssistantBlock {
        AssistantBlock::Text(TextBlock { text: text.into(), signature: None })
    }

    fn message(content: Vec<AssistantBlock>) -> AssistantMessage {
        AssistantMessage { content, ..AssistantMessage::pending() }
    }

    #[test]
    fn rows_are_finished_as_they_fill_and_none_twice() {
        let whole = "Two words and\nmore, with a\u{1b}[2J in it.\n\nThe end";
        let mut answer = Answer::default();
        let mut rows = Vec::new();
        for end in 0..whole.len() {
            rows.extend(answer.follow(&message(vec![text(&whole[..end])]), 10));
        }
        rows.extend(answer.end(&message(vec![text(whole)]), 10));
        assert_eq!(
            rows,
            ["Two words", "and", "more, with", "a\\u{1b}[2J", "in it.", "", "The end"]
        );
        assert!(answer.live(Theme::new(crate::render::Paint::Plain), 10).is_empty());
    }

    #[test]
    fn blocks_are_lines_of_their_own_and_what_never_streamed_is_shown_at_the_end() {
        let mut answer = Answer::default();
        assert!(answer.follow(&message(vec![text("one")]), 20).is_empty());
        let both = message(vec![text("one"), text("two")]);
        assert_eq!(answer.follow(&both, 20), ["one"]);
        assert_eq!(answer.end(&both, 20), ["two"]);
        assert_eq!(answer.end(&both, 20), ["one", "two"]);
    }

    #[test]
    fn it_tells_what_the_model_is_at() {
        let mut answer = Answer::default();
        let thinking =
            ThinkingBlock { thinking: "First.\nThen\x07 this".into(), ..Default::default() };
        answer.follow(&message(vec![AssistantBlock::Thinking(thinking)]), 20);
        assert_eq!(answer.doing().as_deref(), Some("thinking"));
        let live = answer.live(Theme::new(crate::render::Paint::Plain), 40);
        assert_eq!(live[0].to_string(), "  Then\\u{7} this");
    }
}
