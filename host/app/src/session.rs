//! Sessions: what a run did, kept in a file of JSON lines as it happens, to go on with, to look at
//! and to play again. `host/docs/sessions.md` has the format and what is promised.
//!
//! - [`Sessions`] is a folder of them; [`Recorder`] writes one, as an agent's journal and observer.
//! - [`Record`] is one read back, [`Transcript`] the messages that a run goes on from.

pub mod export;
pub mod format;
pub mod replay;
pub mod timeline;

mod events;
mod folder;
mod nesting;
mod reader;
mod recorder;
pub mod repeat;
mod setup;
mod summary;
mod transcript;
mod witness;
mod writer;

#[cfg(test)]
mod tests;

pub use events::as_events;
pub use folder::{Listed, Sessions, absolute, read};
pub use reader::{NoRecord, Record, Skipped};
pub use recorder::{Recorder, TimeSource};
pub use summary::Summary;
pub use transcript::Transcript;

use cofferdam_agent::tool::Tool;
use std::path::PathBuf;
use std::sync::Arc;

/// A session that cannot be written, read or found.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The system does not let it be read.
    #[error("read {}: {problem}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The system does not let it be written.
    #[error(
        "write the session {}: {problem}; choose another folder with `[session] dir = \"…\"`, or run \
         with --no-session", path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// Another process writes to it.
    #[error("the session {} is open in another process: wait for its end, or stop it", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file is no session that can be read.
    #[error("read the session {}: {problem}", path.display())]
    NoRecord {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: NoRecord,
    },
    /// There is no such session.
    #[error(
        "there is no session `{wanted}` in {}: `cofferdam session list` shows those that there are",
        folder.display()
    )]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Several sessions are meant.
    #[error("{fitting} sessions begin with `{wanted}`: say more of the id")]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// How many begin so.
        fitting: usize,
    },
    /// There is no session at all.
    #[error("there is no session in {}", folder.display())]
    None {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// There is no session of one operator's file.
    #[error(
        "there is no session of {config} in {}: name one with `--session ID`; `cofferdam session \
         list` shows those that there are", folder.display()
    )]
    NoneOf {
        /// The operator's file.
        config: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
}

/// Tools whose calls leave in the session when they begin to run, and with what arguments.
pub fn witnessed(
    tools: impl Iterator<Item = Arc<dyn Tool>>,
    recorder: &Arc<Recorder>,
) -> impl Iterator<Item = Arc<dyn Tool>> {
    tools.map(|tool| {
        let recorder = recorder.clone();
        Arc::new(witness::Witnessed { tool, recorder }) as Arc<dyn Tool>
    })
}

/// A time of a session as people say it where they are: `2025-11-30 14:05`.
pub fn local_time(at_us: u64) -> String {
    let time = i64::try_from(at_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let zone = jiff::tz::TimeZone::system();
    time.map(|time| time.to_zoned_datetime(zone).strftime("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default()
}
