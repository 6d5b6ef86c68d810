//! `cofferdam rpc`: the client of `host/docs/rpc.md`, and a pipe that nobody reads.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry, says};
use cofferdam_tests::{root, run};
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
