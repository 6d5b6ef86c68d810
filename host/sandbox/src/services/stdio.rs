//! Standard output and standard error of a call: kept up to a limit, counted beyond, never shown
//! to anybody while the call runs.

use bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Both streams of one call.
pub(crate) struct Stdio {
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

impl Stdio {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { stdout: Captured::new(bytes_max), stderr: Captured::new(bytes_max) }
    }
}

/// The tail of one stream. A panic's message comes last, so the tail is what is worth keeping.
#[derive(Clone)]
pub(crate) struct Captured {
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    tail: Vec<u8>,
    bytes_max: usize,
    bytes: u64,
}

impl Captured {
    fn new(bytes_max: usize) -> Self {
        Self { kept: Arc::new(Mutex::new(Kept { tail: Vec::new(), bytes_max, bytes: 0 })) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        kept.bytes += bytes.len() as u64;
        kept.tail.extend_from_slice(bytes);
        // Twice the limit before it is trimmed, so that many small writes do not copy it each time.
        if kept.tail.len() > 2 * kept.bytes_max {
            let surplus = kept.tail.len() - kept.bytes_max;
            kept.tail.drain(..surplus);
        }
    }

    /// Bytes written, and those of them that were dropped.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let kept = self.lock();
        (kept.bytes, kept.bytes.saturating_sub(kept.bytes_max as u64))
    }

    /// What is kept, as text fit to show; what is no text is replaced. If something was dropped before
    /// it, so many of its first bytes go too: they may be the end of what was cut.
    pub(crate) fn text(&self, end_of_cut: usize) -> String {
        let kept = self.lock();
        let from = match kept.bytes > kept.bytes_max as u64 {
            true => kept.tail.len().saturating_sub(kept.bytes_max) + end_of_cut,
            false => 0,
        };
        let shown = kept.tail.get(from..).unwrap_or_default();
        crate::text::harmless(&String::from_utf8_lossy(shown))
    }
}

impl IsTerminal for Captured {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Captured {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Captured {
    async fn ready(&mut self) {}
}

impl OutputStream for Captured {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // More than any writer has at once; small enough that a guest's claim allocates little.
        Ok(64 << 10)
    }
}

impl AsyncWrite for Captured {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_kept_and_the_rest_counted() {
        let captured = Captured::new(10);
        for _ in 0..100 {
            captured.take(b"abcdefg");
        }
        captured.take(b"\xff last");
        assert_eq!(captured.counts(), (706, 696));
        assert_eq!(captured.text(0), "defg\u{fffd} last");
        assert_eq!(captured.text(3), "g\u{fffd} last");
        assert_eq!(captured.text(300), "");
        let whole = Captured::new(10);
        whole.take(b"whole");
        assert_eq!(whole.text(3), "whole");
    }
}
