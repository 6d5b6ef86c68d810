//! The writing end of a session file: whole lines, one process at a time.
//!
//! A line is confirmed when it has been handed to the operating system with its line feed: it then
//! survives the end of this process, however that comes. [`Writer::sync`] has the system write it
//! to the disk, so that it survives a power cut too.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// A session file that this process, and no other, writes to.
#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    /// Bytes of the lines that were confirmed.
    end: u64,
}

impl Writer {
    /// A new file; it must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = options().create_new(true).open(path)?;
        locked(file).map(|file| Self { file, end: 0 })
    }

    /// An existing file, with what is in it. Kind `WouldBlock` if somebody else writes to it.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = locked(options().open(path)?)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((Self { file, end: bytes.len() as u64 }, bytes))
    }

    /// Cuts what comes after the last whole line.
    pub(super) fn mend(&mut self, whole_bytes: u64) -> io::Result<()> {
        if self.end > whole_bytes {
            self.file.set_len(whole_bytes)?;
            self.end = whole_bytes;
        }
        Ok(())
    }

    /// Appends whole lines. If they cannot be written, what was there before stays as it was.
    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        match self.file.write_all(lines.as_bytes()) {
            Ok(()) => {
                self.end += lines.len() as u64;
                Ok(())
            }
            Err(problem) => {
                // Where not even this works, the next reader cuts the incomplete line.
                let _ = self.file.set_len(self.end);
                Err(problem)
            }
        }
    }

    /// Has the system write everything to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Sessions hold what people and tools said: nobody else may read them.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn locked(file: File) -> io::Result<File> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(problem)) => Err(problem),
    }
}
