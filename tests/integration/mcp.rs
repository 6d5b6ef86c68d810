//! `cofferdam mcp`, walked by the official clients: `pip install mcp` and
//! `npm install @modelcontextprotocol/sdk`. Where they are not installed, these tests say so and pass.
//!
//! `COFFERDAM_PYTHON` names the interpreter that has `mcp` (default `python3`), and
//! `COFFERDAM_NODE_DIR` the folder whose `node_modules` has the package (default: `tests/mcp`).

use crate::cofferdam;
use crate::observing::{noted, scrape};
use crate::runs::{entry, entry_of};
use cofferdam_tests::{Ran, plugin, root, run};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An official client, ready to be started on one of `tests/mcp`'s scripts.
struct Walker(Command);

impl Walker {
    fn python() -> Option<Self> {
        let python = std::env::var_os("COFFERDAM_PYTHON").unwrap_or("python3".into());
        let probe = Command::new(&python).args(["-c", "from mcp import Client"]).output();
        let mut walker = Command::new(python);
        walker.arg(root().join("tests/mcp/client.py"));
        installed(probe, "the Python client: pip install mcp")?;
        Some(Self(walker))
    }

    fn node() -> Option<Self> {
        let folder = match std::env::var_os("COFFERDAM_NODE_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => root().join("tests/mcp"),
        };
        let probe = Command::new("node")
            .args(["-e", "require.resolve('@modelcontextprotocol/sdk/client/index.js')"])
            .current_dir(&folder)
            .output();
        let mut walker = Command::new("node");
        walker.arg(root().join("tests/mcp/client.mjs")).current_dir(&folder);
        installed(probe, "the TypeScript client: npm install @modelcontextprotocol/sdk")?;
        Some(Self(walker))
    }
}

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn installed(probe: std::io::Result<std::process::Output>, what: &str) -> Option<()> {
    if probe.is_ok_and(|output| output.status.success()) {
        return Some(());
    }
    eprintln!("LEFT OUT: {what}");
    None
}

/// An operator's file without a model: tools that work, tools that misbehave, a guard, a question.
pub(crate) fn setup() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = [
        entry("calc", ""),
        entry(
            "files",
            "grants.files = [{ host = \".\", guest = \"/workspace\", access = \"read-write\" }]",
        ),
        entry("guard", "grants.config = { allow = \"notes/**\" }"),
        entry("unruly", "limits = { wall_ms = 1500, fuel = 1_000_000_000_000 }"),
        entry_of("calm", &plugin("unruly"), "prefix = \"calm_\""),
        "[[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"write_*\"]\n".into(),
        "[approval]\nask = [\"grep\"]\n".into(),
    ]
    .concat();
    std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
    folder
}

pub(crate) fn command(folder: &TempDir) -> Command {
    let mut command = cofferdam();
    command.args(["mcp", "--allow-unpinned", "--config"]).arg(folder.path().join("cofferdam.toml"));
    command
}

/// A server on HTTP; it ends with the test.
pub(crate) struct Listening {
    server: Child,
    /// Such as `127.0.0.1:40001`.
    pub(crate) address: String,
    metrics: String,
    _folder: TempDir,
}

