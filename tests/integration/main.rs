//! The built binary and the built plugins, from the outside: text in, text out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod calls;
mod languages;
mod refusals;
mod runs;
mod unruly;

use std::process::Command;

/// The binary `cofferdam`.
fn cofferdam() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cofferdam"))
}
