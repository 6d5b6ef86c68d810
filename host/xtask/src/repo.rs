//! Where things lie in this repository, and how its cargo is called.
//!
//! Three builds, three target directories: the host's own, the guests' (another compiler)
//! and the guests' tests on this machine. None ever waits for, or rebuilds, another's.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

/// The checkout that `cargo xtask` was called in.
pub(crate) struct Repo {
    root: PathBuf,
    cargo: PathBuf,
}

impl Repo {
    /// Asks the variables that `cargo run` sets, so a checkout may move without a rebuild.
    pub(crate) fn here() -> Result<Self> {
        let from_cargo = |name| env::var_os(name).context("start this as `cargo xtask`");
        let package = PathBuf::from(from_cargo("CARGO_MANIFEST_DIR")?);
        let root = package.ancestors().nth(2).context("xtask lies in host/xtask")?;
        Ok(Self { root: root.to_owned(), cargo: from_cargo("CARGO")?.into() })
    }

    /// The cargo that runs us: under rustup the real program, not its proxy.
    pub(crate) fn cargo_path(&self) -> &Path {
        &self.cargo
    }

    /// The workspace of the plugins.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// The contract of the plugins.
    pub(crate) fn contract(&self) -> PathBuf {
        self.root.join("wit")
    }

    /// The reference of the contract.
    pub(crate) fn contract_page(&self) -> PathBuf {
        self.root.join("host/docs/contract.md")
    }

    /// The documentation.
    pub(crate) fn docs(&self) -> PathBuf {
        self.root.join("host/docs")
    }

    /// Where the finished components go, whatever `CARGO_TARGET_DIR` says: configs name it.
    pub(crate) fn components(&self) -> PathBuf {
        self.root.join("target/plugins")
    }

    /// The directory in which the demo's plugins may write: a grant wants one that is there.
    pub(crate) fn demo_workspace(&self) -> PathBuf {
        self.root.join("target/demo")
    }

    /// Where benchmarks of whole processes work.
    pub(crate) fn bench(&self) -> PathBuf {
        self.root.join("target/bench")
    }

    /// The benchmark of the reference implementation.
    pub(crate) fn reference_bench(&self) -> PathBuf {
        self.root.join("host/agent/benches/reference")
    }

    /// A released binary of the host, wherever the person's settings have it built.
    pub(crate) fn released(&self, name: &str) -> PathBuf {
        let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        self.root.join(target).join("release").join(name)
    }

    pub(crate) fn guest_target(&self) -> PathBuf {
        self.root.join("target/guests")
    }

    pub(crate) fn guest_toolchain(&self) -> PathBuf {
        self.root.join("target/guest-toolchain")
    }

    /// A registry for tests.
    pub(crate) fn docker_registry(&self) -> PathBuf {
        self.root.join("target/docker-registry")
    }

    /// Cargo in the host's workspace, with the person's own settings.
    pub(crate) fn host_cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(&self.root);
        forget(&mut cargo, is_about_xtask);
        cargo
    }

    /// Cargo in the plugins' workspace, for this machine: tests, clippy, documentation.
    pub(crate) fn native_plugins_cargo(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        cargo.current_dir(self.plugins());
        forget(&mut cargo, is_about_xtask);
        cargo.env("CARGO_TARGET_DIR", self.root.join("target/guests-native"));
        cargo
    }
}

/// Removes from a child's environment the variables of ours that `unwanted` names.
pub(crate) fn forget(command: &mut Command, unwanted: fn(&str) -> bool) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(unwanted) {
            command.env_remove(name);
        }
    }
}

/// What `cargo run` says of the package it runs: untrue for any other package.
fn is_about_xtask(name: &str) -> bool {
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
}

/// What steers a build towards the host's compiler, flags or directories.
///
/// A person's mirrors, proxies, job counts and cargo home (`CARGO_NET_*`, `CARGO_HTTP_*`,
/// `CARGO_REGISTRIES_*`, `CARGO_BUILD_JOBS`, `CARGO_HOME`) hold for guests too.
pub(crate) fn steers_host_builds(name: &str) -> bool {
    const PREFIXES: [&str; 5] =
        ["RUSTC", "RUSTDOC", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_BUILD_"];
    const NAMES: [&str; 4] = ["CARGO", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTUP_TOOLCHAIN"];
    is_about_xtask(name)
        || NAMES.contains(&name)
        || (name != "CARGO_BUILD_JOBS" && PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_forget_what_is_the_hosts_and_keep_what_is_the_persons() {
        let mut forgotten = vec![
            "CARGO",
            "CARGO_BUILD_RUSTC_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_MANIFEST_DIR",
            "CARGO_PKG_NAME",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_WASM32_WASIP2_LINKER",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTDOCFLAGS",
            "RUSTFLAGS",
            "RUSTUP_TOOLCHAIN",
        ];
        let kept = [
            "CARGO_BUILD_JOBS",
            "CARGO_HOME",
            "CARGO_HTTP_PROXY",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MINE_INDEX",
            "PATH",
            "RUSTUP_HOME",
            "RUST_BACKTRACE",
        ];
        let mut all = forgotten.clone();
        all.extend(kept);
        all.retain(|name| steers_host_builds(name));
        forgotten.sort_unstable();
        all.sort_unstable();
        assert_eq!(all, forgotten);
    }
}
