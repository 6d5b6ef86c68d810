//! Figures that criterion does not give: percentiles, time from an abort to the end, memory of
//! thousands of calls. One file for each question, each asked in a process of its own.
//!
//! `cargo bench -p cofferdam-sandbox --bench figures [-- QUESTION…] [--quick]`; `cargo xtask bench`
//! prints these and those of whole processes as one table. `host/docs/speed.md` has the targets.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod abort;
mod batch;
mod fresh;
#[path = "../../tests/guest/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod guest;
mod kernels;
mod languages;
mod neighbours;
#[path = "../scene/mod.rs"]
mod scene;
mod sleepers;
mod table;

use std::process::{Command, ExitCode};
use table::Row;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How much to measure.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    quick: bool,
}

impl Effort {
    /// So many repetitions, or a tenth of them.
    fn times(self, full: usize) -> usize {
        if self.quick { full.div_ceil(10) } else { full }
    }
}

type Question = fn(Effort) -> Vec<Row>;

const QUESTIONS: [(&str, Question); 7] = [
    ("fresh", fresh::ask),
    ("batch", batch::ask),
    ("languages", languages::ask),
    ("abort", abort::ask),
    ("neighbours", neighbours::ask),
    ("sleepers", sleepers::ask),
    ("kernels", kernels::ask),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let (json, quick) = (flag("--json"), flag("--quick"));
    let asked: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let known = |name: &str| QUESTIONS.iter().find(|(known, _)| *known == name);
    if let Some(unknown) = asked.iter().find(|name| known(name).is_none()) {
        let names: Vec<&str> = QUESTIONS.iter().map(|(name, _)| *name).collect();
        eprintln!("no question is named {unknown}: there are {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    if let [name] = asked[..]
        && let Some((_, ask)) = known(name)
    {
        ask(Effort { quick }).into_iter().for_each(|row| row.print(json));
        return ExitCode::SUCCESS;
    }
    let all = QUESTIONS.iter().map(|(name, _)| *name);
    let chosen = all.filter(|name| asked.is_empty() || asked.iter().any(|asked| asked == name));
    let failed = chosen.filter(|name| !ask_apart(name, json, quick)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Asks in a process of its own: the memory and the threads of one question are no other's.
fn ask_apart(name: &str, json: bool, quick: bool) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(name);
    command.args(json.then_some("--json")).args(quick.then_some("--quick"));
    command.status().is_ok_and(|status| status.success())
}
