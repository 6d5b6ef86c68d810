//! Trees in a fixed order: names sorted, a directory before what is in it, links not followed, so
//! that the same tree gives the same answer and no link makes a circle.

use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use globset::GlobSet;

/// One thing in a tree.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    /// The path below the start of the walk, with `/` between names.
    pub(crate) relative: String,
    pub(crate) kind: FileType,
}

/// All entries below a directory, down to a depth; 1 is the directory alone.
pub(crate) struct Walk<'a> {
    skip: &'a GlobSet,
    depth_max: usize,
    // What is still to come, last first.
    pending: Vec<(Entry, usize)>,
    /// Directories that could not be read.
    pub(crate) unreadable: usize,
}

impl<'a> Walk<'a> {
    /// Fails if the start itself cannot be read.
    pub(crate) fn new(start: &Path, skip: &'a GlobSet, depth_max: usize) -> io::Result<Self> {
        let mut walk = Self { skip, depth_max, pending: Vec::new(), unreadable: 0 };
        walk.push(start, "", 1)?;
        Ok(walk)
    }

    fn push(&mut self, directory: &Path, relative: &str, depth: usize) -> io::Result<()> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = if relative.is_empty() { name } else { format!("{relative}/{name}") };
            if !self.skip.is_match(&relative) {
                entries.push((
                    Entry { path: entry.path(), relative, kind: entry.file_type()? },
                    depth,
                ));
            }
        }
        entries.sort_by(|(a, _), (b, _)| b.relative.cmp(&a.relative));
        self.pending.extend(entries);
        Ok(())
    }
}

impl Iterator for Walk<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let (entry, depth) = self.pending.pop()?;
        if entry.kind.is_dir() && depth < self.depth_max {
            let read = self.push(&entry.path, &entry.relative, depth + 1);
            self.unreadable += usize::from(read.is_err());
        }
        Some(entry)
    }
}
