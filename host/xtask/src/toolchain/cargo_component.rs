//! cargo-component, of one version: on the path already, or built under `target/`.

use std::io::{IsTerminal as _, stderr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Toolchain, clear};
use crate::{process, say};

const VERSION: &str = "0.21.1";

/// Its own release profile asks for the smallest and fastest program, which takes three times
/// as long to build. What it makes is the same, and it never runs for long.
const QUICK_BUILD: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
];

/// A cargo-component of the right version.
pub(crate) struct CargoComponent {
    program: PathBuf,
}

impl CargoComponent {
    /// Finds it or installs it.
    pub(crate) fn ensure(toolchain: &Toolchain) -> Result<Self> {
        let own = toolchain.home.join("bin/cargo-component");
        for program in [own.clone(), "cargo-component".into()] {
            if is_right_version(&program) {
                return Ok(Self { program });
            }
        }
        install(toolchain)?;
        Ok(Self { program: own })
    }

    /// `cargo component`, for guests.
    pub(crate) fn command(&self, toolchain: &Toolchain) -> Command {
        let mut command = toolchain.command(&self.program);
        command.arg("component");
        command
    }
}

fn is_right_version(program: &Path) -> bool {
    process::read(Command::new(program).arg("--version"))
        .is_ok_and(|printed| version(&printed) == Some(VERSION))
}

/// `cargo-component 0.21.1 (wasi:0.1)` → `0.21.1`
fn version(printed: &str) -> Option<&str> {
    printed.split_whitespace().nth(1)
}

/// A program of this machine, so the toolchain in use builds it, whatever builds the guests.
fn install(toolchain: &Toolchain) -> Result<()> {
    say(&format!("installing cargo-component {VERSION}: compiles for about 3 minutes, once"));
    let build = toolchain.home.join("cargo-component-build");
    let mut cargo = toolchain.cargo();
    cargo
        .args(["install", "cargo-component", "--locked"])
        .args(["--version", &format!("={VERSION}")])
        .arg("--root")
        .arg(&toolchain.home)
        .envs(QUICK_BUILD)
        .env("CARGO_TARGET_DIR", &build)
        // Not a proxy of rustup's: it would obey the `rust-toolchain` files in some crates.
        .env("RUSTC", toolchain.base.bin().join("rustc"))
        .env("RUSTDOC", toolchain.base.bin().join("rustdoc"));
    if !stderr().is_terminal() {
        cargo.arg("--quiet");
    }
    process::run(&mut cargo)
        .context("cargo-component did not install; `cargo xtask guests --plain` does without it")?;
    clear(&build)
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_version_is_the_second_word() {
        assert_eq!(version("cargo-component 0.21.1\n"), Some("0.21.1"));
        assert_eq!(version("cargo-component 0.21.1 (abc 2026)"), Some("0.21.1"));
        assert_eq!(version("no"), None);
    }
}
