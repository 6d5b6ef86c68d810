//! Files that change under `rpc` and `mcp`.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry_of, says};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A component with one function, `say`, that answers a number; and its entry, pinned.
fn saying(path: &Path, number: u32) -> String {
    let text = format!(
        "(component (core module $m (func (export \"f\") (result i32) i32.const {number})) \
         (core instance $i (instantiate $m)) \
         (func (export \"say\") (result u32) (canon lift (core func $i \"f\"))))"
    );
    let bytes = wat::parse_str(text).unwrap();
    std::fs::write(path, &bytes).unwrap();
    let pin = format!("sha256 = \"{}\"", cofferdam_sandbox::sha256_hex(&bytes));
    entry_of("p", path, &pin)
}

/// A process that takes lines of JSON and gives lines of JSON.
struct Peer {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    fn new(setup: &Setup, words: &[&str]) -> Self {
        let mut command = cofferdam();
        command.args(words).arg("--config").arg(setup.path("cofferdam.toml"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, output }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// Reads on to a line for which this holds.
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.output.next().expect("the process is gone").unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            if fits(&line) {
                return line;
            }
        }
    }

    fn end(self) {
        let Self { mut process, input, output } = self;
        drop((input, output));
        process.wait().unwrap();
    }
}

/// Replaces the plugin's entry in the operator's file.
fn replace(setup: &Setup, from: &str, to: &str) {
    let file = setup.path("cofferdam.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&file, text.replace(from, to)).unwrap();
}

#[test]
fn rpc_takes_a_pinned_file_at_the_next_run_and_tells_of_one_that_is_not() {
    let script = [calls(&[("c", "say", json!({}))]), says("done")];
    let script: Vec<Value> = std::iter::repeat_n(script, 3).flatten().collect();
    let setup = Setup::new("", &json!(script));
    let plugin = setup.path("p.wasm");
    let one = saying(&plugin, 1);
    replace(&setup, "script = \"answers.json\"\n", &format!("script = \"answers.json\"\n{one}"));
    let mut peer = Peer::new(&setup, &["rpc", "--no-session"]);
    let run = |peer: &mut Peer| {
        peer.send(&json!({"type": "prompt", "text": "go"}));
        let end = peer.until(|line| line["event"] == "tool_execution_end");
        peer.until(|line| line["type"] == "run_end");
        end["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(&mut peer), "1");
    let two = saying(&plugin, 2);
    peer.send(&json!({"type": "reload", "id": 1}));
    let answer = peer.until(|line| line["type"] == "answer" && line["id"] == 1);
    assert_eq!(answer["result"]["changed"], false, "{answer}");
    let told = answer["result"]["messages"][0].as_str().unwrap();
    assert!(told.contains("in force stays") && told.contains("plugin allow"), "{told}");
    assert_eq!(run(&mut peer), "1");
    replace(&setup, &one, &two);
    peer.send(&json!({"type": "prompt", "text": "go"}));
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &Value| line["type"] != "run_end") {
        lines.push(peer.until(|_| true));
    }
    let end = lines.iter().find(|line| line["event"] == "tool_execution_end").unwrap();
    assert_eq!(end["result"]["content"][0]["text"], "2");
    let told = |line: &&Value| {
        line["type"] == "notice" && line["message"].as_str().unwrap().contains("another file")
    };
    assert!(lines.iter().any(|line| told(&line)), "{lines:#?}");
    peer.end();
}

#[test]
fn mcp_tells_its_client_that_the_tools_changed() {
    let setup = Setup::new("", &json!([]));
    let plugin = setup.path("p.wasm");
    let entry = saying(&plugin, 1);
    replace(&setup, "script = \"answers.json\"\n", &format!("script = \"answers.json\"\n{entry}"));
    let mut peer = Peer::new(&setup, &["mcp"]);
    peer.send(&json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }));
    peer.until(|line| line["id"] == 0);
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = |peer: &mut Peer, id: u32, name: &str| {
        peer.send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": name, "arguments": {}},
        }));
        peer.until(|line| line["id"] == id)
    };
    assert_eq!(call(&mut peer, 1, "say")["result"]["content"][0]["text"], "1");
    let two = saying(&plugin, 2);
    replace(&setup, &entry, &format!("{two}prefix = \"they_\"\n"));
    peer.until(|line| line["method"] == "notifications/tools/list_changed");
    peer.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let listed = peer.until(|line| line["id"] == 2);
    assert_eq!(listed["result"]["tools"][0]["name"], "they_say", "{listed}");
    assert_eq!(call(&mut peer, 3, "they_say")["result"]["content"][0]["text"], "2");
    // The same name, other code: the next call has it, whoever is told.
    let three = saying(&plugin, 3);
    replace(&setup, &two, &three);
    assert_eq!(call(&mut peer, 4, "they_say")["result"]["content"][0]["text"], "3");
    peer.end();
}
