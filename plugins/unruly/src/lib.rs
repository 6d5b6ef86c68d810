//! Tools that misbehave, each in its own way, to see what the host does about it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what happens to standard output is one of the things to see"
)]

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use cofferdam_plugin::{Deserialize, JsonSchema, Result, call, export, log, tool};

const NAP_MS: u64 = 100_000;
const HOARD_STEP_BYTES: usize = 1024 * 1024;
const PATIENT_STEP: Duration = Duration::from_millis(50);
const CHATTER_LINES: u64 = 1_000_000;

#[derive(Deserialize, JsonSchema)]
struct Crash {
    /// What the panic says.
    message: String,
}

/// Panics. The host shows the message, from the tail of standard error.
fn crash(args: Crash) -> Result<()> {
    panic!("{}", args.message)
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Computes for ever. Fuel or time ends it.
fn spin(_: Nothing) -> Result<()> {
    for step in 0_u64.. {
        black_box(step);
    }
    Ok(())
}

/// Takes memory until there is no more. The memory limit ends it.
fn hoard(_: Nothing) -> Result<()> {
    let mut hoard = Vec::new();
    loop {
        hoard.push(vec![1_u8; HOARD_STEP_BYTES]);
        black_box(&hoard);
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nap {
    /// How long, in milliseconds; 100000 if absent.
    ms: Option<u64>,
}

/// Sleeps in the host, where no counting of instructions reaches it. Time ends it.
fn nap(args: Nap) -> Result<String> {
    let ms = args.ms.unwrap_or(NAP_MS);
    thread::sleep(Duration::from_millis(ms));
    Ok(format!("slept {ms} ms"))
}

/// Works until told to stop, and then ends tidily: the one well-behaved tool here.
fn patient(_: Nothing) -> Result<String> {
    let mut steps = 0_u64;
    while !call::is_cancelled() {
        steps += 1;
        if steps % 10 == 0 {
            call::progress(format!("step {steps}, {} ms left", call::remaining().as_millis()));
        }
        thread::sleep(PATIENT_STEP);
    }
    Ok(format!("stopped tidily after {steps} steps"))
}

#[derive(Deserialize, JsonSchema)]
struct Chatter {
    /// How many lines on each channel; 1000000 if absent.
    lines: Option<u64>,
}

/// Says too much everywhere: progress, log, standard output and standard error.
fn chatter(args: Chatter) -> Result<String> {
    let lines = args.lines.unwrap_or(CHATTER_LINES);
    for line in 0..lines {
        let text = format!("line {line} of far too many");
        call::progress(&text);
        log::info(&text);
        println!("{text}");
        eprintln!("{text}");
    }
    Ok(format!("said {lines} lines on each channel"))
}

export! {
    tools: [
        tool("crash", "Panics with a message.", crash),
        tool("spin", "Loops for ever.", spin),
        tool("hoard", "Allocates memory until it is stopped.", hoard),
        tool("nap", "Sleeps.", nap),
        tool("patient", "Works until it is cancelled, then ends tidily.", patient),
        tool("chatter", "Floods progress, log and standard output.", chatter),
    ],
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_plugin::testing;

    #[test]
    #[should_panic(expected = "on purpose")]
    fn crash_says_what_it_was_told() {
        let _ = crash(Crash { message: "on purpose".to_owned() });
    }

    #[test]
    fn patient_heeds_cancellation() {
        let _host = testing::host().cancelled();
        assert_eq!(patient(Nothing {}).unwrap(), "stopped tidily after 0 steps");
    }

    #[test]
    fn chatter_is_heard() {
        let host = testing::host();
        chatter(Chatter { lines: Some(2) }).unwrap();
        assert_eq!(host.progress(), ["line 0 of far too many", "line 1 of far too many"]);
        assert_eq!(host.logs().len(), 2);
    }
}
