//! Write tools and hooks for Cofferdam, the WebAssembly plugin host for agents.
//!
//! A tool is a struct of arguments and a function. The struct says what the model may pass, with
//! doc comments as descriptions; the function does the work; [`export!`] makes a component of it.
//! This is a whole plugin:
//!
//! ```
//! use cofferdam_plugin::{Deserialize, Failure, JsonSchema, Result, export, tool};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Who is greeted.
//!     who: String,
//! }
//!
//! fn greet(args: Greet) -> Result<String> {
//!     if args.who.trim().is_empty() {
//!         return Err(Failure::rejected("`who` is empty; pass a name"));
//!     }
//!     Ok(format!("Hello, {}.", args.who))
//! }
//!
//! export! {
//!     tools: [tool("greet", "Greets a person by name.", greet).read_only()],
//! }
//! ```
//!
//! # What there is
//!
//! - [`tool`] and [`tool_with_schema`] make a [`Tool`], which also takes a label, an execution
//!   mode (parallel unless said otherwise) and remarks for people.
//! - A tool returns a [`Reply`], or a `String`, or a [`Failure`] that says whose move it is. `?`
//!   works on every standard error.
//! - [`call`]: progress, cancellation and the time left. [`mod@config`], [`key_value`] and
//!   [`log`]: the operator's values, small values that outlive calls, lines for the operator.
//! - Files, clocks and randomness are those of the standard library, as far as the operator
//!   grants them. HTTP is `wasi:http`; the sample `fetch` shows it.
//! - A hook gets a [`HookedCall`] and answers with a [`Verdict`] before the call, or an
//!   [`Amendment`] after it.
//! - [`testing`]: a stand-in for the host, so that a plugin is tested by plain `cargo test`.
//!
//! # What to know
//!
//! Each call runs in a fresh instance: nothing in a `static` survives it, and calls run at the
//! same time without sharing anything. What must survive goes into [`key_value`].
//!
//! A panic ends that one call. Its message goes to standard error, whose tail the host shows with
//! the error result; the next call works.

pub mod call;
pub mod config;
#[doc(hidden)]
pub mod contract;
mod convert;
#[doc(hidden)]
pub mod dispatch;
mod export;
mod failure;
mod hook;
mod host;
pub mod key_value;
pub mod log;
mod reply;
pub mod schema;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod tool;

pub use failure::{Failure, FailureKind, Result};
pub use hook::{Amendment, HookedCall, Outcome, Verdict};
pub use reply::{Content, Reply};
pub use tool::{Execution, Tool, tool, tool_with_schema};

// What the sources of a plugin name; the derives need `serde` and `schemars` in its manifest too.
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};
