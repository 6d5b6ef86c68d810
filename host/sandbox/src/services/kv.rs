//! Small values that outlive calls, per plugin, within a quota, in one file.
//!
//! The whole store is in memory and written as a whole: it is small by its quota, and a crash
//! leaves either the old file or the new one.

use crate::state::State;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a value could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyValueError {
    Denied,
    OverQuota,
    Other(String),
}

/// The store of one plugin. Shared by its calls.
#[derive(Debug)]
pub(crate) struct KeyValue {
    /// None keeps the values for the life of the process only.
    path: Option<PathBuf>,
    quota: usize,
    values: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// Counted for each entry besides its bytes, so that a million empty values are not free.
const ENTRY_BYTES: usize = 64;
const KEY_BYTES_MAX: usize = 1_024;
const KEYS_MAX: usize = 1_000;
const MAGIC: &[u8] = b"cofferdam kv 1\n";

impl KeyValue {
    /// Opens the store at `path`. A file that is no store is an error: it is not overwritten.
    pub(crate) fn open(path: Option<PathBuf>, quota: usize) -> std::io::Result<Self> {
        let values = match &path {
            Some(path) => match std::fs::read(path) {
                Ok(bytes) => decode(&bytes).ok_or_else(|| {
                    std::io::Error::other(format!("{} is not a key-value store", path.display()))
                })?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
                Err(error) => return Err(error),
            },
            None => BTreeMap::new(),
        };
        Ok(Self { path, quota, values: Mutex::new(values) })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, key: &str, value: Option<Vec<u8>>) -> Result<(), KeyValueError> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(KeyValueError::Other(format!("a key has 1 to {KEY_BYTES_MAX} bytes")));
        }
        let mut values = self.lock();
        let entry = |value: &Vec<u8>| ENTRY_BYTES + key.len() + value.len();
        let used: usize =
            values.iter().map(|(key, value)| ENTRY_BYTES + key.len() + value.len()).sum();
        let freed = values.get(key).map_or(0, entry);
        if let Some(value) = &value
            && (used - freed).saturating_add(entry(value)) > self.quota
        {
            return Err(KeyValueError::OverQuota);
        }
        let before = match value {
            Some(value) => values.insert(key.into(), value),
            None => values.remove(key),
        };
        if let Err(error) = self.save(&values) {
            // Whole or not at all.
            match before {
                Some(before) => values.insert(key.into(), before),
                None => values.remove(key),
            };
            return Err(KeyValueError::Other(format!(
                "the host could not save the value: {}",
                error.kind()
            )));
        }
        Ok(())
    }

    fn save(&self, values: &BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let aside = path.with_extension(format!("new-{}", std::process::id()));
        let mut file = std::fs::File::create(&aside)?;
        file.write_all(&encode(values))?;
        file.sync_data()?;
        std::fs::rename(&aside, path)
    }
}

/// The value of this key.
pub(crate) fn read(state: &mut State, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
    let value = store(state)?.lock().get(key).cloned();
    state.receipt.host_calls.key_value.add(value.as_ref().map_or(0, Vec::len));
    Ok(value)
}

/// Sets the value of this key.
pub(crate) fn write(state: &mut State, key: &str, value: Vec<u8>) -> Result<(), KeyValueError> {
    let store = store(state)?;
    state.receipt.host_calls.key_value.add(value.len());
    store.set(key, Some(crate::mask::bytes(value, &state.terms.secrets)))
}

/// Removes this key.
pub(crate) fn remove(state: &mut State, key: &str) -> Result<(), KeyValueError> {
    let store = store(state)?;
    state.receipt.host_calls.key_value.add(0);
    store.set(key, None)
}

/// Keys with this prefix, after that one.
pub(crate) fn keys(
    state: &mut State,
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<String>, KeyValueError> {
    let store = store(state)?;
    let limit = usize::try_from(limit).unwrap_or(KEYS_MAX).min(KEYS_MAX);
    let keys: Vec<String> = store
        .lock()
        .range(prefix.to_owned()..)
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(prefix))
        .filter(|key| after.is_none_or(|after| key.as_str() > after))
        .take(limit)
        .cloned()
        .collect();
    state.receipt.host_calls.key_value.add(keys.iter().map(String::len).sum());
    Ok(keys)
}

fn store(state: &mut State) -> Result<std::sync::Arc<KeyValue>, KeyValueError> {
    match state.key_value() {
        Some(store) => Ok(store.clone()),
        None => {
            state
                .receipt
                .refuse("the key-value store is not granted; to allow it: grants.kv = true".into());
            Err(KeyValueError::Denied)
        }
    }
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

fn decode(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
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

    #[test]
    fn values_outlive_the_store_within_the_quota() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kv/plugin");
        let store = KeyValue::open(Some(path.clone()), 200).expect("a new store");
        store.set("a", Some(vec![1; 100])).expect("it fits");
        assert_eq!(store.set("b", Some(vec![2; 100])), Err(KeyValueError::OverQuota));
        store.set("a", Some(vec![3; 120])).expect("it replaces the other");
        let again = KeyValue::open(Some(path.clone()), 200).expect("an old store");
        assert_eq!(again.lock().get("a"), Some(&vec![3; 120]));
        again.set("a", None).expect("removed");
        assert!(KeyValue::open(Some(path.clone()), 200).expect("an empty store").lock().is_empty());
        std::fs::write(&path, "something else").expect("written");
        assert!(KeyValue::open(Some(path), 200).is_err());
    }
}
