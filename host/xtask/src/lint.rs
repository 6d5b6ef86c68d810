//! `cargo xtask lint`: format, clippy and documentation. A warning is an error here, and only
//! here: it should not stop anyone who is in the middle of a change.

use std::process::Command;

use anyhow::Result;

use crate::repo::Repo;
use crate::{process, say};

/// Checks both workspaces, the quick checks first.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    say("checking the format");
    format(repo.host_cargo())?;
    format(repo.native_plugins_cargo())?;
    say("checking the plugins with clippy and rustdoc (a minute the first time)");
    clippy(repo.native_plugins_cargo())?;
    document(repo.native_plugins_cargo())?;
    say("checking the host with clippy and rustdoc (a few minutes the first time)");
    clippy(repo.host_cargo())?;
    document(repo.host_cargo())
}

fn format(mut cargo: Command) -> Result<()> {
    process::run(cargo.args(["fmt", "--all", "--check"]))
}

fn clippy(mut cargo: Command) -> Result<()> {
    cargo.args(["clippy", "--workspace", "--all-targets"]);
    process::run(cargo.args(["--", "--deny", "warnings"]))
}

fn document(mut cargo: Command) -> Result<()> {
    cargo.args(["doc", "--workspace", "--no-deps"]);
    process::run(cargo.env("RUSTDOCFLAGS", "--deny warnings"))
}
