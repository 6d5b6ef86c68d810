//! Where a plugin comes from: a file or bytes, with the digest that was allowed.

use crate::error::LoadError;
use crate::limits::Limits;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Where a plugin comes from.
#[derive(Debug, Clone)]
pub struct PluginSource {
    /// The operator's name of the plugin.
    pub name: String,
    /// The component.
    pub code: Code,
    /// The SHA-256 that was allowed, of the file as it is; none takes any.
    pub sha256: Option<String>,
    /// Whether WebAssembly text is taken as well.
    pub accept_text: bool,
}

/// The component of a plugin.
#[derive(Debug, Clone)]
pub enum Code {
    /// A file to read.
    Path(PathBuf),
    /// Bytes at hand.
    Bytes(Vec<u8>),
}

/// The code of a plugin, opened: nothing of it is read yet if it is a file.
pub(super) enum Opened<'a> {
    File { path: &'a Path, file: File },
    Bytes(&'a [u8]),
}

impl Code {
    pub(super) fn open(&self) -> Result<Opened<'_>, LoadError> {
        let path = match self {
            Self::Bytes(bytes) => return Ok(Opened::Bytes(bytes)),
            Self::Path(path) => path,
        };
        let found = path.metadata().map_err(|error| unreadable(path, error))?;
        // A pipe would wait for its other end, and a device may never end.
        if !found.is_file() {
            let problem = if found.is_dir() { "it is a folder" } else { "it is not a file" };
            return Err(unreadable(path, io::Error::other(problem)));
        }
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        Ok(Opened::File { path, file })
    }
}

impl Opened<'_> {
    pub(super) fn size(&self) -> Result<u64, LoadError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::File { path, file } => {
                file.metadata().map(|found| found.len()).map_err(|error| unreadable(path, error))
            }
        }
    }

    /// The whole code. A file is read up to one byte above the limit, so that one that never ends is
    /// no way to fill the host's memory.
    pub(super) fn read(&mut self, limits: &Limits) -> Result<Vec<u8>, LoadError> {
        let (path, file) = match self {
            Self::Bytes(bytes) => return Ok(bytes.to_vec()),
            Self::File { path, file } => (path, file),
        };
        let mut bytes = Vec::new();
        file.take((limits.component_mib << 20) + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(path, error))?;
        Ok(bytes)
    }
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> LoadError {
    LoadError::Read { path: path.display().to_string(), error }
}
