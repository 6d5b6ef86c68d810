//! The imports of the contract.

use std::time::Duration;

use serde_json::Value;

use crate::contract::imports::{cancellation, config as values, key_value, log as lines, progress};
use crate::key_value::Error;
use crate::log::Level;
use crate::reply::Content;

pub(crate) fn report(content: Vec<Content>, details: Option<Value>) {
    let content: Vec<_> = content.into_iter().map(Into::into).collect();
    progress::report(&content, details.map(|details| details.to_string()).as_deref());
}

pub(crate) fn is_cancelled() -> bool {
    cancellation::is_cancelled()
}

pub(crate) fn remaining() -> Duration {
    Duration::from_millis(cancellation::remaining_ms())
}

pub(crate) fn log(level: Level, message: &str) {
    let level = match level {
        Level::Debug => lines::Level::Debug,
        Level::Info => lines::Level::Info,
        Level::Warn => lines::Level::Warn,
        Level::Error => lines::Level::Error,
    };
    lines::write(level, message);
}

pub(crate) fn config(key: &str) -> Option<String> {
    values::read(key)
}

pub(crate) fn key_value_read(key: &str) -> Result<Option<Vec<u8>>, Error> {
    key_value::read(key).map_err(Into::into)
}

pub(crate) fn key_value_write(key: &str, value: &[u8]) -> Result<(), Error> {
    key_value::write(key, value).map_err(Into::into)
}

pub(crate) fn key_value_remove(key: &str) -> Result<(), Error> {
    key_value::remove(key).map_err(Into::into)
}

pub(crate) fn key_value_keys(
    prefix: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<String>, Error> {
    key_value::keys(prefix, after, limit).map_err(Into::into)
}

impl From<key_value::Error> for Error {
    fn from(error: key_value::Error) -> Self {
        match error {
            key_value::Error::Denied => Self::Denied,
            key_value::Error::OverQuota => Self::OverQuota,
            key_value::Error::Other(message) => Self::Other(message),
        }
    }
}
