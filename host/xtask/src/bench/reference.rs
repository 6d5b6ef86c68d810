//! What a call costs in the loop of the reference implementation, where nothing is sandboxed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::row::Row;
use crate::repo::Repo;
use crate::{process, say};

const BATCH: &str = "100 calls in a batch: loop ";

/// Needs npm and its registry.
pub(super) fn measure(repo: &Repo) -> Result<Vec<Row>> {
    let (from, to) = (repo.reference_bench(), repo.bench().join("reference"));
    fs::create_dir_all(&to)?;
    for file in ["package.json", "bench.mjs"] {
        fs::copy(from.join(file), to.join(file))?;
    }
    say("installing the reference implementation under target/");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&to);
    process::run_within(&mut npm, Duration::from_secs(300))?;
    let printed =
        process::read(Command::new("npm").args(["run", "--silent", "bench"]).current_dir(&to))?;
    let micros = batch(&printed).with_context(|| format!("it printed no figure: {printed}"))?;
    Ok(vec![Row {
        question: "the reference's call, unsandboxed, batch of 100".into(),
        figure: format!("{micros:.2} µs"),
        target: String::new(),
        against: format!("3 × it: {:.2} µs", 3.0 * micros),
        met: None,
    }])
}

/// Microseconds per call.
fn batch(printed: &str) -> Option<f64> {
    let line = printed.lines().find_map(|line| line.strip_prefix(BATCH))?;
    line.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::batch;

    #[test]
    fn the_figure_is_found_among_the_others() {
        let printed = "node v22.23.1, microseconds per call, median\n\
            1,000 calls in a batch: loop 3.5, with agent 4\n\
            100 calls in a batch: loop 2.61, with agent 3.05\n";
        assert_eq!(batch(printed), Some(2.61));
        assert_eq!(batch("node: not found"), None);
    }
}
