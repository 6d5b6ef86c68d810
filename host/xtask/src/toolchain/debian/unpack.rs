//! Packages as trees of files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Nothing that a compiler started by hand would read.
const LEFT_OUT: [&str; 4] =
    ["./usr/share/*", "./etc/*", "./usr/lib/rustlib/wasm32-unknown-unknown", "*/gconv/*"];

/// Unpacks packages over each other into one tree.
pub(super) fn all(packages: &[PathBuf], tree: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    for package in packages {
        one(package, tree).with_context(|| format!("cannot unpack {}", package.display()))?;
    }
    Ok(())
}

fn one(package: &Path, tree: &Path) -> Result<()> {
    let mut dpkg = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()?;
    let archive = dpkg.stdout.take().context("dpkg-deb has no output")?;
    let tar = Command::new("tar")
        .args(["--extract", "--no-same-owner", "--directory"])
        .arg(tree)
        .args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")))
        .stdin(archive)
        .status();
    // Waited for in any case, so that a tar that failed leaves no process behind.
    let dpkg = dpkg.wait()?;
    ensure!(tar?.success(), "tar failed");
    ensure!(dpkg.success(), "dpkg-deb failed");
    Ok(())
}

/// A symbolic link at `to`. A copy would not do: rustup's linkers find libraries beside them.
pub(super) fn link(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::symlink(from, to);
    #[cfg(not(unix))]
    return Err(io::ErrorKind::Unsupported.into());
}

/// A file that can be started.
pub(super) fn write_script(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
