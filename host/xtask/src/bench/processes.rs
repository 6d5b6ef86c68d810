//! Whole processes of the released binary: one call of a plugin that was compiled before, and the
//! start of a host with twenty of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use super::row::Row;
use crate::repo::Repo;

/// Samples that every checkout can build, which the host of twenty plugins is made of.
const SAMPLES: [&str; 5] = ["calc", "fetch", "files", "redact", "unruly"];
const PLUGINS: usize = 20;

pub(super) fn measure(repo: &Repo, quick: bool) -> Result<Vec<Row>> {
    let place = repo.bench();
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    let times = if quick { 5 } else { 50 };
    let host = Host { program: repo.released("cofferdam"), place };
    let mut rows = Vec::new();
    for (name, tool, arguments, most_ms) in [
        ("calc", "calc", r#"{"expressions":["1/3 + 1/6"]}"#, 15.0),
        ("words", "count_words", r#"{"text":"a word is a word"}"#, 15.0),
        ("stats", "describe_numbers", r#"{"numbers":[3,4,5]}"#, 20.0),
    ] {
        let file = repo.components().join(format!("{name}.wasm"));
        if !file.exists() {
            continue;
        }
        let call = || {
            let mut command = host.command();
            command.args(["plugin", "call"]).arg(&file).args([tool, arguments]);
            command
        };
        let question = format!("`plugin call` of {name}, compiled before, whole process");
        rows.push(Row::millis(&question, median(call, times)?, most_ms));
    }
    let config = host.with_plugins(repo)?;
    let start = || {
        let mut command = host.command();
        command.args(["run", "--print", "--allow-unpinned", "--config"]).arg(&config).arg("hello");
        command
    };
    let question = format!("`run` with {PLUGINS} plugins, compiled before, to the end");
    rows.push(Row::millis(&question, median(start, times)?, 100.0));
    Ok(rows)
}

/// The released binary, with its caches in a directory of this measurement.
struct Host {
    program: PathBuf,
    place: PathBuf,
}

impl Host {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.place)
            .env("COFFERDAM_CACHE_DIR", self.place.join("compiled"))
            .env("COFFERDAM_STATE_DIR", self.place.join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// An operator's file with twenty plugins, no two of which are the same file.
    fn with_plugins(&self, repo: &Repo) -> Result<PathBuf> {
        let mut text = "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n".to_owned();
        for index in 0..PLUGINS {
            let sample = SAMPLES[index % SAMPLES.len()];
            let name = format!("{sample}{index}");
            copy_as_another(
                &repo.components().join(format!("{sample}.wasm")),
                &self.place.join(format!("{name}.wasm")),
                &name,
            )?;
            text += &format!(
                "[[plugins]]\nname = \"{name}\"\npath = \"{name}.wasm\"\nprefix = \"p{index}_\"\n"
            );
        }
        let answer = r#"[{"content": [{"type": "text", "text": "hi"}], "stop_reason": "stop"}]"#;
        fs::write(self.place.join("answers.json"), answer)?;
        let config = self.place.join("cofferdam.toml");
        fs::write(&config, text)?;
        Ok(config)
    }
}

/// A component with one more custom section: the same plugin, and yet another file.
fn copy_as_another(from: &Path, to: &Path, name: &str) -> Result<()> {
    let mut bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    // Section 0: its size, then its name with its length. None of them needs a second byte.
    let length = u8::try_from(name.len())?;
    bytes.extend([0, length + 1, length]);
    bytes.extend(name.as_bytes());
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}

/// In milliseconds. The first run, which compiles, does not count.
fn median(command: impl Fn() -> Command, times: usize) -> Result<f64> {
    let mut taken = Vec::new();
    for _ in 0..=times {
        let began = Instant::now();
        let status = command().status().context("cannot start the released binary")?;
        taken.push(began.elapsed().as_secs_f64() * 1e3);
        ensure!(status.success(), "the released binary failed ({status})");
    }
    taken.remove(0);
    taken.sort_by(f64::total_cmp);
    Ok(taken[taken.len() / 2])
}
