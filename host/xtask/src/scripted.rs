//! Plugins in JavaScript and Python: found by the manifest of their language, built by their own
//! build command, with a toolchain of pinned versions in a directory of its own under `target/`.
//!
//! A machine may lack what they need, and no registry may be in reach. The rest of the repository
//! does not need them, so they are left out then, unless somebody asked for them.

mod javascript;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};

use crate::guests::{Language, place};
use crate::repo::Repo;
use crate::say;

/// A plugin in a language without a compiler of ours.
pub(crate) struct Scripted {
    pub(crate) name: String,
    pub(crate) language: Language,
    directory: PathBuf,
}

/// All of them, by name.
pub(crate) fn all(repo: &Repo) -> Result<Vec<Scripted>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(repo.plugins())? {
        let directory = entry?.path();
        let Some(name) = directory.file_name().and_then(|name| name.to_str()) else { continue };
        let language = if directory.join(javascript::LOCK).exists() {
            Language::JavaScript
        } else if directory.join(python::LOCK).exists() {
            Language::Python
        } else {
            continue;
        };
        found.push(Scripted { name: name.to_owned(), language, directory });
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Builds one, if its sources are newer than what was built from them. False if it was left out,
/// which is an error if somebody insists on it.
pub(crate) fn build(repo: &Repo, plugin: &Scripted, insists: bool) -> Result<bool> {
    let wasm = repo.components().join(format!("{}.wasm", plugin.name));
    let newest = newest(&plugin.directory)?.max(newest(&repo.contract())?);
    if fs::metadata(&wasm).and_then(|found| found.modified()).is_ok_and(|built| built > newest) {
        return Ok(true);
    }
    let home = repo.guest_toolchain().join(&plugin.name);
    if let Err(error) = plugin.ensure_toolchain(&home) {
        let error = error.context(format!("cannot build {} on this machine", plugin.name));
        if insists {
            return Err(error);
        }
        say(&format!("left out, and so are its tests: {error:#}"));
        // An older one would be tested in its place.
        let _ = fs::remove_file(&wasm);
        return Ok(false);
    }
    say(&format!("building {} with {} (about 10 seconds)", plugin.name, plugin.builder()));
    let built = home.join("built.wasm");
    match plugin.language {
        Language::JavaScript => javascript::build(&plugin.directory, &home, &built)?,
        _ => python::build(&plugin.directory, &home, &built)?,
    }
    fs::create_dir_all(repo.components())?;
    place(&built, &wasm)?;
    fs::remove_file(&built).context("cannot tidy up")?;
    Ok(true)
}

/// Runs their own tests, which need no toolchain, on what is installed on this machine.
pub(crate) fn test(repo: &Repo) -> Result<()> {
    for plugin in all(repo)? {
        say(&format!("testing {}", plugin.name));
        match plugin.language {
            Language::JavaScript => javascript::test(&plugin.directory)?,
            _ => python::test(&plugin.directory)?,
        }
    }
    Ok(())
}

impl Scripted {
    fn lock(&self) -> PathBuf {
        self.directory.join(match self.language {
            Language::JavaScript => javascript::LOCK,
            _ => python::LOCK,
        })
    }

    fn builder(&self) -> &'static str {
        match self.language {
            Language::JavaScript => "componentize-js",
            _ => "componentize-py",
        }
    }

    /// Installs what the lock file says, unless exactly that is there.
    fn ensure_toolchain(&self, home: &Path) -> Result<()> {
        let (lock, stamp) = (fs::read(self.lock())?, home.join("installed"));
        if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
            return Ok(());
        }
        if home.exists() {
            fs::remove_dir_all(home)?;
        }
        fs::create_dir_all(home)?;
        match self.language {
            Language::JavaScript => javascript::install(&self.directory, home)?,
            _ => python::install(&self.directory, home)?,
        }
        fs::write(&stamp, lock).context("cannot write the stamp of the toolchain")
    }
}

/// When something in a directory was last changed. What an author's own installation or build left
/// there does not count.
fn newest(directory: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_left_over = path.ends_with("node_modules")
            || path.ends_with(".venv")
            || path.ends_with("__pycache__")
            || path.extension().is_some_and(|extension| extension == "wasm");
        if is_left_over || kind.is_symlink() {
            continue;
        }
        let changed =
            if kind.is_dir() { self::newest(&path)? } else { entry.metadata()?.modified()? };
        newest = newest.max(changed);
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_author_leaves_behind_is_no_change() {
        let directory = std::env::temp_dir().join(format!("xtask-newest-{}", std::process::id()));
        fs::create_dir_all(directory.join("node_modules/x")).unwrap();
        for (file, hours) in [("a.js", 1), ("node_modules/x/b.js", 9), ("a.wasm", 9)] {
            let file = fs::File::create(directory.join(file)).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(hours * 3_600);
            file.set_modified(time).unwrap();
        }
        let found = newest(&directory).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 3_600);
    }
}
