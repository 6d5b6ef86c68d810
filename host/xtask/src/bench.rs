//! `cargo xtask bench`: the figures that targets are set on, as one table.
//!
//! Those of the sandbox come from its bench `figures`; those of whole processes and of the reference
//! implementation are measured here. `host/docs/speed.md` says what each figure means.

mod processes;
mod reference;
mod row;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::guests;
use crate::repo::Repo;
use crate::{process, say};
use row::Row;

/// What to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Ask these questions alone.
    #[arg(value_name = "QUESTION")]
    questions: Vec<String>,
    /// Measure a tenth: enough to see that everything runs.
    #[arg(long)]
    quick: bool,
    /// Run the criterion benchmarks of the host instead, which compare with the run before.
    #[arg(long, conflicts_with_all = ["questions", "quick"])]
    criterion: bool,
}

/// Of the bench `figures`, in its order.
const FIGURES: [&str; 7] =
    ["fresh", "batch", "languages", "abort", "neighbours", "sleepers", "kernels"];
const FIGURES_BENCH: &str = "figures";
const PROCESSES: &str = "processes";
const REFERENCE: &str = "reference";

/// Measures, and prints the table line by line.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    if options.criterion {
        let mut cargo = repo.host_cargo();
        cargo.args(["bench", "--workspace", "--bench", "agent_loop", "--bench", "sandbox"]);
        cargo.args(["--bench", "stream", "--bench", "session"]);
        return process::run(&mut cargo);
    }
    let known: Vec<&str> = FIGURES.into_iter().chain([PROCESSES, REFERENCE]).collect();
    if let Some(unknown) = options.questions.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no question is named {unknown}: there are {}", known.join(", "));
    }
    let asked =
        |name: &str| options.questions.is_empty() || options.questions.iter().any(|q| q == name);
    let figures: Vec<&str> = FIGURES.into_iter().filter(|name| asked(name)).collect();
    guests::run(repo, &guests::Options { plain: true, ..guests::Options::default() })?;
    say("building what is measured (about 10 minutes the first time)");
    // As one selection, so that the engine is built once.
    let mut cargo = repo.host_cargo();
    cargo.args([
        "build",
        "--release",
        "--workspace",
        "--bin",
        "cofferdam",
        "--bench",
        FIGURES_BENCH,
    ]);
    process::run(&mut cargo)?;
    println!("{}\n{}", machine(), row::HEAD);
    let mut missed = 0;
    let mut print = |row: Row| {
        missed += usize::from(row.met == Some(false));
        row.print();
    };
    if !figures.is_empty() {
        sandbox(repo, &figures, options.quick, &mut print)?;
    }
    if asked(PROCESSES) {
        processes::measure(repo, options.quick)?.into_iter().for_each(&mut print);
    }
    if asked(REFERENCE) {
        match reference::measure(repo) {
            Ok(rows) => rows.into_iter().for_each(&mut print),
            Err(error) => say(&format!("left out: the reference implementation: {error:#}")),
        }
    }
    say(&format!("{missed} targets missed"));
    Ok(())
}

/// Runs the bench `figures` and hands on each row as it comes.
fn sandbox(
    repo: &Repo,
    questions: &[&str],
    quick: bool,
    print: &mut impl FnMut(Row),
) -> Result<()> {
    let mut cargo = repo.host_cargo();
    cargo.args(["bench", "--quiet", "--workspace", "--bench", FIGURES_BENCH, "--"]);
    cargo.args(questions).arg("--json").args(quick.then_some("--quick"));
    let mut bench = cargo.stdout(Stdio::piped()).spawn().context("cannot start cargo bench")?;
    let out = bench.stdout.take().context("cargo bench has no output")?;
    for line in BufReader::new(out).lines() {
        let line = line?;
        print(serde_json::from_str(&line).with_context(|| format!("no row: {line}"))?);
    }
    ensure!(bench.wait()?.success(), "the bench `figures` failed");
    Ok(())
}

/// On what it was measured, and what else the machine had to do.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let name = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{processors} × {name}, Linux {}, load {}",
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
    )
}
