//! JavaScript: packages by npm, the build and the tests as `package.json` has them.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::toolchain::path_with;
use crate::{process, say};

/// By this a plugin in JavaScript is known.
pub(super) const LOCK: &str = "package-lock.json";

/// What its toolchain needs.
const NODE_MIN: u32 = 20;

pub(super) fn install(plugin: &Path, home: &Path) -> Result<()> {
    let version = process::read(Command::new("node").arg("--version"))
        .with_context(|| format!("it needs Node {NODE_MIN} and npm"))?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    ensure!(
        major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= NODE_MIN),
        "it needs Node {NODE_MIN} or newer; this is {}",
        version.trim()
    );
    say("installing componentize-js under target/: unpacks 215 MB, half a minute");
    for file in ["package.json", LOCK] {
        fs::copy(plugin.join(file), home.join(file))?;
    }
    let mut npm = Command::new("npm");
    // Nothing that a package brings is run before it is asked to build.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    process::run_within(npm.current_dir(home), Duration::from_secs(600))
}

pub(super) fn build(plugin: &Path, home: &Path, built: &Path) -> Result<()> {
    let mut npm = npm(plugin);
    npm.env("PATH", path_with(&home.join("node_modules/.bin")));
    process::run(npm.args(["run", "--silent", "build", "--", "--out"]).arg(built))
}

pub(super) fn test(plugin: &Path) -> Result<()> {
    if process::read(Command::new("npm").arg("--version")).is_err() {
        say("left out: there is no npm on this machine");
        return Ok(());
    }
    process::run(npm(plugin).args(["test", "--silent"]))
}

fn npm(plugin: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(plugin);
    // What a surrounding npm would say of another package.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("npm_package_")) {
            npm.env_remove(name);
        }
    }
    npm
}
