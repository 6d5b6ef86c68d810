//! A session file read back: bytes in, lines out. Whatever a crash left behind is read as far as it
//! goes: a last line without its line feed was never confirmed and is cut; a line that cannot be
//! read is skipped and reported.

use super::format::{Entry, Header, Line, Setup, VERSION};
use cofferdam_agent::message::Message;
use std::sync::Arc;

/// What a session file says.
#[derive(Debug, Clone)]
pub struct Record {
    /// The first line.
    pub header: Header,
    /// All lines that can be read, the first included.
    pub lines: Vec<Line>,
    /// Bytes of the whole lines.
    pub whole_bytes: u64,
    /// Bytes of a last line that has no end.
    pub cut_bytes: u64,
    /// Lines that cannot be read.
    pub skipped: Vec<Skipped>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Counted from 1.
    pub line: usize,
    /// Why.
    pub problem: String,
}

/// A file that is no session that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRecord {
    /// Nothing was confirmed before its writer ended.
    #[error("nothing was recorded in it")]
    Empty,
    /// It is something else.
    #[error("it is no session file: {0}")]
    Foreign(String),
    /// A later Cofferdam wrote it.
    #[error("its format is version {found}, and this cofferdam reads up to version {VERSION}")]
    Later {
        /// The version of the file.
        found: u64,
    },
}

impl Record {
    /// Reads the bytes of a session file.
    pub fn read(bytes: &[u8]) -> Result<Self, NoRecord> {
        let (mut record, lines) = Self::begin(bytes)?;
        for (number, text) in lines {
            record.add(number, text);
        }
        Ok(record)
    }

    /// Reads what a run needs to go on: of the calls only those of the last answer. That is half
    /// the work, and a long session is waited for.
    pub fn read_to_go_on(bytes: &[u8]) -> Result<Self, NoRecord> {
        let (mut record, lines) = Self::begin(bytes)?;
        let mut calls = Vec::new();
        for (number, text) in lines {
            if is(text, "call_") {
                calls.push((number, text));
                continue;
            }
            // A line that cannot be read is no answer, even if it comes after one.
            if record.add(number, text) && record.ends_with_answer() {
                calls.clear();
            }
        }
        for (number, text) in calls {
            record.add(number, text);
        }
        Ok(record)
    }

    /// The record with its first line, and the lines that follow with their numbers.
    fn begin(bytes: &[u8]) -> Result<(Self, impl Iterator<Item = (usize, &[u8])>), NoRecord> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut texts = (1..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n'));
        let (_, first) = texts.next().ok_or(NoRecord::Empty)?;
        let first = parse(first).map_err(NoRecord::Foreign)?;
        let record = Self {
            header: header(&first)?,
            lines: vec![first],
            whole_bytes: whole as u64,
            cut_bytes: (bytes.len() - whole) as u64,
            skipped: Vec::new(),
        };
        Ok((record, texts))
    }

    /// Whether the line can be read.
    fn add(&mut self, line: usize, text: &[u8]) -> bool {
        match parse(text) {
            Ok(line) => self.lines.push(line),
            Err(problem) => {
                self.skipped.push(Skipped { line, problem });
                return false;
            }
        }
        true
    }

    fn ends_with_answer(&self) -> bool {
        let last = self.lines.last().map(|line| &line.entry);
        matches!(last, Some(Entry::Message(message)) if message.as_assistant().is_some())
    }

    /// The messages in transcript order.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.lines.iter().filter_map(|line| match &line.entry {
            Entry::Message(message) => Some(message),
            _ => None,
        })
    }

    /// What the last runs were made of.
    pub fn last_setup(&self) -> Option<&Setup> {
        self.lines.iter().rev().find_map(|line| match &line.entry {
            Entry::Setup(setup) => Some(&**setup),
            _ => None,
        })
    }
}

/// Whether a line as this program writes it is of a type that begins so.
pub(super) fn is(line: &[u8], kind: &str) -> bool {
    line.strip_prefix(br#"{"type":""#).is_some_and(|rest| rest.starts_with(kind.as_bytes()))
}

fn parse(text: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(text).map_err(|problem| problem.to_string())?;
    Line::parse(text).map_err(|problem| problem.to_string())
}

fn header(line: &Line) -> Result<Header, NoRecord> {
    match &line.entry {
        Entry::Session(header) if header.version <= VERSION => Ok(header.clone()),
        Entry::Session(header) => Err(NoRecord::Later { found: header.version }),
        _ => Err(NoRecord::Foreign("its first line is not of the type `session`".into())),
    }
}
