//! `cofferdam rpc`: the client of `host/docs/rpc.md`, and a pipe that nobody reads.

use crate::cofferdam;
use crate::observing::{noted, scrape};
use crate::runs::{Setup, calls, entry, says};
use cofferdam_tests::{hostile_line, root, run};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

fn setup() -> Setup {
    let config = [entry("calc", ""), "[approval]\nask = [\"calc\"]\n".into()].concat();
    let script = json!([
        calls(&[("c1", "calc", json!({"expressions": ["6 * 7"]}))]),
        says("It is ${results.c1}."),
    ]);
    Setup::new(&config, &script)
}

fn rpc(setup: &Setup) -> Command {
    let mut command = cofferdam();
    command.args(["rpc", "--allow-unpinned", "--no-session", "--config"]);
    command.arg(setup.path("cofferdam.toml"));
    command
}

/// The block of Python in the documentation.
fn client() -> String {
    let text = std::fs::read_to_string(root().join("host/docs/rpc.md")).unwrap();
    let (_, rest) = text.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_client_of_the_documentation_works_as_printed() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("LEFT OUT: there is no python3");
        return;
    }
    let setup = setup();
    std::fs::write(setup.path("client.py"), client()).unwrap();
    let binary = cofferdam();
    let folder = Path::new(binary.get_program()).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path)));
    let mut client = Command::new("python3");
    client.arg(setup.path("client.py")).arg(setup.path("cofferdam.toml")).arg("What is 6 times 7?");
    client.args(["--allow-unpinned", "--no-session"]).env("PATH", path.unwrap());
    client.envs(binary.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let ran = run(&mut client);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out, "call: calc done\nIt is 6 * 7 = 42.\nend: finished\n");
}

#[test]
fn the_end_of_input_ends_the_process_and_nonsense_is_answered() {
    let setup = setup();
    let mut server = rpc(&setup).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    input.write_all(b"nonsense\n{\"id\":1,\"type\":\"state\"}\n{\"id\":2,\"type\":\"sta").unwrap();
    drop(input);
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let lines: Vec<Value> =
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let kinds: Vec<_> =
        lines.iter().map(|line| (line["type"].as_str(), line["ok"].as_bool())).collect();
    let answer = |ok| (Some("answer"), Some(ok));
    assert_eq!(kinds, [(Some("hello"), None), answer(false), answer(true), answer(false)]);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn a_configuration_that_cannot_be_used_is_refused_before_any_line() {
    let ran = run(cofferdam().args(["rpc", "--config", "missing.toml"]));
    assert_eq!((ran.code, &*ran.out), (3, ""), "{ran:?}");
}

/// Checks lines that come out against the schema of the documentation.
fn line_schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join("host/docs/rpc.schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&text).unwrap();
    schema["$ref"] = "#/$defs/line".into();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn ten_thousand_hostile_lines_through_the_pipe_while_runs_come_and_go() {
    let config = entry("unruly", "limits = { wall_ms = 600000 }");
    let script = json!([
        calls(&[("c1", "patient", json!({})), ("c2", "chatter", json!({"lines": 20}))]),
        says("Stopped, then."),
    ]);
    let setup = Setup::new(&config, &script);
    let mut server = rpc(&setup).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        input.write_all(b"{\"type\":\"prompt\",\"text\":\"go\"}\n").unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let mut sent = 1;
        for _ in 0..10_000 {
            let line = hostile_line(&mut state);
            sent += usize::from(!line.trim_ascii().is_empty());
            input.write_all(&[&line[..], b"\n"].concat()).unwrap();
        }
        sent
    });
    let schema = line_schema();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(schema.is_valid(&line), "{line}");
        line
    });
    let (mut answered, mut began, mut ended) = (0, 0, 0);
    for line in lines {
        answered += usize::from(line["type"] == "answer");
        began += usize::from(line["event"] == "agent_start");
        ended += usize::from(line["type"] == "run_end");
    }
    assert_eq!(answered, writer.join().unwrap());
    assert!(began > 0 && began == ended, "{began} runs began, {ended} ended");
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// KiB that the process has in memory.
#[cfg(target_os = "linux")]
fn resident_kib(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_that_stops_holds_up_no_run_and_fills_no_memory() {
    const TURNS: usize = 20;
    const LINES: usize = 500;
    let config = entry("unruly", "limits = { wall_ms = 600000 }");
    let batch = |turn: usize| {
        let ids: Vec<String> = (0..5).map(|call| format!("c{turn}-{call}")).collect();
        let call = |id| (id, "chatter", json!({"lines": LINES}));
        calls(&ids.iter().map(|id| call(id.as_str())).collect::<Vec<_>>())
    };
    let script: Vec<Value> = (0..TURNS).map(batch).chain([says("Enough.")]).collect();
    let setup = Setup::new(&config, &script.into());
    let mut command = rpc(&setup);
    command.args(["--metrics", "127.0.0.1:0"]);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = streams.spawn().unwrap();
    let mut notes = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let figures = noted(&mut notes, "metrics on ");
    let before = resident_kib(server.id());
    let mut input = server.stdin.take().unwrap();
    input.write_all(b"{\"type\":\"prompt\",\"text\":\"go\"}\n").unwrap();
    // Nobody reads until the run is over.
    let over = "cofferdam_runs_total{end=\"finished\"} 1";
    while !scrape(&figures).contains(over) {
        assert!(server.try_wait().unwrap().is_none(), "the server ended");
    }
    let grown = resident_kib(server.id()).saturating_sub(before);
    assert!(grown < 256 * 1024, "{grown} KiB more");
    input.write_all(b"{\"type\":\"messages\"}\n").unwrap();
    drop(input);
    let schema = line_schema();
    let (mut reports, mut ends, mut total) = (0, 0, 0);
    for line in BufReader::new(server.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(schema.is_valid(&line), "{line}");
        reports += usize::from(line["event"] == "tool_execution_update");
        ends += usize::from(line["event"] == "tool_execution_end");
        total = line["result"]["total"].as_u64().unwrap_or(total);
    }
    assert_eq!(total as usize, 2 + TURNS * 6, "messages");
    assert_eq!(ends, TURNS * 5);
    assert!(reports < TURNS * 5 * 50, "{reports} reports were not joined");
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
