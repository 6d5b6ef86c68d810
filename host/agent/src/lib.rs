//! The agent loop: model call, tool calls, results, repeat.
//!
//! A model never runs a tool itself: it states an intent, and this loop validates, runs, records
//! and feeds the result back. The crate knows no engine, no network and no files; models, tools,
//! hooks, observers and the journal are traits that an embedder fills in.

pub mod event;
pub mod hook;
pub mod journal;
pub mod message;
pub mod model;
pub mod progress;
pub mod receipt;
pub mod tool;

/// Says that a run was aborted. Cloned into everything that runs for it; never un-cancelled.
pub type AbortSignal = tokio_util::sync::CancellationToken;
