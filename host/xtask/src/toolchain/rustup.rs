//! The toolchain in use, with the targets that rustup can add to it.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::base::Base;
use super::{TARGETS, has_targets};
use crate::{process, say};

/// How long rustup may take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    /// There is another way: where rustup's downloads cannot be reached it would wait for long.
    Short,
    /// It is the only way.
    Long,
}

impl Limit {
    fn time(self) -> Duration {
        match self {
            Self::Short => Duration::from_secs(20),
            Self::Long => Duration::from_secs(600),
        }
    }
}

/// Sees to it that the toolchain in use has the targets.
pub(super) fn provide(base: &Base, home: &Path, limit: Limit) -> Result<()> {
    let rustc = base.bin().join("rustc");
    if has_targets(&rustc) {
        return Ok(());
    }
    add(base, home, limit)?;
    ensure!(has_targets(&rustc), "rustup added the targets in vain");
    Ok(())
}

fn add(base: &Base, home: &Path, limit: Limit) -> Result<()> {
    let name = base
        .rustup_name()
        .context("the compiler in use lacks the targets and is not one of rustup's")?;
    let log = home.join("rustup.log");
    let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let time = limit.time();
    say(&format!(
        "adding {} with rustup: downloads 40 MB, {} s at most",
        TARGETS.join(" and "),
        time.as_secs()
    ));
    let mut rustup = Command::new("rustup");
    rustup
        .args(["target", "add", "--toolchain", name])
        .args(TARGETS)
        .env("RUSTUP_MAX_RETRIES", "0")
        .stdout(out.try_clone()?)
        .stderr(out);
    process::run_within(&mut rustup, time)
        .with_context(|| format!("rustup did not add the targets (see {})", log.display()))
}
