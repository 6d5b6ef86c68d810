//! The Rust toolchain in use: the one whose cargo runs us.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;

/// The toolchain in use.
pub(super) struct Base {
    /// The real cargo, not rustup's proxy, which would put its own `rustc` first on the path.
    pub(super) cargo: PathBuf,
    pub(super) sysroot: PathBuf,
    /// What `rustc --version` prints.
    pub(super) version: String,
}

impl Base {
    pub(super) fn of(cargo: &Path) -> Result<Self> {
        // A toolchain keeps its programs together, so the compiler lies beside cargo. Only a
        // build of one's own puts them apart.
        let beside = cargo.with_file_name("rustc");
        let rustc = if beside.exists() { beside } else { "rustc".into() };
        let ask = |args: &[&str]| process::read(Command::new(&rustc).args(args));
        Ok(Self {
            cargo: cargo.to_owned(),
            sysroot: ask(&["--print", "sysroot"])?.trim().into(),
            version: ask(&["--version"])?.trim().to_owned(),
        })
    }

    pub(super) fn bin(&self) -> PathBuf {
        self.sysroot.join("bin")
    }

    /// The name by which rustup knows the toolchain, if it is one of rustup's.
    pub(super) fn rustup_name(&self) -> Option<&str> {
        let in_toolchains = self.sysroot.parent()?.ends_with("toolchains");
        self.sysroot.file_name()?.to_str().filter(|_| in_toolchains)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(sysroot: &str) -> Option<String> {
        let base = Base { cargo: "cargo".into(), sysroot: sysroot.into(), version: String::new() };
        base.rustup_name().map(str::to_owned)
    }

    #[test]
    fn rustup_names_its_toolchains_by_their_directory() {
        assert_eq!(
            name("/home/me/.rustup/toolchains/stable-x86_64").as_deref(),
            Some("stable-x86_64")
        );
        assert_eq!(name("/usr"), None);
        assert_eq!(name("/opt/rust-1.95"), None);
    }
}
