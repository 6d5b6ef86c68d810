//! `cargo xtask bench`: the benchmarks of the host.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

/// Runs every benchmark, or what the arguments choose.
pub(crate) fn run(repo: &Repo, args: &[String]) -> Result<()> {
    process::run(repo.host_cargo().args(["bench", "--workspace"]).args(args))
}
