//! Python: packages by pip in an environment of their own, the build as `build.sh` has it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::toolchain::path_with;
use crate::{process, say};

/// By this a plugin in Python is known.
pub(super) const LOCK: &str = "requirements.txt";

const PYTHON: &str = "python3";

pub(super) fn install(plugin: &Path, home: &Path) -> Result<()> {
    let venv = home.join("venv");
    process::read(Command::new(PYTHON).args(["-m", "venv"]).arg(&venv)).context(
        "it needs Python 3.9 with the module venv (Debian: apt-get install python3-venv)",
    )?;
    say("installing componentize-py under target/: downloads 17 MB");
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    // Only what the lock file names by its digest, and nothing that would run to be installed.
    pip.args(["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement"]);
    process::run_within(pip.arg(plugin.join(LOCK)), Duration::from_secs(600))
}

pub(super) fn build(plugin: &Path, home: &Path, built: &Path) -> Result<()> {
    let venv = home.join("venv");
    let mut build = Command::new(plugin.join("build.sh"));
    build.env("PATH", path_with(&venv.join("bin"))).env("VIRTUAL_ENV", &venv);
    process::run(build.arg(built))
}

pub(super) fn test(plugin: &Path) -> Result<()> {
    if process::read(Command::new(PYTHON).arg("--version")).is_err() {
        say("left out: there is no Python on this machine");
        return Ok(());
    }
    let mut python = Command::new(PYTHON);
    python.args(["-B", "-m", "unittest", "discover", "--quiet", "--start-directory", "tests"]);
    process::run(python.current_dir(plugin).env("PYTHONPATH", "src"))
}
