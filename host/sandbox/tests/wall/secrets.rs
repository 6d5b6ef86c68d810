//! Secrets: the host adds them where they are granted, and nobody else gets to see them.

use crate::support::{Prober, SANDBOX, Server, grants, limits, receipt, text};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{HookedCall, Ran, Verdict};
use cofferdam_agent::message::{AssistantMessage, Content};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, ToolResult};
use cofferdam_sandbox::grants::SecretGrant;
use cofferdam_sandbox::{Grants, LogLine, Plugin, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A variable that cargo sets for every test, with slashes in its value: as good a secret as any.
const VARIABLE: &str = "CARGO_MANIFEST_DIR";

fn secret() -> String {
    std::env::var(VARIABLE).unwrap()
}

/// A server that answers with the request that it got, in its body and in a header.
fn echo() -> Server {
    Server::new(|stream, request| {
        let secret = secret();
        let head = format!(
            "HTTP/1.1 200 OK\r\nx-echo: has {secret}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            request.len()
        );
        // In pieces, so that the secret lies across them.
        let _ = stream.set_nodelay(true);
        for piece in [head.as_bytes(), request.as_bytes()].concat().chunks(7) {
            if std::io::Write::write_all(stream, piece).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    })
}

/// The grants of a plugin that may ask both servers, and whose requests to the first get the secret.
fn granted(server: &Server, other: &Server) -> Grants {
    let mut grants = grants(&[server.grant("*"), other.grant("*"), "kv=on".into()]);
    grants.secrets.push(SecretGrant {
        env: VARIABLE.into(),
        header: "X-Token".into(),
        format: "Bearer {}".into(),
        origin: format!("http://{}", server.authority()),
    });
    grants
}

async fn prober(server: &Server, other: &Server) -> Prober {
    Prober::load(&SANDBOX, limits(&[]), granted(server, other)).await.unwrap()
}

#[tokio::test]
async fn the_host_adds_it_where_it_is_granted() {
    let (server, other) = (echo(), echo());
    let prober = prober(&server, &other).await;
    let with = |server: &Server, name: &str| {
        let mut step = server.get("/");
        step["headers"] = json!([[name, "the plugin's own"], [name, "once more"]]);
        step
    };
    let (outcomes, _) = prober
        .try_steps(json!([with(&server, "x-tOkEn"), with(&other, "x-tOkEn"), server.get("/")]))
        .await;
    assert!(outcomes.iter().all(|outcome| outcome["ok"]["status"] == 200), "{outcomes:?}");
    let expected = format!("x-token: Bearer {}\r\n", secret());
    for seen in server.seen() {
        assert_eq!(seen.matches("x-token: ").count(), 1, "{seen}");
        assert!(seen.contains(&expected), "{seen}");
        assert!(!seen.contains("the plugin's own") && !seen.contains("once more"), "{seen}");
    }
    let seen = &other.seen()[0];
    assert!(!seen.contains(&secret()) && seen.contains("the plugin's own"), "{seen}");
}

/// The guest gets the answer without it, so that it has nothing to pass on.
#[tokio::test]
async fn what_a_server_echoes_is_masked_before_the_guest_sees_it() {
    let (server, other) = (echo(), echo());
    let (outcomes, _) = prober(&server, &other).await.try_steps(json!([server.get("/a")])).await;
    let shown = outcomes[0].to_string();
    assert!(!shown.contains(&secret()), "{shown}");
    let stars = "*".repeat(secret().len());
    let body = outcomes[0]["ok"]["body"].as_str().unwrap();
    assert!(body.contains(&format!("x-token: Bearer {stars}\r\n")), "{body}");
    assert!(shown.contains(&format!("has {stars}")), "{shown}");
    assert_eq!(body.len(), server.seen()[0].len(), "the length stays");
}

/// The guest has it all the same: a server told it in a way that is not known. Nothing of the kind
/// gets out.
#[tokio::test]
async fn a_guest_that_has_it_cannot_say_it() {
    // Each byte apart, which the guest puts together.
    let (server, other) = (echo(), echo());
    let secret = secret();
    let (one, two) = secret.split_at(secret.len() / 2);
    let halves =
        Server::answering(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{one}", one.len()));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    let log = Arc::new(move |line: LogLine<'_>| kept.lock().unwrap().push(line.message.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    let config = SandboxConfig {
        slots: 4,
        log: Some(log),
        state_dir: Some(folder.path().into()),
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::new(config).unwrap();
    let mut grants = granted(&server, &other);
    grants.add_pair(&halves.grant("GET")).unwrap();
    let plugin = Prober::load(&sandbox, limits(&[]), grants).await.unwrap().0;
    let whole = format!("$0{two}");
    let percent = whole.replace('/', "%2F");
    let target = |authority: String| json!({"do": "http", "authority": authority});
    let mut in_body = target(other.authority());
    in_body["method"] = "POST".into();
    in_body["path"] = "/".into();
    in_body["body"] = format!("body {whole}").into();
    let mut in_header = target(other.authority());
    in_header["path"] = "/".into();
    in_header["headers"] = json!([["x-out", format!("header {whole}")]]);
    let mut in_path = target(other.authority());
    in_path["path"] = format!("/path{whole}?q={percent}").into();
    let mut in_refusal = target("evil.example.com".into());
    in_refusal["path"] = format!("/refused{whole}").into();
    let steps = json!([
        halves.get("/"),
        in_body,
        in_header,
        in_path,
        in_refusal,
        {"do": "log", "text": format!("log {whole}")},
        {"do": "progress", "text": format!("progress {whole}")},
        {"do": "kv_write", "key": format!("key {whole}"), "value": format!("value {whole}")},
        {"do": "kv_write", "key": "binary", "value": format!("binary {whole}"), "raw": 255},
        {"do": "kv_read", "key": format!("key {whole}")},
        {"do": "stdout", "text": format!("stdout {whole}")},
        {"do": "stderr", "text": format!("stderr {whole}\n")},
    ]);
    let (progress, updates) = Progress::channel();
    let arguments = json!({ "steps": steps }).to_string();
    let mut running = Box::pin(plugin.call_tool("probe", &arguments, progress, AbortSignal::new()));
    let mut shown = Vec::new();
    let outcome = loop {
        tokio::select! { biased;
            partial = updates.next() => shown.push(format!("{partial:?}")),
            outcome = &mut running => break outcome,
        }
    };
    let outcomes: Vec<Value> = serde_json::from_str(text(&outcome)).unwrap();
    // The guest had its half, and with the other one all of it.
    assert_eq!(outcomes[0]["ok"]["body"], one);
    assert_eq!(outcomes[9]["ok"], format!("value {}", "*".repeat(secret.len())), "{outcomes:?}");
    let receipt = json!(receipt(&outcome)).to_string();
    let store = std::fs::read_dir(folder.path().join("kv")).unwrap();
    let stored: String = store
        .map(|file| {
            String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap()).into_owned()
        })
        .collect();
    let logged = lines.lock().unwrap().join("\n");
    for (name, out) in [
        ("result", text(&outcome)),
        ("requests", &other.seen().join("\n")),
        ("progress", &shown.join("\n")),
        ("log", &logged),
        ("store", &stored),
        ("receipt", &receipt),
    ] {
        assert!(!out.contains(&secret), "{name}: {out}");
        assert!(!out.contains(&secret.replace('/', "%2F")), "{name}: {out}");
    }
    assert!(logged.contains("log [secret]") && shown[0].contains("progress [secret]"));
    assert!(stored.contains("key [secret]") && stored.contains("binary ***"), "{stored}");
    assert_eq!(other.seen().len(), 3);
    assert!(receipt.contains("evil.example.com/refused[secret]"), "{receipt}");
}

/// However a call fails, its message and its details are as clean.
#[tokio::test]
async fn failures_are_masked() {
    let (server, other) = (echo(), echo());
    let prober = prober(&server, &other).await;
    let secret = secret();
    for steps in [
        json!([{"do": "fail", "text": format!("failed {secret}")}]),
        json!([{"do": "panic", "text": format!("panicked {secret}")}]),
        json!([{"do": "panic", "text": format!("{}{secret}", "x".repeat(495))}]),
        json!([{"do": "stderr", "text": format!("last words {secret}\n")}, {"do": "exit", "status": 3}]),
        json!([{"do": "stderr", "text": format!("{secret} {}", "x".repeat(4_090))}, {"do": "exit", "status": 1}]),
    ] {
        let outcome = prober.call(steps).await;
        let failure = format!("{:?}", outcome.answer.unwrap_err());
        // Not even most of it, which a cut might leave. Less of it is a folder that other things are in:
        // the guest's own source, which a panic names.
        for most in [&secret[..secret.len() - 4], &secret[4..]] {
            assert!(!failure.contains(most), "{failure}");
        }
    }
}

/// What a hook says goes to a model or a person as well.
#[tokio::test]
async fn hooks_are_masked() {
    let (server, other) = (echo(), echo());
    let plugin: Plugin = prober(&server, &other).await.0;
    let secret = secret();
    let asked = |arguments: Value| Call {
        id: "call".into(),
        name: "any".into(),
        arguments: Arc::new(arguments.as_object().cloned().unwrap()),
    };
    let assistant = Arc::new(AssistantMessage::pending());
    let abort = AbortSignal::new();
    for (field, value) in [
        ("block", json!(format!("no {secret}"))),
        ("ask", json!(format!("may I {secret}"))),
        ("rewrite", json!({ (secret.as_str()): [secret] })),
    ] {
        let call = asked(json!({"before": {(field): value}}));
        let hooked = HookedCall { call: &call, plugin: "any", assistant: &assistant };
        let verdict = plugin.before_hook().unwrap().before(hooked, &abort).await.answer.unwrap();
        assert!(!matches!(verdict, Verdict::Proceed));
        let shown = format!("{verdict:?}");
        assert!(!shown.contains(&secret) && shown.contains("[secret]"), "{shown}");
    }
    let call = asked(json!({"after": {"content": format!("amended {secret}")}}));
    let hooked = HookedCall { call: &call, plugin: "any", assistant: &assistant };
    let result = ToolResult::text("plain");
    let duration = Duration::ZERO;
    let ran = Ran { result: &result, is_error: false, ended_by: None, duration };
    let amendment = plugin.after_hook().unwrap().after(hooked, ran, &abort).await.answer.unwrap();
    assert_eq!(amendment.content, Some(vec![Content::Text("amended [secret]".into())]));
}
