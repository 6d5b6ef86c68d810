//! Values that the operator set for this plugin. Not for secrets: the host puts those into
//! requests itself, and they never enter a plugin.

use crate::host;

/// The value of this key; none if the operator set no such value.
pub fn read(key: &str) -> Option<String> {
    host::config(key)
}

/// The parts of a value that is a list separated by commas; none if the operator set no such value.
pub fn list(key: &str) -> Option<Vec<String>> {
    let value = read(key)?;
    Some(
        value
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}
