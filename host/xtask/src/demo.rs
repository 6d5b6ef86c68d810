//! `cargo xtask demo`: from a fresh clone to an agent run with sandboxed tools.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::guests::{self, Language};
use crate::repo::Repo;
use crate::{process, say};

/// The run, as typed after `cofferdam`. Paths are relative to the repository.
///
/// The plugins were built a moment ago, so there is no digest to pin them by.
const RUN: [&str; 5] = [
    "run",
    "--config",
    "tests/demo/cofferdam.toml",
    "--allow-unpinned",
    "Which interfaces does the contract have, and do the brakes hold?",
];

/// Sets everything up and runs the demo, whose exit code becomes ours.
pub(crate) fn run(repo: &Repo) -> Result<ExitCode> {
    let options =
        guests::Options { lang: vec![Language::Rust], plain: true, ..guests::Options::default() };
    guests::run(repo, &options)?;
    let workspace = repo.demo_workspace();
    fs::create_dir_all(&workspace)
        .with_context(|| format!("cannot create {}", workspace.display()))?;
    say("building cofferdam (about 5 minutes the first time: it holds a compiler)");
    process::run(repo.host_cargo().args(["build", "--package", "cofferdam"]))?;
    say(&format!("running: cofferdam {}", RUN.join(" ")));
    // By `cargo run`, which knows where the program lies in every configuration. Nobody sits at its
    // terminal: it ends with its answer.
    let mut run = repo.host_cargo();
    run.args(["run", "--quiet", "--package", "cofferdam", "--"]).args(RUN);
    let status = process::status(run.stdin(std::process::Stdio::null()))?;
    Ok(exit_code(status.code()))
}

/// A program that a signal ended has no code.
fn exit_code(code: Option<i32>) -> ExitCode {
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