impl Listening {
    pub(crate) fn new(more: &[&str]) -> Self {
        let folder = setup();
        let mut command = command(&folder);
        command.args(["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]).args(more);
        let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
        let metrics = noted(&mut lines, "metrics on ");
        let address = noted(&mut lines, "listening on ");
        // Read on, so that the server's notes do not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { server, address, metrics, _folder: folder }
    }

    /// The whole answer to one request.
    fn request(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Every client must have seen the same.
fn check(ran: &Ran, http: bool) {
    assert_eq!(ran.code, 0, "{ran:?}");
    let saw = ran.json();
    assert_eq!(saw["server"], "cofferdam");
    let tools: Vec<&str> =
        saw["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for tool in ["calc", "calm_patient", "crash", "write_file"] {
        assert!(tools.contains(&tool), "{tools:?}");
    }
    for (step, ended_by, says) in [
        ("sum", None, "1/2"),
        ("trap", Some("trap"), "on purpose"),
        ("timeout", Some("time-limit"), "1500"),
        ("blocked", Some("blocked"), "secret.txt"),
        ("asked", Some("not-approved"), "there is nobody to ask"),
        ("invalid", Some("invalid-arguments"), "ms"),
        ("progress", None, "said 20 lines"),
        ("after", None, "42"),
    ] {
        let got = &saw[step];
        assert_eq!(got["ended_by"].as_str(), ended_by, "{step}: {got}");
        assert_eq!(got["is_error"], ended_by.is_some(), "{step}: {got}");
        assert!(got["text"].as_str().unwrap().contains(says), "{step}: {got}");
    }
    assert!(saw["sum"]["fuel"].as_u64().unwrap() > 0, "{saw}");
    assert!(saw["missing"].as_str().unwrap().contains("There is no tool"), "{saw}");
    let reports = saw["reports"].as_array().unwrap();
    // Joined, and the TypeScript client forgets those that it reads together with the result.
    assert!((1..=20).contains(&reports.len()), "{saw}");
    assert_eq!(saw["cancelled"], true, "{saw}");
    assert_eq!(saw["changed"].as_bool(), http.then_some(true), "{saw}");
}

fn on_streams(walker: Option<Walker>) {
    let Some(Walker(mut walker)) = walker else { return };
    let folder = setup();
    let server = command(&folder);
    walker.arg("stdio").arg(server.get_program()).args(server.get_args());
    walker.envs(server.get_envs().filter_map(|(key, value)| Some((key, value?))));
    check(&run(&mut walker), false);
}

fn on_http(walker: Option<Walker>) {
    let Some(Walker(mut walker)) = walker else { return };
    let listening = Listening::new(&[]);
    let url = format!("http://{}/mcp", listening.address);
    walker.args(["http", &url]).arg(listening.server.id().to_string());
    check(&run(&mut walker), true);
    let figures = scrape(&listening.metrics);
    for sample in [
        "cofferdam_tool_calls_total{tool=\"calc\",end=\"ok\"} 2",
        "cofferdam_tool_calls_total{tool=\"crash\",end=\"trap\"} 1",
        "cofferdam_tool_calls_total{tool=\"spin\",end=\"time-limit\"} 1",
        "cofferdam_tool_calls_total{tool=\"write_file\",end=\"blocked\"} 1",
        "cofferdam_tool_calls_total{tool=\"calm_patient\",end=\"ok\"} 1",
        "cofferdam_tool_calls_total{tool=\"other\",end=\"unknown-tool\"} 1",
    ] {
        assert!(figures.contains(sample), "{sample}\n{figures}");
    }
}

#[test]
fn the_official_python_client_walks_the_server_on_streams() {
    on_streams(Walker::python());
}

#[test]
fn the_official_python_client_walks_the_server_on_http() {
    on_http(Walker::python());
}

#[test]
fn the_official_typescript_client_walks_the_server_on_streams() {
    on_streams(Walker::node());
}

#[test]
fn the_official_typescript_client_walks_the_server_on_http() {
    on_http(Walker::node());
}

#[test]
fn web_pages_and_foreign_names_are_turned_away() {
    let listening = Listening::new(&["--allow-origin", "http://localhost:6274"]);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let post = |headers: &str| {
        let request = format!(
            "POST /mcp HTTP/1.1\nAccept: application/json, text/event-stream\n\
             Content-Type: application/json\nContent-Length: {}\nConnection: close\n{headers}\n\n{ping}",
            ping.len()
        );
        let answer = listening.request(&request);
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let host = format!("Host: {}", listening.address);
    assert_eq!(post("Host: evil.example"), "403");
    assert_eq!(post(&format!("{host}\nOrigin: http://evil.example")), "403");
    assert_eq!(post(&format!("{host}\nOrigin: null")), "403");
    assert_ne!(post(&format!("{host}\nOrigin: http://localhost:6274")), "403");
    assert_ne!(post(&host), "403");
    let elsewhere = listening.request(&format!("GET / HTTP/1.1\n{host}\nConnection: close\n\n"));
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
}

#[test]
fn an_address_that_others_reach_needs_a_word() {
    let folder = setup();
    let ran = run(command(&folder).args(["--http", "0.0.0.0:0"]));
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("--allow-remote"), "{ran:?}");
}

#[test]
fn input_that_ends_is_an_orderly_stop_and_a_missing_file_a_mistake() {
    let folder = setup();
    let ran = run(command(&folder).stdin(Stdio::null()));
    assert_eq!((ran.code, &*ran.out), (0, ""), "{ran:?}");
    let missing = run(cofferdam().args(["mcp", "--config", "missing.toml"]));
    assert_eq!(missing.code, 3, "{missing:?}");
}
