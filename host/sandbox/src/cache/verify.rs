//! The whole hash of everything in the folder, for a doctor.

use super::sources::{SOURCE, Source};
use super::{CODE, Cache, INDEX, Index, Stamp, file_sha256, open_existing, read_index};
use serde::Serialize;
use std::path::PathBuf;

/// What a look at every byte of the folder came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CacheReport {
    /// The folder.
    pub dir: PathBuf,
    /// Entries that are intact.
    pub entries: u64,
    /// Bytes of their compiled code.
    pub bytes: u64,
    /// Entries that were not, and were removed, by their keys.
    pub removed: Vec<String>,
    /// Plugin files whose content is not what their unchanged times and size promise: somebody has
    /// changed them in a way that hides it. What was remembered of them is forgotten.
    pub disguised: Vec<PathBuf>,
}

impl Cache {
    /// Hashes every entry and every remembered plugin file. What is not intact is removed.
    pub(crate) fn verify(&self) -> CacheReport {
        let mut report = CacheReport { dir: self.dir.clone(), ..CacheReport::default() };
        let mut names: Vec<String> = self.files().map(|file| file.name).collect();
        names.sort();
        for name in names {
            match name.rsplit_once('.') {
                Some((key, INDEX)) => self.verify_entry(key, &mut report),
                Some((key, CODE)) if !self.index_path(key).exists() => {
                    self.remove(key);
                    report.removed.push(key.into());
                }
                Some((_, SOURCE)) => self.verify_source(&name, &mut report),
                _ => {}
            }
        }
        report
    }

    fn verify_entry(&self, key: &str, report: &mut CacheReport) {
        let intact = read_index::<Index>(&self.index_path(key)).filter(|index| index.key == key);
        let intact = intact.and_then(|index| {
            let mut file = open_existing(&self.code_path(key)).ok()?;
            let found = Stamp::of(&file).ok()?;
            let same = found.is_private_file() && file_sha256(&mut file).ok()? == index.code_sha256;
            same.then_some(found.size)
        });
        match intact {
            Some(size) => {
                report.entries += 1;
                report.bytes += size;
            }
            None => {
                self.remove(key);
                report.removed.push(key.into());
            }
        }
    }

    fn verify_source(&self, name: &str, report: &mut CacheReport) {
        let note = self.dir.join(name);
        let Some(source) = read_index::<Source>(&note) else {
            let _ = std::fs::remove_file(note);
            return;
        };
        let Ok(mut file) = open_existing(&source.path) else { return };
        let unchanged = Stamp::of(&file).is_ok_and(|found| found == source.file);
        if unchanged && file_sha256(&mut file).is_ok_and(|found| found != source.sha256) {
            let _ = std::fs::remove_file(note);
            report.disguised.push(source.path);
        }
    }
}
