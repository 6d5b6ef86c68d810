//! Streams of files that count what goes through them.

use super::FileMeter;
use bytes::Bytes;
use std::io::ErrorKind;
use std::sync::Arc;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

/// A stream that reads a file.
pub(super) struct CountedInput {
    stream: DynInputStream,
    meter: Arc<FileMeter>,
}

impl CountedInput {
    pub(super) fn new(stream: DynInputStream, meter: Arc<FileMeter>) -> Self {
        Self { stream, meter }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedInput {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl InputStream for CountedInput {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.stream.read(size)?;
        self.meter.read(bytes.len());
        Ok(bytes)
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

/// A stream that writes a file, as long as there is room.
pub(super) struct CountedOutput {
    stream: DynOutputStream,
    meter: Arc<FileMeter>,
}

impl CountedOutput {
    pub(super) fn new(stream: DynOutputStream, meter: Arc<FileMeter>) -> Self {
        Self { stream, meter }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedOutput {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for CountedOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !self.meter.write(bytes.len() as u64) {
            let full = std::io::Error::new(ErrorKind::StorageFull, "limit file_write_kib");
            return Err(StreamError::LastOperationFailed(full.into()));
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let room = self.stream.check_write()?;
        // Never nothing once the quota is used up, which would read as "wait": the write itself
        // says what is wrong.
        Ok(room.min(usize::try_from(self.meter.room().max(1)).unwrap_or(usize::MAX)))
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}
