//! What is known of components that were allowed on this machine, by their digests: so that an
//! update can be shown as a difference. Only ever shown; nothing is decided by it.

use super::Known;
use std::path::PathBuf;

/// A folder of notes, one for each allowed component.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Option<PathBuf>);

impl Ledger {
    /// The notes in this folder; none are kept without one.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// What is known of a component.
    pub fn find(&self, sha256: &str) -> Option<Known> {
        let text = std::fs::read_to_string(self.note(sha256)?).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Notes what is known. A folder that cannot be written makes the next difference poorer, and
    /// nothing else.
    pub(super) fn keep(&self, sha256: &str, known: &Known) {
        if let (Some(note), Ok(text)) = (self.note(sha256), serde_json::to_string(known)) {
            let folder = note.parent().map_or(Ok(()), std::fs::create_dir_all);
            drop(folder.and_then(|()| std::fs::write(note, text)));
        }
    }

    fn note(&self, sha256: &str) -> Option<PathBuf> {
        let is_digest = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
        let folder = self.0.as_ref().filter(|_| is_digest)?;
        Some(folder.join(format!("{}.json", sha256.to_ascii_lowercase())))
    }
}
