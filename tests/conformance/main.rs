//! `conformance [--tools native|wasm] SCENARIO.json`: plays one scenario and prints its trace, one
//! JSON object for each line. Exit status 77, with the reason on standard error, for a scenario that
//! cannot be played that way.

use cofferdam_tests::conformance::{Delays, Tools, Unplayed, play};
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// Longer than any scenario waits on purpose.
const LIMIT: Duration = Duration::from_secs(30);

const UNPLAYABLE: u8 = 77;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => {
            // A reader that has gone away is no reason to fail differently.
            let _ = writeln!(std::io::stderr(), "{message}");
            ExitCode::from(code)
        }
    }
}

fn run() -> Result<(), (u8, String)> {
    let (tools, path) = arguments().map_err(|message| (2, message))?;
    let failed = |what: &str, error: &dyn std::fmt::Display| (1, format!("{what} {path}: {error}"));
    let text = std::fs::read_to_string(&path).map_err(|error| failed("read", &error))?;
    let scenario: Value = serde_json::from_str(&text).map_err(|error| failed("parse", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .map_err(|error| failed("start a runtime for", &error))?;
    let trace = runtime.block_on(play(scenario, tools, Delays::default(), LIMIT));
    runtime.shutdown_background();
    let records = trace.map_err(|why| match why {
        Unplayed::Unplayable(reason) => (UNPLAYABLE, reason),
        Unplayed::TimedOut => (1, format!("{path} did not end within {LIMIT:?}")),
    })?;
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::io::stdout()
        .write_all(lines.as_bytes())
        .map_err(|error| failed("print the trace of", &error))
}

fn arguments() -> Result<(Tools, String), String> {
    let usage = || "usage: conformance [--tools native|wasm] SCENARIO.json".to_owned();
    let mut tools = Tools::default();
    let mut path = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--tools" => {
                tools = match arguments.next().as_deref() {
                    Some("native") => Tools::Native,
                    Some("wasm") => Tools::Wasm,
                    _ => return Err(usage()),
                };
            }
            _ if path.is_none() && !argument.starts_with('-') => path = Some(argument),
            _ => return Err(usage()),
        }
    }
    Ok((tools, path.ok_or_else(usage)?))
}
