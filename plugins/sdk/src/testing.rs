//! Tests of plugins without a host: plain `cargo test`, no WebAssembly in sight.
//!
//! Tools and hooks are functions, so most tests just call them. [`host`] gives the stand-in for
//! the host, to set what the plugin reads and to see what it reported.
//!
//! ```
//! use cofferdam_plugin::{Result, call, config, testing, tool_with_schema, json, Value};
//!
//! fn greet(_: Value) -> Result<String> {
//!     call::progress("looking for words");
//!     Ok(config::read("greeting").unwrap_or("Hello".to_owned()))
//! }
//!
//! let host = testing::host().config("greeting", "Ahoy");
//! assert_eq!(greet(json!({}))?, "Ahoy");
//! assert_eq!(host.progress(), ["looking for words"]);
//! # Ok::<(), cofferdam_plugin::Failure>(())
//! ```

use std::time::Duration;

use crate::host::local::{self, State};
use crate::log::Level;
use crate::reply::{Content, Reply};

/// A fresh stand-in for the host, for this thread: nothing configured, nothing reported, nothing
/// cancelled, half a minute left, an empty key-value store.
pub fn host() -> Host {
    local::with(|state| *state = State::default());
    Host { _private: () }
}

/// The stand-in for the host of this thread.
#[derive(Debug)]
pub struct Host {
    _private: (),
}

impl Host {
    /// Sets a value that the plugin can read from its configuration.
    #[must_use]
    pub fn config(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        local::with(|state| state.config.insert(key.into(), value.into()));
        self
    }

    /// Aborts the call.
    #[must_use]
    pub fn cancelled(self) -> Self {
        local::with(|state| state.cancelled = true);
        self
    }

    /// Sets the wall time left to the call.
    #[must_use]
    pub fn remaining(self, remaining: Duration) -> Self {
        local::with(|state| state.remaining = Some(remaining));
        self
    }

    /// Makes the key-value store answer `denied`.
    #[must_use]
    pub fn without_key_value(self) -> Self {
        local::with(|state| state.values_denied = true);
        self
    }

    /// The texts of all progress so far.
    pub fn progress(&self) -> Vec<String> {
        let text = |content: &Vec<Content>| {
            Reply { content: content.clone(), ..Reply::default() }.to_text()
        };
        local::with(|state| state.progress.iter().map(|(content, _)| text(content)).collect())
    }

    /// All lines of the log so far.
    pub fn logs(&self) -> Vec<(Level, String)> {
        local::with(|state| state.logs.clone())
    }
}
