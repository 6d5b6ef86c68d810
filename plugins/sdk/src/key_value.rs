//! Small values that outlive calls, kept by the host for this plugin alone, within a quota and
//! only if the operator granted it.

use std::{error, fmt};

use crate::failure::Failure;
use crate::host;

/// Why a value could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The operator did not grant it.
    Denied,
    /// The quota of the plugin is used up; nothing was written.
    OverQuota,
    /// Something else, in words.
    Other(String),
}

impl Error {
    /// As a failure with the kind that fits. Plain `?` gives one of kind `other`.
    pub fn into_failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Denied => Failure::denied(message),
            Self::OverQuota => Failure::unavailable(message),
            Self::Other(_) => Failure::other(message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => {
                f.write_str("the operator did not grant this plugin the key-value store")
            }
            Self::OverQuota => f.write_str("the plugin's key-value quota is used up"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl error::Error for Error {}

/// The value of this key; none if there is none.
pub fn read(key: &str) -> Result<Option<Vec<u8>>, Error> {
    host::key_value_read(key)
}

/// Sets the value of this key, whole or not at all.
pub fn write(key: &str, value: impl AsRef<[u8]>) -> Result<(), Error> {
    host::key_value_write(key, value.as_ref())
}

/// Removes this key; a key that is not there is no error.
pub fn remove(key: &str) -> Result<(), Error> {
    host::key_value_remove(key)
}

/// At most `limit` keys that begin with `prefix` and come after `after`, in order of bytes.
pub fn keys(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, Error> {
    host::key_value_keys(prefix, after, limit)
}
