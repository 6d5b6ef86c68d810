//! `cofferdam plugin test`: scripted cases of a plugin, each behind the wall of a real call.

use crate::args::TestArgs;
use crate::exit::{DONE, Exit, FAILED, Refused as _};
use crate::render::{Output, Paint};
use anyhow::{Context as _, ensure};
use cofferdam_app::cases::{Bench, Cases, Report};
use cofferdam_sandbox::text::harmless;
use cofferdam_sandbox::{Code, PluginSource, SandboxConfig};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, SystemTime};

pub(crate) async fn run(args: &TestArgs) -> anyhow::Result<Exit> {
    if !args.watch {
        return once(args).await;
    }
    // One for all rounds: an interrupt counts while cases run, too.
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let seen = stamps(args);
        tokio::select! {
            came = once(args) => if let Err(problem) = came {
                Output::Err.line(&format!("error: {problem:#}"));
            },
            _ = &mut interrupted => return Ok(DONE),
        }
        Output::Err.line("watching; interrupt to end");
        tokio::select! {
            () = changed(args, &seen) => {}
            _ = &mut interrupted => return Ok(DONE),
        }
    }
}

async fn once(args: &TestArgs) -> anyhow::Result<Exit> {
    let cases = Cases::read(&args.cases).refused()?;
    let wanted = |name: &str| args.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let chosen: Vec<_> = cases.cases.iter().filter(|case| wanted(&case.name)).collect();
    let count = chosen.len();
    check_count(count, args).refused()?;
    std::fs::metadata(&args.file)
        .with_context(|| format!("read {}", args.file.display()))
        .refused()?;
    let mut bench =
        Bench::new(SandboxConfig { slots: 4, ..super::sandbox_config() }, source(&args.file))?;
    let mut failed = 0;
    for case in chosen {
        let report = bench.run(case, args.bless).await;
        failed += usize::from(!report.problems.is_empty());
        match args.json {
            true => Output::Out.json(&to_json(&report)),
            false => Output::Out.painted(&line(&report)),
        }
    }
    if !args.json {
        Output::Out.line(&format!("{} passed, {failed} failed", count - failed));
    }
    Ok(if failed == 0 { DONE } else { FAILED })
}

/// A test of nothing passes for ever.
fn check_count(count: usize, args: &TestArgs) -> anyhow::Result<()> {
    let cases = args.cases.display();
    match &args.only {
        Some(only) => ensure!(count > 0, "{cases} has no case whose name holds `{only}`"),
        None => ensure!(count > 0, "{cases} has no [[case]]"),
    }
    Ok(())
}

fn source(file: &Path) -> PluginSource {
    PluginSource {
        name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        code: Code::Path(file.to_owned()),
        sha256: None,
        accept_text: true,
    }
}

fn line(report: &Report) -> String {
    let paint = Paint::of_stdout();
    let figure = |key: &str| report.receipt.as_ref()?.get(key)?.as_u64();
    let mut line = match report.problems.is_empty() {
        true => paint.green(&format!("✓ {}", harmless(&report.name))),
        false => paint.red(&format!("✗ {}", harmless(&report.name))),
    };
    if let Some(wall) = figure("wall_us") {
        line.push_str(&format!("  {:.1} ms", wall as f64 / 1_000.0));
    }
    if let Some(fuel) = figure("fuel") {
        line.push_str(&format!(", fuel {fuel}"));
    }
    if report.blessed {
        line.push_str(", golden file written");
    }
    for problem in &report.problems {
        line.push_str(&format!("\n    {}", harmless(problem).replace('\n', "\n    ")));
    }
    line
}

fn to_json(report: &Report) -> Value {
    let passed = report.problems.is_empty();
    json!({
        "name": report.name,
        "passed": passed,
        "problems": report.problems,
        "receipt": report.receipt,
        "blessed": report.blessed,
    })
}

/// When the files were last written.
fn stamps(args: &TestArgs) -> [Option<SystemTime>; 2] {
    [&args.file, &args.cases].map(|path| path.metadata().and_then(|found| found.modified()).ok())
}

/// Returns when a file is another one than was seen, and whole for as long as a look takes.
async fn changed(args: &TestArgs, seen: &[Option<SystemTime>; 2]) {
    const LOOK: Duration = Duration::from_millis(250);
    let mut before = *seen;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = stamps(args);
        if now != *seen && now == before {
            return;
        }
        before = now;
    }
}
