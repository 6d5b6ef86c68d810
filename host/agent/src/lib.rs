//! The agent loop: model call, tool calls, results, repeat.
//!
//! A model never runs a tool itself: it states an intent, and this loop validates, runs, records
//! and feeds the result back. The crate knows no engine, no network and no files; models, tools,
//! hooks, observers and the journal are traits that an embedder fills in.

pub mod agent;
pub mod args;
pub mod config;
pub mod error;
pub mod event;
pub mod hook;
pub mod journal;
pub mod message;
pub mod model;
pub mod partial;
pub mod preview;
pub mod progress;
pub mod queue;
pub mod receipt;
pub mod replay;
pub mod schema;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tool;
pub mod toolset;

mod guarded;
mod refusal;
mod run;
mod transcript;

pub use agent::{Agent, Prompt, Subscription};
pub use config::{AgentConfig, Settings};
pub use error::AgentError;
pub use run::{EndReason, RunEnd};
pub use toolset::Toolset;

/// Says that a run was aborted. Cloned into everything that runs for it; never un-cancelled.
pub type AbortSignal = tokio_util::sync::CancellationToken;
