//! The registry that tests push components to: Debian's `docker-registry`, unpacked under `target/`.
//! Nothing is installed. Without it those tests are left out, and say so.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::repo::Repo;
use crate::{process, say};

const PACKAGE: &str = "docker-registry";

/// Makes the registry ready where that can be done.
pub(crate) fn provide(repo: &Repo) {
    let home = repo.docker_registry();
    let is_there = home.join("usr/bin").join(PACKAGE).exists()
        || process::read(Command::new(PACKAGE).arg("--version")).is_ok();
    if is_there {
        return;
    }
    say("getting Debian's docker-registry under target/, for the tests of registries: 5 MB");
    if let Err(error) = unpack(&home) {
        say(&format!("tests of registries are left out: {error:#}"));
    }
}

fn unpack(home: &Path) -> Result<()> {
    let download = home.join("package");
    fs::create_dir_all(&download)?;
    let mut apt = Command::new("apt-get");
    // As root, apt would fetch as a user of its own, who may not write here.
    apt.args(["--quiet=2", "-o", "APT::Sandbox::User=root", "download", PACKAGE]);
    process::read(apt.current_dir(&download))?;
    let package = fs::read_dir(&download)?.next().context("apt downloaded nothing")??.path();
    process::read(Command::new("dpkg-deb").arg("-x").arg(&package).arg(home))?;
    fs::remove_dir_all(download).context("remove the package")
}
