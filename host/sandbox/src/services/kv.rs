//! Small values that outlive calls, per plugin, within a quota.
//!
//! What waits for a disk waits off the threads that run guests, one operation of a store at a time.

mod store;

use crate::blocking::Blocking;
use crate::mask;
use crate::state::State;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::PathBuf;
use std::sync::Arc;
use store::Store;
#[cfg(feature = "testing")]
pub(crate) use store::decode;
use tokio::sync::Mutex;

/// Why a value could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyValueError {
    Denied,
    OverQuota,
    Other(String),
}

/// The store of one plugin. Shared by its calls.
pub(crate) struct KeyValue {
    store: Arc<Mutex<Store>>,
}

/// Keys that one question gets.
const KEYS_MAX: usize = 1_000;

impl KeyValue {
    /// Opens the store at `path`; none keeps the values for the life of the process only. A file
    /// that is no store is an error: it is not overwritten.
    pub(crate) fn open(path: Option<PathBuf>, quota: usize) -> std::io::Result<Self> {
        Ok(Self { store: Arc::new(Mutex::new(Store::open(path, quota)?)) })
    }

    /// Does something with the store on a thread that may block, in a place for file operations.
    /// Once begun it goes on to its end, even if the guest that asked is gone.
    async fn with<T: Send + 'static>(
        &self,
        places: &Blocking,
        work: impl FnOnce(&mut Store) -> Result<T, KeyValueError> + Send + 'static,
    ) -> Result<T, KeyValueError> {
        let mut store = self.store.clone().lock_owned().await;
        places.start(move || work(&mut store)).await
    }
}

/// The value of this key.
pub(crate) async fn read(state: &mut State, key: String) -> Result<Option<Vec<u8>>, KeyValueError> {
    let ((store, places), key) = (granted(state)?, masked(state, &key));
    let value = store.with(&places, move |store| Ok(store.values()?.get(&key).cloned())).await?;
    state.receipt.host_calls.key_value.add(value.as_ref().map_or(0, Vec::len));
    Ok(value)
}

/// Sets the value of this key.
pub(crate) async fn write(
    state: &mut State,
    key: String,
    value: Vec<u8>,
) -> Result<(), KeyValueError> {
    let ((store, places), key) = (granted(state)?, masked(state, &key));
    state.receipt.host_calls.key_value.add(value.len());
    let value = mask::bytes(value, &state.terms.secrets);
    store.with(&places, move |store| store.set(&key, Some(value))).await
}

/// Removes this key.
pub(crate) async fn remove(state: &mut State, key: String) -> Result<(), KeyValueError> {
    let ((store, places), key) = (granted(state)?, masked(state, &key));
    state.receipt.host_calls.key_value.add(0);
    store.with(&places, move |store| store.set(&key, None)).await
}

/// Keys with this prefix, after that one.
pub(crate) async fn keys(
    state: &mut State,
    prefix: String,
    after: Option<String>,
    limit: u32,
) -> Result<Vec<String>, KeyValueError> {
    let (store, places) = granted(state)?;
    let limit = usize::try_from(limit).unwrap_or(KEYS_MAX).min(KEYS_MAX);
    let keys = store
        .with(&places, move |store| Ok(page(store.values()?, &prefix, after.as_deref(), limit)))
        .await?;
    state.receipt.host_calls.key_value.add(keys.iter().map(String::len).sum());
    Ok(keys)
}

fn page(
    values: &BTreeMap<String, Vec<u8>>,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Vec<String> {
    let from = match after.filter(|after| *after >= prefix) {
        Some(after) => Excluded(after),
        None => Included(prefix),
    };
    values
        .range::<str, _>((from, Unbounded))
        .map(|(key, _)| key)
        .take_while(|key| key.starts_with(prefix))
        .take(limit)
        .cloned()
        .collect()
}

/// The store, and the places for what is done with it.
fn granted(state: &mut State) -> Result<(Arc<KeyValue>, Blocking), KeyValueError> {
    match state.key_value() {
        Some(store) => Ok((store.clone(), state.terms.blocking.clone())),
        None => {
            state
                .receipt
                .refuse("the key-value store is not granted; to allow it: grants.kv = true".into());
            Err(KeyValueError::Denied)
        }
    }
}

/// The key as it is kept: what is written under a secret is found under its mask.
fn masked(state: &State, key: &str) -> String {
    mask::text(key, &state.terms.secrets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_keys() {
        let values = ["a", "b/1", "b/2", "b/3", "c"].map(|key| (key.to_owned(), Vec::new())).into();
        for (prefix, after, limit, expected) in [
            ("", None, 10, &["a", "b/1", "b/2", "b/3", "c"][..]),
            ("b/", None, 2, &["b/1", "b/2"]),
            ("b/", Some("b/2"), 2, &["b/3"]),
            ("b/", Some("a"), 10, &["b/1", "b/2", "b/3"]),
            ("b/", Some("c"), 10, &[]),
            ("", Some("b/3"), 0, &[]),
            ("x", None, 10, &[]),
        ] {
            assert_eq!(page(&values, prefix, after, limit), expected, "{prefix} {after:?}");
        }
    }
}
