//! The built binary on models behind a server, which plays answers of providers byte for byte.

use crate::cofferdam;
use cofferdam_tests::{Ran, root, run};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Before each body that has no head of its own.
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Answers each request with the next body, the last one again and again. Keeps the heads.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(bodies: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let book = heads.clone();
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                let body = &bodies[at.min(bodies.len() - 1)];
                book.lock().unwrap().push(answer(stream.unwrap(), body));
            }
        });
        Self { port, heads }
    }
}

fn answer(mut stream: TcpStream, body: &[u8]) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let read = stream.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length:").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if rest.len() >= length || read == 0 {
                if !body.starts_with(b"HTTP/") {
                    let _ = stream.write_all(OK.as_bytes());
                }
                let _ = stream.write_all(body);
                return head.to_owned();
            }
        }
    }
}

/// Runs the binary against a server that plays these bodies.
fn ask(provider: &str, bodies: Vec<Vec<u8>>, more: &[&str]) -> (Ran, Vec<String>) {
    let server = Server::start(bodies);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let version = if provider.starts_with("openai") { "/v1" } else { "" };
    let text = format!(
        "[model]\nprovider = \"{provider}\"\nname = \"m\"\nbase_url = \"http://127.0.0.1:{}{version}\"\n\
         api_key_env = \"COFFERDAM_TEST_MODEL\"\n",
        server.port
    );
    std::fs::write(&config, text).unwrap();
    let mut command = cofferdam();
    command.env("COFFERDAM_TEST_MODEL", "s3cret-key");
    command.arg("run").args(more).arg("--config").arg(&config).arg("go");
    let ran = run(&mut command);
    let heads = server.heads.lock().unwrap().clone();
    (ran, heads)
}

/// The first answer among the events.
fn first_answer(ran: &Ran) -> Value {
    let events = ran.json_lines();
    let ends = events.iter().filter(|event| event["type"] == "message_end");
    let answer = ends.map(|event| &event["message"]).find(|message| message["role"] == "assistant");
    answer.unwrap_or_else(|| panic!("no answer: {ran:?}")).clone()
}

/// What of an answer the expectation is about.
fn as_expected(answer: &Value, expected: &Value) -> Value {
    let mut shown = json!({"stop_reason": answer["stop_reason"], "content": answer["content"]});
    for key in ["raw_stop_reason", "usage"] {
        if expected.get(key).is_some() {
            shown[key] = answer[key].clone();
        }
    }
    if let Some(usage) = shown.get_mut("usage").and_then(Value::as_object_mut) {
        usage.retain(|key, _| expected["usage"].get(key).is_some());
    }
    if let Some(part) = expected["error_contains"].as_str() {
        let told = answer["error_message"].as_str().unwrap_or_default();
        shown["error_contains"] = if told.contains(part) { part } else { told }.into();
    }
    let wanted = expected["content"].as_array().unwrap();
    for (block, want) in shown["content"].as_array_mut().unwrap().iter_mut().zip(wanted) {
        if want["id"] == "$any" {
            assert!(!block["id"].as_str().unwrap().is_empty());
            block["id"] = "$any".into();
        }
        let fields = block.as_object_mut().unwrap();
        fields.retain(|key, _| !key.starts_with("arguments_"));
    }
    shown
}

#[test]
fn every_synthetic_answer_is_the_expected_message_in_the_events() {
    for (folder, provider) in [
        ("anthropic", "anthropic"),
        ("openai-chat", "openai-compatible"),
        ("openai-responses", "openai-responses"),
        ("gemini", "gemini"),
    ] {
        let folder = root().join("tests/sse/synthetic").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                check(provider, &path);
            }
        }
    }
}

fn check(provider: &str, path: &Path) {
    let expected = std::fs::read(path.with_extension("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let body = std::fs::read(path).unwrap();
    // Where the answer has calls, another one follows.
    let (ran, heads) = ask(provider, vec![body, stop(provider).into()], &["--print", "--json"]);
    let answer = first_answer(&ran);
    assert_eq!(as_expected(&answer, &expected), expected, "{}", path.display());
    assert_eq!((&answer["provider"], &answer["model"]), (&provider.into(), &"m".into()));
    assert!(heads[0].contains("s3cret-key"), "{heads:?}");
    assert!(!ran.out.contains("s3cret") && !ran.err.contains("s3cret"), "{ran:?}");
}

/// A plain last answer.
fn stop(provider: &str) -> &'static str {
    match provider {
        "anthropic" => {
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
             data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n"
        }
        "gemini" => "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        "openai-responses" => "data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        _ => HELLO,
    }
}

const HELLO: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn an_answer_is_printed_for_people_too() {
    let (ran, _) = ask("openai-compatible", vec![HELLO.into()], &["--print"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello.\n"), "{ran:?}");
    let (ran, _) = ask("openai-compatible", vec![HELLO.into()], &[]);
    assert!(ran.code == 0 && ran.out.contains("Hello."), "{ran:?}");
}

#[test]
fn a_failed_model_is_a_failed_run_that_says_why() {
    let cut = &HELLO[..HELLO.len() / 2];
    let (ran, _) = ask("openai-compatible", vec![cut.into()], &["--print"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.err.contains("ended before the answer did"), "{}", ran.err);
}

#[test]
fn a_retry_is_shown_to_people_and_to_programs() {
    let busy =
        "HTTP/1.1 429 Busy\r\nretry-after-ms: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let bodies = || vec![busy.into(), HELLO.into()];
    let (ran, _) = ask("openai-compatible", bodies(), &["--print"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello.\n"), "{ran:?}");
    assert!(ran.err.contains("429") && ran.err.contains("retry 1 of 3"), "{}", ran.err);
    let (ran, _) = ask("openai-compatible", bodies(), &["--json"]);
    let events = ran.json_lines();
    let retry = events.iter().find(|event| event["type"] == "model_retry").unwrap();
    assert_eq!((&retry["retry"], &retry["wait_ms"]), (&json!(1), &json!(5.0)), "{retry}");
}

#[test]
fn a_recorded_run_is_played_again_offline() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording.json");
    let record = ["--print", "--record", recording.to_str().unwrap()];
    let (ran, _) = ask("openai-compatible", vec![HELLO.into()], &record);
    assert_eq!(ran.code, 0, "{ran:?}");
    let config = folder.path().join("cofferdam.toml");
    let text = "[model]\nprovider = \"scripted\"\nscript = \"recording.json\"\n";
    std::fs::write(&config, text).unwrap();
    let ran = run(cofferdam().args(["run", "--print", "--config"]).arg(&config).arg("go"));
    assert_eq!((ran.code, ran.out.as_str()), (0, "Hello.\n"), "{ran:?}");
    let (ran, _) = ask("openai-compatible", vec![HELLO.into()], &record);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("recording.json") && ran.err.contains("exists"), "{}", ran.err);
}
