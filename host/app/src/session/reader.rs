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
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut texts = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        let first = texts.next().ok_or(NoRecord::Empty)?;
        let first = parse(first).map_err(NoRecord::Foreign)?;
        let header = header(&first)?;
        let mut record = Self {
            header,
            lines: vec![first],
            whole_bytes: whole as u64,
            cut_bytes: (bytes.len() - whole) as u64,
            skipped: Vec::new(),
        };
        for (at, text) in texts.enumerate() {
            match parse(text) {
                Ok(line) => record.lines.push(line),
                Err(problem) => record.skipped.push(Skipped { line: at + 2, problem }),
            }
        }
        Ok(record)
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
