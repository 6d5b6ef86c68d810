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

/// The bytes of a component's file, for looking at it. What is no ordinary file is refused, and what is
/// larger than `limits.component_mib` can be: a pipe would wait for its other end, and a device may
/// never end.
pub fn read_component(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ordinary_file(path)?.take(COMPONENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > COMPONENT_BYTES_MAX {
        true => {
            Err(io::Error::other(format!("it has more than {} MiB", COMPONENT_BYTES_MAX >> 20)))
        }
        false => Ok(bytes),
    }
}

/// The most that `limits.component_mib` can be.
const COMPONENT_BYTES_MAX: u64 = 1_024 << 20;

fn ordinary_file(path: &Path) -> io::Result<File> {
    let found = path.metadata()?;
    if !found.is_file() {
        let problem = if found.is_dir() { "it is a folder" } else { "it is not a file" };
        return Err(io::Error::other(problem));
    }
    File::open(path)
}

impl Code {
    pub(super) fn open(&self) -> Result<Opened<'_>, LoadError> {
        match self {
            Self::Bytes(bytes) => Ok(Opened::Bytes(bytes)),
            Self::Path(path) => {
                let file = ordinary_file(path).map_err(|error| unreadable(path, error))?;
                Ok(Opened::File { path, file })
            }
        }
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

#[cfg(test)]
mod tests {
    use super::read_component;
    use std::path::Path;

    #[test]
    fn what_never_ends_is_not_read() {
        for path in ["/dev/zero", "/", "/proc/self/no-such-file"] {
            assert!(read_component(Path::new(path)).is_err(), "{path}");
        }
        assert!(read_component(Path::new(env!("CARGO_MANIFEST_PATH"))).is_ok());
    }
}
