//! Lines of input, bounded: one that is too long is skipped whole and reported, and takes no memory.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Bytes of one line.
pub(super) const LINE_MAX: usize = 4 * 1024 * 1024;

/// What was read.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A line without its end; the last one of the input may lack it.
    Whole(Vec<u8>),
    /// A line that was longer than [`LINE_MAX`].
    TooLong,
}

/// Reads lines.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// The rest of the line is skipped.
    skipping: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: Vec::new(), skipping: false }
    }

    /// The next line; none at the end of input. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let rest = self.take();
                return Ok((rest != Line::Whole(Vec::new())).then_some(rest));
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            if self.skipping || self.line.len() + part.len() > LINE_MAX {
                self.skipping = true;
                self.line.clear();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(part.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        match std::mem::take(&mut self.skipping) {
            true => Line::TooLong,
            false => Line::Whole(std::mem::take(&mut self.line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_end_where_they_end() {
        let long = "x".repeat(LINE_MAX + 1);
        let text = format!("one\r\n\n{long}\n{}\nlast", "y".repeat(LINE_MAX));
        let mut lines = Lines::new(text.as_bytes());
        let whole = |text: &str| Some(Line::Whole(text.into()));
        assert_eq!(lines.next().await.unwrap(), whole("one\r"));
        assert_eq!(lines.next().await.unwrap(), whole(""));
        assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
        assert_eq!(lines.next().await.unwrap(), whole(&"y".repeat(LINE_MAX)));
        assert_eq!(lines.next().await.unwrap(), whole("last"));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
