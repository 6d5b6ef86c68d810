//! The built binary and the built plugins, from the outside: text in, text out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod agent_program;
#[cfg(unix)]
mod approvals;
mod authors;
mod cache;
mod calls;
mod contract;
#[cfg(unix)]
mod docs;
mod doctor;
mod escapes;
mod hostile;
mod languages;
mod mcp;
mod models;
mod observing;
mod oci;
mod page;
mod refusals;
mod reload;
mod rpc;
mod runs;
#[cfg(unix)]
mod seat;
mod sessions;
#[cfg(unix)]
mod terminal;
mod unruly;

use std::process::Command;

/// The binary `cofferdam`, with a folder of compiled code that all tests share. Its sessions stay
/// among the build's files.
fn cofferdam() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cofferdam"));
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled");
    command.env("COFFERDAM_CACHE_DIR", cache);
    command.env("COFFERDAM_STATE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}
