//! The wall: runs plugins in WebAssembly, every call in a fresh instance under every brake. The
//! only crate that knows wasmtime.
//!
//! A [`Sandbox`] is made once. [`inspect()`] says what a file is without running it,
//! [`Plugin::load`] makes it ready under [`Limits`] and [`Grants`], and its tools and hooks are
//! those of the agent loop. Whatever a guest does, its call ends as a value with a [`Receipt`].

mod blocking;
mod brake;
mod cache;
mod call;
mod compile;
mod crowd;
mod cut;
mod declare;
mod engine;
mod error;
mod foreign;
pub mod grants;
mod hook;
mod imports;
mod inspect;
mod json;
mod lane;
mod limits;
mod mask;
mod nearest;
mod pack;
mod plugin;
mod receipt;
mod seeds;
mod services;
mod spill;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
mod ticker;
mod tool;
mod wants;
mod wit;

pub use blocking::OccupiedFiles;
pub use cache::{CacheConfig, CacheReport};
pub use compile::{CompilerCommand, serve_compiler};
pub use declare::{RefusedTool, ToolSpec};
pub use engine::{Allocation, Sandbox, SandboxConfig};
pub use error::{Failure, LoadError, SandboxError, Stop};
pub use grants::{GrantError, Grants};
pub use imports::{Caller, HostImport};
pub use inspect::{
    CONTRACT, CONTRACT_VERSION, CodeSize, Inspection, Metadata, Refused, Roles, WANTS_SECTION,
    component_bytes, inspect, sha256_hex,
};
pub use limits::{LimitError, LimitRow, Limits};
pub use nearest::nearest_of;
pub use pack::{PackError, pack};
pub use plugin::{ChoiceError, Code, Plugin, PluginSource, read_component};
pub use receipt::{Dropping, HostCalls, ProgressBill, Receipt, Tally};
pub use seeds::{Chance, Seeds};
pub use services::http::{HttpAnswer, HttpRequest, HttpScript};
pub use services::log::{Level, LogLine, LogSink};
pub use spill::Spilled;
pub use wants::Want;
