//! A session in one line, for lists. Of a long file only what is needed is parsed.

use super::SessionError;
use super::format::{Entry, Line};
use super::reader::{self, NoRecord};
use cofferdam_agent::message::{Content, Message};
use std::path::Path;

/// A session in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// When it began: microseconds since 1970.
    pub began_us: u64,
    /// The operator's file that it was begun with.
    pub config: Option<String>,
    /// Messages of the transcript.
    pub messages: usize,
    /// Calls that ended.
    pub calls: usize,
    /// What the person said first, on one line.
    pub title: String,
    /// Whether the last run came to its end.
    pub ended: bool,
}

impl Summary {
    /// The summary of a file.
    pub fn read(path: &Path) -> Result<Self, SessionError> {
        let bytes = std::fs::read(path)
            .map_err(|problem| SessionError::Read { path: path.into(), problem })?;
        Self::of(&bytes).map_err(|problem| SessionError::NoRecord { path: path.into(), problem })
    }

    /// The summary of a file's bytes.
    pub fn of(bytes: &[u8]) -> Result<Self, NoRecord> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|l| l.ends_with(b"\n"));
        let first = lines.next().ok_or(NoRecord::Empty)?;
        let first = parse(first).ok_or_else(|| NoRecord::Foreign("no header".into()))?;
        let Entry::Session(_) = first.entry else {
            return Err(NoRecord::Foreign("its first line is not of the type `session`".into()));
        };
        let mut summary = Self {
            began_us: first.at_us,
            config: None,
            messages: 0,
            calls: 0,
            title: String::new(),
            ended: true,
        };
        for line in lines {
            summary.add(line);
        }
        Ok(summary)
    }

    fn add(&mut self, line: &[u8]) {
        let is = |kind: &str| reader::is(line, kind);
        if is("message\"") {
            self.messages += 1;
            if self.title.is_empty() {
                self.title = parse(line).and_then(|line| title(&line)).unwrap_or_default();
            }
        } else if is("call_end\"") {
            self.calls += 1;
        } else if is("run_start\"") {
            self.ended = false;
        } else if is("run_end\"") {
            self.ended = true;
        } else if is("setup\"")
            && self.config.is_none()
            && let Some(Line { entry: Entry::Setup(setup), .. }) = parse(line)
        {
            self.config = setup.config;
        }
    }
}

fn parse(line: &[u8]) -> Option<Line> {
    Line::parse(std::str::from_utf8(line).ok()?).ok()
}

/// The first words of a message of the user.
fn title(line: &Line) -> Option<String> {
    let Entry::Message(message) = &line.entry else { return None };
    let Message::User(user) = &**message else { return None };
    let text = user.content.iter().find_map(|block| match block {
        Content::Text(text) => Some(text),
        Content::Image(_) => None,
    })?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
