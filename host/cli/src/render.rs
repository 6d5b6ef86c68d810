//! How things look: lines for people, JSON for programs.

mod json;
mod lines;

pub(crate) use cofferdam_app::receipt::{summary, table as receipt_table};
pub(crate) use json::JsonLines;
pub(crate) use lines::{Lines, answer, partial_line};

use std::io::{self, Write};

/// Where rendered lines go. A reader that went away ends the output, not the process: what was
/// asked for goes on to its end and its exit code.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Output {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Output {
    /// Writes one line, whole.
    pub(crate) fn line(self, line: &str) {
        let written = match self {
            Output::Out => write(&mut io::stdout().lock(), line),
            Output::Err => write(&mut io::stderr().lock(), line),
        };
        // Nobody reads any more, and there is nobody left to tell.
        drop(written);
    }
}

fn write(to: &mut impl Write, line: &str) -> io::Result<()> {
    to.write_all(line.as_bytes())?;
    to.write_all(b"\n")?;
    to.flush()
}
