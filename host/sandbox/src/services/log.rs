//! Lines for the operator, bounded per call.

use crate::limits::{Limits, kib};
use crate::receipt::Dropping;
use crate::state::State;
use crate::text::visible;
use std::sync::Arc;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something failed.
    Error,
}

/// One line of a plugin's log.
#[derive(Debug, Clone, Copy)]
pub struct LogLine<'a> {
    /// The operator's name of the plugin.
    pub plugin: &'a str,
    /// How much it matters.
    pub level: Level,
    /// The text, on one line and without live escapes.
    pub message: &'a str,
}

/// Where log lines go. Called while the guest waits, so it must not block.
pub type LogSink = Arc<dyn Fn(LogLine<'_>) + Send + Sync>;

/// The log of one call.
pub(crate) struct Log {
    lines_max: u64,
    bytes_max: usize,
    pub(crate) bill: Dropping,
}

impl Log {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            lines_max: limits.log_lines,
            bytes_max: kib(limits.log_kib),
            bill: Dropping::default(),
        }
    }

    /// Whether a line of so many bytes is within the limits.
    fn take(&mut self, bytes: usize) -> bool {
        let fits = self.bill.lines < self.lines_max
            && (self.bill.bytes as usize).saturating_add(bytes) <= self.bytes_max;
        match fits {
            true => {
                self.bill.lines += 1;
                self.bill.bytes += bytes as u64;
            }
            false => {
                self.bill.lines_dropped += 1;
                self.bill.bytes_dropped += bytes as u64;
            }
        }
        fits
    }
}

/// Writes one line.
pub(crate) fn write(state: &mut State, level: Level, message: &str) {
    state.receipt.host_calls.log.add(message.len());
    if !state.log.take(message.len()) {
        return;
    }
    if let Some(sink) = &state.terms.log_sink {
        let message = crate::mask::text(message, &state.terms.secrets);
        let message = visible(&message, message.len());
        sink(LogLine { plugin: &state.terms.plugin, level, message: &message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bytes_are_bounded() {
        let mut log = Log::new(&Limits { log_lines: 3, log_kib: 1, ..Limits::default() });
        assert!(log.take(1_000));
        assert!(!log.take(25), "too many bytes");
        assert!(log.take(24) && log.take(0));
        assert!(!log.take(0), "too many lines");
        assert_eq!((log.bill.lines, log.bill.lines_dropped, log.bill.bytes_dropped), (3, 2, 25));
    }
}
