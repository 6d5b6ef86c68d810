//! Lines for the operator, never for the model. Bounded by the host in size and number.

use crate::host;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Worth a look.
    Warn,
    /// Something went wrong.
    Error,
}

/// Writes one line.
pub fn write(level: Level, message: impl AsRef<str>) {
    host::log(level, message.as_ref());
}

/// Writes one line for the plugin's author.
pub fn debug(message: impl AsRef<str>) {
    write(Level::Debug, message);
}

/// Writes one line worth knowing.
pub fn info(message: impl AsRef<str>) {
    write(Level::Info, message);
}

/// Writes one line worth a look.
pub fn warn(message: impl AsRef<str>) {
    write(Level::Warn, message);
}

/// Writes one line about something that went wrong.
pub fn error(message: impl AsRef<str>) {
    write(Level::Error, message);
}
