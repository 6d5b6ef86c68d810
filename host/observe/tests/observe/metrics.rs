//! The figures, scraped over HTTP and read by the rules of the text format.

use crate::support::{SECRET, agent};
use cofferdam_observe::{Hosts, Metrics, serve_metrics};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

async fn listening(metrics: &Arc<Metrics>, hosts: Hosts) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_metrics(metrics.clone(), listener, hosts));
    address
}

/// Status line with headers, and body.
async fn ask(address: SocketAddr, line: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Samples by name and labels. Every sample has a type that was told before it.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut types = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("# TYPE ") {
            let (name, kind) = told.split_once(' ').unwrap();
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .filter_map(|suffix| name.strip_suffix(suffix))
                .find(|family| types.get(*family).is_some_and(|kind| kind == "histogram"));
            assert!(types.contains_key(family.unwrap_or(name)), "{line}");
            let fresh = samples.insert(sample.to_owned(), value.parse().unwrap());
            assert!(fresh.is_none(), "{sample} twice");
        }
    }
    samples
}

#[tokio::test]
async fn a_run_is_counted_and_the_figures_are_read_over_http() {
    let metrics = Arc::new(Metrics::default());
    let agent = agent();
    agent.subscribe(metrics.observer()).detach();
    agent.prompt(SECRET).await.unwrap();
    let address = listening(&metrics, Hosts::Addresses).await;
    let (head, body) = ask(address, "GET /metrics", &address.to_string()).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(!body.contains(SECRET), "{body}");
    let samples = read(&body);
    for (sample, value) in [
        (r#"cofferdam_runs_total{end="finished"}"#, 1.0),
        ("cofferdam_runs_started_total", 1.0),
        ("cofferdam_turns_total", 2.0),
        ("cofferdam_tool_calls_started_total", 4.0),
        (r#"cofferdam_tool_calls_total{tool="add",end="ok"}"#, 1.0),
        (r#"cofferdam_tool_calls_total{tool="add",end="trap"}"#, 1.0),
        (r#"cofferdam_tool_calls_total{tool="write",end="blocked"}"#, 1.0),
        (r#"cofferdam_tool_calls_total{tool="other",end="unknown-tool"}"#, 1.0),
        (r#"cofferdam_tool_call_fuel_total{tool="add"}"#, 2468.0),
        (r#"cofferdam_tool_call_memory_peak_bytes_count{tool="add"}"#, 2.0),
        (r#"cofferdam_tool_call_memory_peak_bytes_bucket{tool="add",le="262144"}"#, 2.0),
        (r#"cofferdam_tool_call_waiting_seconds_count{tool="add"}"#, 2.0),
        (r#"cofferdam_tool_call_duration_seconds_count{tool="add"}"#, 2.0),
        (r#"cofferdam_tool_call_refusals_total{tool="add"}"#, 2.0),
        (r#"cofferdam_hook_actions_total{hook="guard",action="blocked"}"#, 1.0),
        (r#"cofferdam_model_calls_total{model="test-model",end="tool_use"}"#, 1.0),
        (r#"cofferdam_model_call_duration_seconds_count{model="test-model"}"#, 2.0),
        (r#"cofferdam_tokens_total{kind="cache_write"}"#, 40.0),
    ] {
        assert_eq!(samples.get(sample), Some(&value), "{sample}\n{body}");
    }
}

#[tokio::test]
async fn nothing_else_is_served_and_a_foreign_name_is_turned_away() {
    let metrics = Arc::new(Metrics::default());
    let address = listening(&metrics, Hosts::Addresses).await;
    let own = address.to_string();
    for (line, host, status) in [
        ("GET /metrics", "localhost:9464", "200"),
        ("GET /metrics", "evil.example", "403"),
        ("GET /", own.as_str(), "404"),
        ("POST /metrics", own.as_str(), "405"),
    ] {
        let (head, _) = ask(address, line, host).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {host}: {head}");
    }
    let everywhere = listening(&metrics, Hosts::Any).await;
    let (head, _) = ask(everywhere, "GET /metrics", "metrics.example").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}
