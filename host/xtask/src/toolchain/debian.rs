//! A newer Debian's compiler, with its WASI targets, unpacked privately.
//!
//! Nothing is installed and nothing outside our directory changes. The packages bring their
//! own C library, and the compiler is started through that library's loader, since the
//! machine's may be too old. Only guests are built with it.

mod apt;
mod unpack;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use self::apt::Apt;
use super::base::Base;
use super::clear;
use crate::say;

/// Stable first: its compiler stays the same for years. Testing's moves.
const SUITES: [&str; 2] = ["trixie", "forky"];

/// With all they depend on: the standard libraries bring the compiler's own libraries.
const WITH_DEPENDENCIES: [&str; 2] = ["libstd-rust-dev", "libstd-rust-dev-wasm32"];

/// Without what it depends on, which is a whole C compiler; this machine's links well.
const ALONE: [&str; 1] = ["rustc"];

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LINKERS: &str = "lib/rustlib/x86_64-unknown-linux-gnu/bin";

/// Whether this machine could go this way at all.
pub(super) fn is_possible() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64")) && apt::is_here()
}

/// Where the compiler is, once it is installed.
pub(super) fn bin(home: &Path) -> PathBuf {
    installed(home).join("bin")
}

/// Installs the compiler from the first suite that has it.
pub(super) fn provide(base: &Base, home: &Path) -> Result<()> {
    ensure!(is_possible(), "it needs apt, on Linux for x86_64");
    let linkers = base.sysroot.join(LINKERS);
    for linker in ["rust-lld", "wasm-component-ld"] {
        ensure!(
            linkers.join(linker).exists(),
            "it needs {linker}, which only toolchains of rustup's have"
        );
    }
    let archive = apt::archive()?;
    for suite in SUITES {
        say(&format!(
            "installing Debian {suite}'s Rust compiler under target/: \
             downloads 195 MB and unpacks 650 MB, about a minute"
        ));
        match install(&archive, suite, &linkers, home) {
            Ok(()) => return Ok(()),
            Err(error) => say(&format!("Debian {suite} did not do: {error:#}")),
        }
    }
    bail!("no suite of Debian's has it")
}

fn installed(home: &Path) -> PathBuf {
    home.join("debian")
}

fn install(archive: &str, suite: &str, linkers: &Path, home: &Path) -> Result<()> {
    let state = home.join("apt");
    let (new, done) = (home.join("debian.new"), installed(home));
    for dir in [&state, &new, &done] {
        clear(dir)?;
    }
    let apt = Apt::private(&state, archive, suite)?;
    let packages = apt.download(&WITH_DEPENDENCIES, &ALONE)?;
    unpack::all(&packages, &new)?;
    clear(&state)?;
    lend_linkers(linkers, &new.join("usr").join(LINKERS))?;
    write_starters(&new, &done)?;
    fs::rename(&new, &done).context("cannot put the compiler in its place")
}

/// The compiler looks for linkers in its own tree, and Debian's packages have none there.
fn lend_linkers(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.join("gcc-ld"))?;
    for linker in ["rust-lld", "wasm-component-ld", "gcc-ld/wasm-ld"] {
        unpack::link(&from.join(linker), &to.join(linker))
            .with_context(|| format!("cannot lend {linker} to the compiler"))?;
    }
    Ok(())
}

/// Writes the scripts that start the programs of the tree that will lie at `done`.
fn write_starters(new: &Path, done: &Path) -> Result<()> {
    fs::create_dir_all(new.join("bin"))?;
    for program in ["rustc", "rustdoc"] {
        let path = new.join("bin").join(program);
        unpack::write_script(&path, &starter(done, program)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The loader is told where the libraries are; the program finds the rest beside them.
fn starter(tree: &Path, program: &str) -> Result<String> {
    let tree = tree.to_str().context("the path of this checkout is not text")?;
    let tree = tree.replace('\'', r"'\''");
    Ok(format!(
        "#!/bin/sh\n\
         exec '{tree}/{LIBRARIES}/ld-linux-x86-64.so.2' --argv0 \"$0\" \\\n  \
         --library-path '{tree}/{LIBRARIES}' '{tree}/usr/bin/{program}' \"$@\"\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starter_goes_through_the_loader_and_survives_odd_paths() {
        let script = starter(Path::new("/it's here"), "rustc").unwrap();
        assert_eq!(
            script,
            r#"#!/bin/sh
exec '/it'\''s here/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2' --argv0 "$0" \
  --library-path '/it'\''s here/usr/lib/x86_64-linux-gnu' '/it'\''s here/usr/bin/rustc' "$@"
"#
        );
    }
}
