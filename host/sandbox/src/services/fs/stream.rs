//! Streams of files that count what goes through them, and whose operations run in counted places.

use super::FileMeter;
use crate::blocking::Blocking;
use bytes::Bytes;
use std::fs::File;
use std::io::ErrorKind;
use std::mem;
use std::sync::Arc;
use tokio::runtime::Handle;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;

/// Read ahead for a guest that waits for data and has not said how much it wants.
const READ_AHEAD: usize = 4_096;

/// A stream that reads a file.
pub(super) struct CountedInput {
    state: Reading,
    meter: Arc<FileMeter>,
    blocking: Blocking,
}

enum Reading {
    Idle(DynInputStream),
    /// The stream is with the thread that reads.
    Busy(AbortOnDropJoinHandle<(DynInputStream, StreamResult<Bytes>)>),
    Data(DynInputStream, Bytes),
    Failed(StreamError),
    Closed,
}

impl CountedInput {
    pub(super) fn new(stream: DynInputStream, meter: Arc<FileMeter>, blocking: Blocking) -> Self {
        Self { state: Reading::Idle(stream), meter, blocking }
    }

    fn start(&mut self, size: usize) {
        self.state = match mem::replace(&mut self.state, Reading::Closed) {
            Reading::Idle(mut stream) => Reading::Busy(self.blocking.start(move || {
                let read = Handle::current().block_on(stream.blocking_read(size));
                (stream, read)
            })),
            other => other,
        };
    }

    async fn settle(&mut self) {
        if let Reading::Busy(reading) = &mut self.state {
            self.state = match reading.await {
                (stream, Ok(bytes)) => Reading::Data(stream, bytes),
                (_, Err(StreamError::Closed)) => Reading::Closed,
                (_, Err(error)) => Reading::Failed(error),
            };
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedInput {
    async fn ready(&mut self) {
        self.start(READ_AHEAD);
        self.settle().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for CountedInput {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size > 0 {
            self.start(size);
        }
        match mem::replace(&mut self.state, Reading::Closed) {
            Reading::Data(stream, mut bytes) => {
                let part = bytes.split_to(bytes.len().min(size));
                self.meter.read(part.len());
                self.state = match bytes.is_empty() {
                    true => Reading::Idle(stream),
                    false => Reading::Data(stream, bytes),
                };
                Ok(part)
            }
            Reading::Failed(error) => Err(error),
            Reading::Closed => Err(StreamError::Closed),
            waiting => {
                self.state = waiting;
                Ok(Bytes::new())
            }
        }
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size > 0 {
            self.start(size);
        }
        self.settle().await;
        self.read(size)
    }

    async fn cancel(&mut self) {
        if let Reading::Busy(reading) = mem::replace(&mut self.state, Reading::Closed) {
            reading.cancel().await;
        }
    }
}

/// A stream that writes a file, as long as there is room.
pub(super) struct CountedOutput {
    state: Writing,
    /// Before the first byte that it writes.
    gap: Option<Gap>,
    meter: Arc<FileMeter>,
    blocking: Blocking,
}

enum Writing {
    Idle(DynOutputStream),
    /// The stream is with the thread that writes.
    Busy(AbortOnDropJoinHandle<(DynOutputStream, StreamResult<()>)>),
    Failed(StreamError),
    Closed,
}

/// Where a stream begins to write, perhaps beyond the end of the file. What lies between is as much as if
/// it had been written.
pub(super) struct Gap {
    pub(super) file: Arc<File>,
    pub(super) at: u64,
}

impl Gap {
    /// Counts it. On a thread that may block.
    fn is_within(&self, meter: &FileMeter) -> bool {
        match self.file.metadata() {
            Ok(found) => meter.write(self.at.saturating_sub(found.len())),
            // Writing says what is wrong.
            Err(_) => true,
        }
    }
}

fn full() -> StreamError {
    let full = std::io::Error::new(ErrorKind::StorageFull, "limit file_write_kib");
    StreamError::LastOperationFailed(full.into())
}

impl CountedOutput {
    pub(super) fn new(
        stream: DynOutputStream,
        gap: Option<Gap>,
        meter: Arc<FileMeter>,
        blocking: Blocking,
    ) -> Self {
        Self { state: Writing::Idle(stream), gap, meter, blocking }
    }

    /// The error of the last write, told once; after it the stream is closed.
    fn check(&mut self) -> StreamResult<()> {
        match mem::replace(&mut self.state, Writing::Closed) {
            Writing::Failed(error) => Err(error),
            Writing::Closed => Err(StreamError::Closed),
            fine => {
                self.state = fine;
                Ok(())
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedOutput {
    async fn ready(&mut self) {
        if let Writing::Busy(writing) = &mut self.state {
            self.state = match writing.await {
                (stream, Ok(())) => Writing::Idle(stream),
                (_, Err(error)) => Writing::Failed(error),
            };
        }
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for CountedOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check()?;
        if !self.meter.write(bytes.len() as u64) {
            return Err(full());
        }
        let (gap, meter) = (self.gap.take(), self.meter.clone());
        self.state = match mem::replace(&mut self.state, Writing::Closed) {
            Writing::Idle(mut stream) => Writing::Busy(self.blocking.start(move || {
                if gap.is_some_and(|gap| !gap.is_within(&meter)) {
                    return (stream, Err(full()));
                }
                let written = Handle::current().block_on(stream.blocking_write_and_flush(bytes));
                (stream, written)
            })),
            // The guest was told that there is no room yet.
            busy => {
                self.state = busy;
                return Err(StreamError::trap("a write before the one before it was done"));
            }
        };
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        match &mut self.state {
            Writing::Idle(stream) => {
                let room = stream.check_write()?;
                // Never nothing once the quota is used up, which would read as "wait": the write
                // itself says what is wrong.
                Ok(room.min(usize::try_from(self.meter.room().max(1)).unwrap_or(usize::MAX)))
            }
            _ => Ok(0),
        }
    }

    async fn cancel(&mut self) {
        if let Writing::Busy(writing) = mem::replace(&mut self.state, Writing::Closed) {
            writing.cancel().await;
        }
    }
}
