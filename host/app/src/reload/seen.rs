//! What the files looked like when they were last looked at, without reading them.

use crate::config::Config;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The operator's file and the plugins' files, each with what the system says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen(Vec<(PathBuf, Option<Look>)>);

/// When a file was written, how long it is, and which it is: whoever replaces a file makes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    modified: Option<SystemTime>,
    bytes: u64,
    file: u64,
}

impl Seen {
    /// A look at the files of a configuration.
    pub(super) fn of(config: &Config) -> Self {
        let plugins = config.plugins.iter().map(|entry| &entry.path);
        let mut paths: Vec<PathBuf> = [&config.path].into_iter().chain(plugins).cloned().collect();
        paths.sort();
        paths.dedup();
        Self(paths.into_iter().map(|path| (path.clone(), Look::at(&path))).collect())
    }

    /// Another look at the same files.
    pub(super) fn again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), Look::at(path))).collect())
    }

    /// The same, and the files of this configuration that it has not, as they are.
    pub(super) fn with(&self, config: &Config) -> Self {
        let mut files = self.0.clone();
        for (path, look) in Self::of(config).0 {
            if !files.iter().any(|(seen, _)| *seen == path) {
                files.push((path, look));
            }
        }
        Self(files)
    }

    /// The files that look otherwise than before.
    pub(super) fn changed_from(&self, before: &Self) -> Vec<PathBuf> {
        let same = |file: &&(PathBuf, Option<Look>)| !before.0.contains(file);
        self.0.iter().filter(same).map(|(path, _)| path.clone()).collect()
    }
}

impl Look {
    fn at(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        #[cfg(unix)]
        let file = std::os::unix::fs::MetadataExt::ino(&found);
        #[cfg(not(unix))]
        let file = 0;
        Some(Self { modified: found.modified().ok(), bytes: found.len(), file })
    }
}
