//! What a run, `rpc` and `mcp` tell those who operate them: the log, traces, figures.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry, says};
use cofferdam_tests::run;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// In the arguments, and so in the result: in nothing that is told unless it is asked for.
const SECRET: &str = "271828 + 1";

fn setup() -> Setup {
    let config = [entry("calc", ""), entry("unruly", "limits = { wall_ms = 5000 }")].concat();
    let script = json!([
        calls(&[
            ("c1", "calc", json!({"expressions": [SECRET]})),
            ("c2", "crash", json!({"message": SECRET})),
        ]),
        says(SECRET),
    ]);
    Setup::new(&config, &script)
}

/// A collector that takes what it is sent.
fn collector() -> (String, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let lower = head.to_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            sender.send([head.as_bytes(), &body].concat()).unwrap();
        }
    });
    (base, receiver)
}

/// Whether the bytes of a protocol buffer hold this text.
fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// The address in a note such as `metrics on http://127.0.0.1:40001/metrics`, and the notes before.
pub(crate) fn noted(lines: &mut impl Iterator<Item = String>, note: &str) -> String {
    let line = lines.find(|line| line.starts_with(note)).unwrap();
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

/// The body of `GET /metrics`.
pub(crate) fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

#[test]
fn a_run_is_logged_and_traced_without_what_was_said() {
    let setup = setup();
    let (base, requests) = collector();
    let log = setup.path("log.jsonl");
    let mut command = setup.command(&["--allow-unpinned", "--print", "--log", "debug"]);
    command.args(["--log-format", "json", "--otlp", &base, "--log-file"]).arg(&log);
    let ran = run(&mut command);
    assert_eq!((ran.code, ran.out.trim()), (0, SECRET), "{ran:?}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(!log.contains("271828"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ended = |id: &str| {
        let of = |line: &&Value| {
            line["fields"]["message"] == "call ended" && line["spans"][2]["id"] == id
        };
        lines.iter().find(of).unwrap()
    };
    assert_eq!(ended("c1")["fields"]["end"], "ok");
    assert!(ended("c1")["fields"]["fuel"].as_u64().unwrap() > 0);
    assert_eq!(ended("c2")["fields"]["end"], "trap");
    let session = lines[0]["spans"][0]["session"].as_str().unwrap();
    assert!(ran.err.contains(&format!("session {session}")), "{ran:?}");
    let sent: Vec<u8> = requests.try_iter().flatten().collect();
    assert!(sent.starts_with(b"POST /v1/traces "));
    assert!(!holds(&sent, "271828"));
    for text in [
        "invoke_agent cofferdam",
        "chat scripted",
        "execute_tool calc",
        "execute_tool crash",
        "gen_ai.tool.call.id",
        "cofferdam.fuel",
        "trap",
        session,
    ] {
        assert!(holds(&sent, text), "{text}");
    }
}

#[test]
fn contents_are_told_when_asked_for_and_the_environment_speaks_where_flags_do_not() {
    let setup = setup();
    let mut command = setup.command(&["--allow-unpinned", "--print", "--no-session"]);
    let command = command.arg("--observe-contents").env("COFFERDAM_LOG", "info");
    let ran = run(command.env("COFFERDAM_LOG_FORMAT", "json"));
    assert_eq!(ran.code, 0, "{ran:?}");
    // The two calls end in any order.
    let mut results = ran.err.lines().filter(|line| line.starts_with('{')).filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        Some(line["fields"]["result"].as_str()?.to_owned())
    });
    assert!(results.any(|result| result.contains("271829")), "{ran:?}");

    let quiet = run(setup
        .command(&["--allow-unpinned", "--print", "--log", "off"])
        .env("COFFERDAM_LOG", "debug"));
    assert!(!quiet.err.contains("run begins"), "{quiet:?}");
    let wrong = run(setup.command(&[]).env("COFFERDAM_LOG", "loud"));
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(
        wrong.err.contains("COFFERDAM_LOG is \"loud\": it takes off, error, warn"),
        "{wrong:?}"
    );
    let nowhere = run(&mut setup.command(&["--otlp", "localhost:4318"]));
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
    assert!(nowhere.err.contains("http://"), "{nowhere:?}");
    let grpc =
        setup.command(&["--otlp", "env"]).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").output();
    let grpc = cofferdam_tests::Ran::from(grpc.unwrap());
    assert_eq!(grpc.code, 2, "{grpc:?}");
    assert!(grpc.err.contains("`http/protobuf`"), "{grpc:?}");
}

#[test]
fn what_plugins_log_is_told_when_asked_for_and_only_then() {
    let script = json!([calls(&[("c1", "chatter", json!({"lines": 2}))]), says("done")]);
    let setup = Setup::new(&entry("unruly", ""), &script);
    let line = "plugin=\"unruly\" said=\"line 1 of far too many\"";
    let flags = ["--allow-unpinned", "--no-session", "--print", "--log", "info"];
    let asked = run(setup.command(&flags).arg("--log-plugins"));
    assert!(asked.err.contains(line), "{asked:?}");
    let quiet = setup.run(&flags);
    assert!(quiet.err.contains("call ended") && !quiet.err.contains("said="), "{quiet:?}");
}

#[test]
fn a_collector_that_is_gone_costs_a_note() {
    let setup = setup();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base = format!("http://{gone}");
    let ran = run(&mut setup.command(&["--allow-unpinned", "--print", "--otlp", &base]));
    assert_eq!((ran.code, ran.out.trim()), (0, SECRET), "{ran:?}");
    assert!(ran.err.contains("note: traces: 5 of 5 spans were not delivered"), "{ran:?}");
}

fn served(command: &mut Command) -> (Child, impl Iterator<Item = String> + Send + use<>) {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = streams.spawn().unwrap();
    let notes = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    (server, notes)
}

#[test]
fn the_figures_of_rpc_are_read_while_it_serves() {
    let setup = setup();
    let mut command = cofferdam();
    command.args(["rpc", "--allow-unpinned", "--no-session", "--metrics", "127.0.0.1:0"]);
    let (mut server, mut notes) = served(command.arg("--config").arg(setup.path("cofferdam.toml")));
    let address = noted(&mut notes, "metrics on ");
    let mut input = server.stdin.take().unwrap();
    input.write_all(b"{\"type\":\"prompt\",\"text\":\"go\"}\n").unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("\"run_end\"") {}
    let figures = scrape(&address);
    for sample in [
        "cofferdam_runs_total{end=\"finished\"} 1",
        "cofferdam_tool_calls_total{tool=\"calc\",end=\"ok\"} 1",
        "cofferdam_tool_calls_total{tool=\"crash\",end=\"trap\"} 1",
        "cofferdam_model_calls_total{model=\"scripted\",end=\"stop\"} 1",
    ] {
        assert!(figures.contains(sample), "{sample}\n{figures}");
    }
    drop(input);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn an_address_for_figures_that_others_reach_needs_a_word() {
    for command in ["rpc", "mcp"] {
        let ran = run(cofferdam().args([command, "--metrics", "0.0.0.0:0"]));
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("--metrics-allow-remote"), "{ran:?}");
    }
}
