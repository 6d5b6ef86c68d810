//! `conformance [--tools native|wasm] [--puppet FILE] SCENARIO.json`: plays one scenario and prints its
//! trace, one JSON object for each line. Exit status 77, with the reason on standard error, for a
//! scenario that cannot be played that way; 2 if nothing can be played.

use cofferdam_tests::conformance::{Delays, Stage, Tools, Unplayed, play};
use cofferdam_tests::root;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
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
    let Arguments { wasm, puppet, path } = arguments().map_err(|message| (2, message))?;
    let failed = |what: &str, error: &dyn std::fmt::Display| (1, format!("{what} {path}: {error}"));
    let text = std::fs::read_to_string(&path).map_err(|error| failed("read", &error))?;
    let scenario: Value = serde_json::from_str(&text).map_err(|error| failed("parse", &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .map_err(|error| failed("start a runtime for", &error))?;
    let tools = match wasm {
        true => Tools::Wasm(runtime.block_on(Stage::open(&puppet)).map_err(|error| (2, error))?),
        false => Tools::Native,
    };
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

struct Arguments {
    wasm: bool,
    puppet: PathBuf,
    path: String,
}

fn arguments() -> Result<Arguments, String> {
    let usage =
        || "usage: conformance [--tools native|wasm] [--puppet FILE] SCENARIO.json".to_owned();
    let mut wasm = false;
    let mut puppet = root().join("target/plugins/puppet.wasm");
    let mut path = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--tools" => {
                wasm = match arguments.next().as_deref() {
                    Some("native") => false,
                    Some("wasm") => true,
                    _ => return Err(usage()),
                };
            }
            "--puppet" => puppet = arguments.next().ok_or_else(usage)?.into(),
            _ if path.is_none() && !argument.starts_with('-') => path = Some(argument),
            _ => return Err(usage()),
        }
    }
    Ok(Arguments { wasm, puppet, path: path.ok_or_else(usage)? })
}
