//! `cargo xtask test`: everything that must pass, from a fresh clone.

use anyhow::Result;

use crate::guests;
use crate::repo::Repo;
use crate::{process, registry, say, scripted};

/// Builds the guests, which the host's tests run, then tests the host and the plugins.
pub(crate) fn run(repo: &Repo, args: &[String]) -> Result<()> {
    guests::run(repo, &guests::Options::default())?;
    registry::provide(repo);
    say("testing the host (about 8 minutes the first time: it compiles the engine)");
    process::run(repo.host_cargo().args(["test", "--workspace"]).args(args))?;
    say("testing the plugins on this machine (a minute the first time)");
    process::run(repo.native_plugins_cargo().args(["test", "--workspace"]))?;
    scripted::test(repo)
}
