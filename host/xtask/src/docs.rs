//! `cargo xtask docs`: the pages of the documentation that come from the code. A test fails if one of
//! them differs from it.

use anyhow::{Context as _, Result};
use std::fs;

use crate::repo::Repo;
use crate::{process, say};

/// Each page, and the words after `cofferdam` that print it.
const PAGES: [(&str, &[&str]); 1] = [("config.md", &["config", "keys", "--markdown"])];

/// Writes every page.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    say("building cofferdam (about 5 minutes the first time: it holds a compiler)");
    process::run(repo.host_cargo().args(["build", "--package", "cofferdam"]))?;
    for (name, words) in PAGES {
        let path = repo.docs().join(name);
        let mut printer = repo.host_cargo();
        printer.args(["run", "--quiet", "--package", "cofferdam", "--"]).args(words);
        let page = process::read(&mut printer)?;
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}
