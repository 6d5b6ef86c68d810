//! Digests of plugin files, remembered so that a start need not hash what has not changed.

use super::{Cache, age, file_sha256, read_index, write_whole};
use crate::cache::stamp::Stamp;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is remembered of a plugin file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) file: Stamp,
    pub(super) sha256: String,
}

pub(super) const SOURCE: &str = "source";
/// More files than any operator lists; the oldest notes go first.
const SOURCES_MAX: usize = 1_000;
const FORGET_AFTER: Duration = Duration::from_secs(90 * 24 * 3_600);

impl Cache {
    /// The digest of an open plugin file: the remembered one if the file is the one that was hashed,
    /// else that of its content.
    pub(crate) fn digest(&self, path: &Path, file: &mut File) -> io::Result<String> {
        let found = Stamp::of(file)?;
        let path = path.canonicalize()?;
        let note = self.source_path(&path);
        if let Some(known) = read_index::<Source>(&note)
            && known.path == path
            && known.file == found
        {
            return Ok(known.sha256);
        }
        let sha256 = file_sha256(file)?;
        file.rewind()?;
        if found.has_rested() && Stamp::of(file)? == found {
            // If it cannot be written it is hashed again next time.
            let _ = write_whole(
                self.dir(),
                &note,
                &Source { path, file: found, sha256: sha256.clone() },
            );
        }
        Ok(sha256)
    }

    fn source_path(&self, path: &Path) -> PathBuf {
        let name = crate::inspect::sha256_hex(path.as_os_str().as_bytes());
        self.dir.join(format!("{name}.{SOURCE}"))
    }

    pub(super) fn evict_sources(&self) {
        let mut notes: Vec<_> = self.files().filter(|file| file.name.ends_with(SOURCE)).collect();
        notes.sort_by_key(|note| note.modified);
        let surplus = notes.len().saturating_sub(SOURCES_MAX);
        for (place, note) in notes.iter().enumerate() {
            if place < surplus || age(note.modified) > FORGET_AFTER {
                // It is looked at again next time.
                let _ = fs::remove_file(self.dir.join(&note.name));
            }
        }
    }
}
