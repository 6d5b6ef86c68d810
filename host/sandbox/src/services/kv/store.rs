//! The file of a key-value store.
//!
//! The whole store is in memory and written as a whole: it is small by its quota, and a crash
//! leaves either the old file or the new one. Another process may have the same store: each looks
//! whether the file changed, and changes it under a lock.

use super::KeyValueError;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The values of one plugin.
pub(super) struct Store {
    path: Option<PathBuf>,
    quota: usize,
    values: BTreeMap<String, Vec<u8>>,
    /// What the values were read from; none if there is no file.
    stamp: Option<Stamp>,
}

/// What tells one state of a file from another.
#[derive(PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    size: u64,
    /// A new file takes the place of the old one, so that its number changes.
    #[cfg(unix)]
    inode: u64,
}

/// Counted for each entry besides its bytes, so that a million empty values are not free.
const ENTRY_BYTES: usize = 64;
const KEY_BYTES_MAX: usize = 1_024;
const MAGIC: &[u8] = b"cofferdam kv 1\n";
/// Another process holds the lock for one write; one that died holds it no more.
const LOCK_TRIES: u32 = 400;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

impl Store {
    pub(super) fn open(path: Option<PathBuf>, quota: usize) -> Result<Self> {
        let mut store = Self { path, quota, values: BTreeMap::new(), stamp: None };
        store.refresh()?;
        Ok(store)
    }

    /// All values, as the file has them.
    pub(super) fn values(
        &mut self,
    ) -> std::result::Result<&BTreeMap<String, Vec<u8>>, KeyValueError> {
        self.refresh().map_err(|error| failed("read its store", &error))?;
        Ok(&self.values)
    }

    /// Sets or removes one value, whole or not at all.
    pub(super) fn set(
        &mut self,
        key: &str,
        value: Option<Vec<u8>>,
    ) -> std::result::Result<(), KeyValueError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(KeyValueError::Other(format!("a key has 1 to {KEY_BYTES_MAX} bytes")));
        }
        let _lock = self.lock().map_err(|error| failed("lock its store", &error))?;
        self.refresh().map_err(|error| failed("read its store", &error))?;
        if value.as_ref().is_some_and(|value| self.bytes_with(key, value) > self.quota) {
            return Err(KeyValueError::OverQuota);
        }
        let before = match value {
            Some(value) => self.values.insert(key.into(), value),
            None => self.values.remove(key),
        };
        self.save().map_err(|error| {
            match before {
                Some(before) => self.values.insert(key.into(), before),
                None => self.values.remove(key),
            };
            failed("save the value", &error)
        })
    }

    /// What the store would take with this entry.
    fn bytes_with(&self, key: &str, value: &[u8]) -> usize {
        let entry = |key: &str, value: &[u8]| ENTRY_BYTES + key.len() + value.len();
        let others = self.values.iter().filter(|(other, _)| *other != key);
        others.map(|(key, value)| entry(key, value)).sum::<usize>() + entry(key, value)
    }

    /// Reads the file again if it is another one.
    fn refresh(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let stamp = Stamp::of(path)?;
        if stamp == self.stamp {
            return Ok(());
        }
        self.values = match stamp {
            Some(_) => decode(&std::fs::read(path)?).ok_or_else(|| {
                Error::other(format!("{} is not a key-value store", path.display()))
            })?,
            None => BTreeMap::new(),
        };
        self.stamp = stamp;
        Ok(())
    }

    fn save(&mut self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let aside = path.with_extension("new");
        let mut file = private().create(true).truncate(true).open(&aside)?;
        file.write_all(&encode(&self.values))?;
        file.sync_data()?;
        std::fs::rename(&aside, path)?;
        self.stamp = Stamp::of(path)?;
        Ok(())
    }

    /// Held until it is dropped. It lies beside the file, whose place is taken by the next.
    fn lock(&self) -> Result<Option<File>> {
        let Some(path) = &self.path else { return Ok(None) };
        if let Some(folder) = path.parent() {
            create_private(folder)?;
        }
        let file = private().create(true).truncate(false).open(path.with_extension("lock"))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
        Err(Error::new(ErrorKind::TimedOut, "another process holds it"))
    }
}

impl Stamp {
    fn of(path: &Path) -> Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(Some(Self {
                modified: found.modified().ok(),
                size: found.len(),
                #[cfg(unix)]
                inode: std::os::unix::fs::MetadataExt::ino(&found),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The words for a plugin, which learns nothing of the host's paths.
fn failed(what: &str, error: &Error) -> KeyValueError {
    KeyValueError::Other(format!("the host could not {what}: {}", error.kind()))
}

/// Files that only their owner may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_private(folder: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file of length-prefixed keys and values.
fn encode(values: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for (key, value) in values {
        for part in [key.as_bytes(), value] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
    }
    bytes
}

pub(crate) fn decode(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut values = BTreeMap::new();
    while !rest.is_empty() {
        let key = String::from_utf8(part(&mut rest)?).ok()?;
        values.insert(key, part(&mut rest)?);
    }
    Some(values)
}

fn part(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (part, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(part.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(store: &mut Store, key: &str) -> Option<Vec<u8>> {
        store.values().expect("a store").get(key).cloned()
    }

    #[test]
    fn values_outlive_the_store_within_the_quota() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kv/plugin");
        let mut store = Store::open(Some(path.clone()), 200).expect("a new store");
        store.set("a", Some(vec![1; 100])).expect("it fits");
        assert_eq!(store.set("b", Some(vec![2; 100])), Err(KeyValueError::OverQuota));
        store.set("a", Some(vec![3; 135])).expect("it replaces the other");
        assert_eq!(store.set("a", Some(vec![3; 136])), Err(KeyValueError::OverQuota));
        let mut again = Store::open(Some(path.clone()), 200).expect("an old store");
        assert_eq!(get(&mut again, "a"), Some(vec![3; 135]));
        again.set("a", None).expect("removed");
        assert_eq!(get(&mut store, "a"), None, "one sees what the other did");
        std::fs::write(&path, "something else").expect("written");
        assert!(Store::open(Some(path), 200).is_err());
    }

    /// Neither loses what the other wrote, as two processes must not.
    #[test]
    fn two_writers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugin");
        let write = |name: &'static str| {
            let mut store = Store::open(Some(path.clone()), 1 << 20).expect("a store");
            std::thread::spawn(move || {
                for n in 0..20 {
                    store.set(&format!("{name}{n}"), Some(vec![0])).expect("written");
                }
            })
        };
        for writer in [write("a"), write("b")] {
            writer.join().expect("it wrote");
        }
        let mut store = Store::open(Some(path), 1 << 20).expect("a store");
        assert_eq!(store.values().expect("a store").len(), 40);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kv/plugin");
        Store::open(Some(path.clone()), 200)
            .expect("a store")
            .set("a", Some(vec![1]))
            .expect("set");
        for (path, mode) in [(path.as_path(), 0o600), (path.parent().expect("a folder"), 0o700)] {
            let found = std::fs::metadata(path).expect("it is there").permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
    }
}
