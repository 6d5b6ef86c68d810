//! A stand-in for the host where there is none: it remembers what it was told, for one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::key_value::Error;
use crate::log::Level;
use crate::reply::Content;

/// All that the stand-in knows. Key-value is there unless a test denies it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) progress: Vec<(Vec<Content>, Option<Value>)>,
    pub(crate) logs: Vec<(Level, String)>,
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) values: BTreeMap<String, Vec<u8>>,
    pub(crate) values_denied: bool,
    pub(crate) cancelled: bool,
    pub(crate) remaining: Option<Duration>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

pub(crate) fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

pub(crate) fn report(content: Vec<Content>, details: Option<Value>) {
    with(|state| state.progress.push((content, details)));
}

pub(crate) fn is_cancelled() -> bool {
    with(|state| state.cancelled)
}

pub(crate) fn remaining() -> Duration {
    with(|state| state.remaining.unwrap_or(Duration::from_secs(30)))
}

pub(crate) fn log(level: Level, message: &str) {
    with(|state| state.logs.push((level, message.to_owned())));
}

pub(crate) fn config(key: &str) -> Option<String> {
    with(|state| state.config.get(key).cloned())
}

pub(crate) fn key_value_read(key: &str) -> Result<Option<Vec<u8>>, Error> {
    values(|values| values.get(key).cloned())
}

pub(crate) fn key_value_write(key: &str, value: &[u8]) -> Result<(), Error> {
    values(|values| drop(values.insert(key.to_owned(), value.to_vec())))
}

pub(crate) fn key_value_remove(key: &str) -> Result<(), Error> {
    values(|values| drop(values.remove(key)))
}

pub(crate) fn key_value_keys(
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<String>, Error> {
    values(|values| {
        let wanted = |key: &&String| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        };
        values.keys().filter(wanted).take(limit as usize).cloned().collect()
    })
}

fn values<T>(act: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> T) -> Result<T, Error> {
    with(|state| if state.values_denied { Err(Error::Denied) } else { Ok(act(&mut state.values)) })
}
