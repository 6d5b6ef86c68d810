//! What the file system says of a file, to tell whether it is still the one that was hashed.

use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Identity, size, owner, mode and times of a file. The time of the last status change is among
/// them because the owner of a file can set back the time of its last change, and not that one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    pub(crate) owner: u32,
    mode: u32,
    modified_ns: i128,
    changed_ns: i128,
}

impl Stamp {
    /// The stamp of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }

    /// The stamp of what is at this path, a link itself if it is one. Nothing is opened: a pipe
    /// would wait for its other end.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&path.symlink_metadata()?))
    }

    /// Whether it is an ordinary file that only this user can touch.
    pub(crate) fn is_private_file(&self) -> bool {
        const FILE: u32 = 0o100_000;
        const KIND: u32 = 0o170_000;
        self.mode & KIND == FILE && self.mode & 0o077 == 0 && self.owner == user()
    }

    /// Whether it has rested long enough that another change would show: the clocks of file systems
    /// tick coarsely, and a second change within one tick leaves the times as they are.
    pub(crate) fn has_rested(&self) -> bool {
        const REST: Duration = Duration::from_millis(50);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let last = self.modified_ns.max(self.changed_ns);
        i128::try_from(now.as_nanos()).is_ok_and(|now| now - last > REST.as_nanos() as i128)
    }
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            owner: found.uid(),
            mode: found.mode(),
            modified_ns: ns(found.mtime(), found.mtime_nsec()),
            changed_ns: ns(found.ctime(), found.ctime_nsec()),
        }
    }
}

/// The user that this process acts for.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
