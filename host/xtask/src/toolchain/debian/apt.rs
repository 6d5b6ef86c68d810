//! apt with a state of its own: it downloads packages of another Debian, checked against the
//! archive's keys on this machine, and knows nothing of what is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// Signs every suite of Debian's, so newer ones than the machine's too.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// apt, kept in one directory.
pub(super) struct Apt {
    dir: PathBuf,
}

/// Whether the programs are there.
pub(super) fn is_here() -> bool {
    ["apt-get", "dpkg-deb", "tar"]
        .iter()
        .all(|name| process::read(Command::new(name).arg("--version")).is_ok())
}

/// The archive from which this machine has its own packages.
pub(super) fn archive() -> Result<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--no-release-info"]);
    apt.args(["--format", "$(REPO_URI)", "Created-By: Packages"]);
    let listed = process::read(&mut apt)?;
    debian_archive(&listed).map(str::to_owned).context("apt has no Debian archive in its sources")
}

/// The first address that ends in `debian`: not `debian-security`, nor some vendor's own.
fn debian_archive(listed: &str) -> Option<&str> {
    listed
        .lines()
        .map(|line| line.trim().trim_end_matches('/'))
        .find(|address| address.ends_with("/debian"))
}

impl Apt {
    /// An apt that sees one suite of one archive.
    pub(super) fn private(dir: &Path, archive: &str, suite: &str) -> Result<Self> {
        for part in ["lists/partial", "archives/partial", "alone", "none"] {
            fs::create_dir_all(dir.join(part))?;
        }
        fs::write(dir.join("status"), "")?;
        let signed = Path::new(KEYRING).exists();
        fs::write(dir.join("sources.list"), source(archive, suite, signed))?;
        fs::write(dir.join("apt.conf"), config(&dir.display().to_string()))?;
        let apt = Self { dir: dir.to_owned() };
        process::read(apt.get().arg("update"))?;
        Ok(apt)
    }

    /// Downloads packages, some with and some without what they depend on: the files.
    pub(super) fn download(&self, with: &[&str], without: &[&str]) -> Result<Vec<PathBuf>> {
        process::read(self.get().args(["--download-only", "install"]).args(with))?;
        let alone = self.dir.join("alone");
        process::read(self.get().current_dir(&alone).arg("download").args(without))?;
        let mut files = packages(&self.dir.join("archives"))?;
        files.extend(packages(&alone)?);
        Ok(files)
    }

    fn get(&self) -> Command {
        let mut apt = Command::new("apt-get");
        apt.arg("-c").arg(self.dir.join("apt.conf"));
        apt.args(["--quiet=2", "--yes"]);
        apt
    }
}

fn packages(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            files.push(path);
        }
    }
    Ok(files)
}

fn source(archive: &str, suite: &str, signed: bool) -> String {
    let option = if signed { format!("[signed-by={KEYRING}] ") } else { String::new() };
    format!("deb {option}{archive} {suite} main\n")
}

/// Read after the machine's own configuration, so its proxies stay. Its hooks must not run for
/// us, and only a file can clear a list: no option on the command line does.
fn config(dir: &str) -> String {
    format!(
        r#"#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
Dir::State "{dir}";
Dir::State::lists "{dir}/lists";
Dir::State::status "{dir}/status";
Dir::Cache "{dir}";
Dir::Cache::archives "{dir}/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "{dir}/sources.list";
Dir::Etc::sourceparts "{dir}/none";
Dir::Etc::preferences "{dir}/no-preferences";
Dir::Etc::preferencesparts "{dir}/none";
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_debians_own() {
        let listed = "http://vendor.example/apt/\n\
                      http://mirror.example/debian-security/\n\
                      http://mirror.example/debian/\n\
                      http://other.example/debian/\n";
        assert_eq!(debian_archive(listed), Some("http://mirror.example/debian"));
        assert_eq!(debian_archive("http://mirror.example/ubuntu/\n"), None);
        assert_eq!(debian_archive(""), None);
    }

    #[test]
    fn the_source_names_the_keyring_that_must_have_signed_it() {
        assert_eq!(
            source("http://mirror.example/debian", "trixie", true),
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
             http://mirror.example/debian trixie main\n"
        );
        assert_eq!(
            source("http://mirror.example/debian", "trixie", false),
            "deb http://mirror.example/debian trixie main\n"
        );
    }

    #[test]
    fn all_that_apt_writes_lies_in_its_directory() {
        let config = config("/d");
        let paths = config.lines().filter(|line| line.starts_with("Dir::"));
        for line in paths.filter(|line| !line.ends_with("\"\";")) {
            assert!(line.contains(" \"/d"), "{line}");
        }
    }
}
