//! The spans, as a collector gets them: names, parents, attributes; and collectors that are slow, gone
//! or say no.

use crate::support::{SECRET, agent, agent_of};
use cofferdam_agent::testing::{Recorder, ScriptedModel};
use cofferdam_agent::{AbortSignal, message::ToolCall};
use cofferdam_observe::{Collector, Contents, Otlp, Subject};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The path, headers and body of one request; answers it.
fn answer(stream: &TcpStream, status: &str) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length?.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    { stream }.write_all(answer.as_bytes()).ok()?;
    Some((head, body))
}

/// A collector at a base address, and what it is sent.
fn collector(status: &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            if let Some(request) = answer(&stream, status) {
                let _ = sender.send(request);
            }
        }
    });
    (base, receiver)
}

fn spans(requests: Receiver<(String, Vec<u8>)>) -> Vec<Span> {
    let mut spans = Vec::new();
    for (head, body) in requests.try_iter() {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.to_lowercase().contains("content-type: application/x-protobuf"), "{head}");
        for resource in ExportTraceServiceRequest::decode(&body[..]).unwrap().resource_spans {
            let about = resource.resource.unwrap().attributes;
            let service = about.iter().find(|about| about.key == "service.name").unwrap();
            assert_eq!(text(service.value.as_ref().unwrap()), "cofferdam");
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

/// A value as text: lists with commas.
fn text(value: &AnyValue) -> String {
    match value.value.as_ref().unwrap() {
        Any::StringValue(text) => text.clone(),
        Any::IntValue(number) => number.to_string(),
        Any::DoubleValue(number) => number.to_string(),
        Any::ArrayValue(list) => list.values.iter().map(text).collect::<Vec<_>>().join(","),
        other => panic!("{other:?}"),
    }
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    Some(text(found.value.as_ref().unwrap()))
}

fn subject() -> Subject {
    let some = |word: &str| Some(word.to_owned());
    Subject { provider: some("gemini"), model: some("asked-model"), session: some("s1") }
}

async fn run(otlp: &Otlp, contents: Contents) {
    let agent = agent();
    agent.subscribe(otlp.observer(subject(), contents)).detach();
    agent.prompt(SECRET).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_a_tree_of_spans_by_the_genai_conventions() {
    let (base, requests) = collector("200 OK");
    let otlp = Otlp::new(&Collector::At(format!("{base}/"))).unwrap();
    run(&otlp, Contents::Hidden).await;
    assert_eq!(otlp.finish(), None);
    let spans = spans(requests);
    assert!(!format!("{spans:?}").contains(SECRET), "{spans:?}");
    let named =
        |name: &str| -> Vec<&Span> { spans.iter().filter(|span| span.name == name).collect() };
    let run = named("invoke_agent cofferdam")[0];
    assert!(run.parent_span_id.is_empty());
    for (key, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "cofferdam"),
        ("gen_ai.provider.name", "gcp.gemini"),
        ("gen_ai.conversation.id", "s1"),
        ("gen_ai.request.model", "asked-model"),
        ("gen_ai.usage.input_tokens", "80"),
        ("gen_ai.usage.output_tokens", "20"),
        ("cofferdam.turns", "2"),
        ("cofferdam.run.end", "finished"),
    ] {
        assert_eq!(attribute(run, key).as_deref(), Some(value), "{key}: {run:?}");
    }
    let chats = named("chat asked-model");
    assert_eq!(chats.len(), 2);
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "gcp.gemini"),
        ("gen_ai.request.model", "asked-model"),
        ("gen_ai.response.model", "test-model"),
        ("gen_ai.response.finish_reasons", "tool_use"),
        ("gen_ai.usage.input_tokens", "80"),
        ("gen_ai.usage.cache_read.input_tokens", "30"),
        ("cofferdam.turn", "1"),
    ] {
        assert_eq!(attribute(chats[0], key).as_deref(), Some(value), "{key}: {:?}", chats[0]);
    }
    assert_eq!(chats[0].kind, SpanKind::Client as i32);
    let adds = named("execute_tool add");
    assert_eq!(adds.len(), 2);
    let by_id = |id: &str| {
        spans
            .iter()
            .find(|span| attribute(span, "gen_ai.tool.call.id").as_deref() == Some(id))
            .unwrap()
    };
    for (key, value) in [
        ("gen_ai.operation.name", Some("execute_tool")),
        ("gen_ai.tool.name", Some("add")),
        ("gen_ai.tool.type", Some("function")),
        ("cofferdam.plugin", Some("adder")),
        ("cofferdam.fuel", Some("1234")),
        ("cofferdam.memory_peak_bytes", Some("131072")),
        ("cofferdam.wall_us", Some("70")),
        ("cofferdam.refusals", Some("1")),
        ("cofferdam.turn", Some("1")),
        ("error.type", None),
    ] {
        assert_eq!(attribute(by_id("c1"), key).as_deref(), value, "{key}: {:?}", by_id("c1"));
    }
    for (id, problem) in [("c2", "trap"), ("c3", "blocked"), ("c4", "unknown-tool")] {
        let span = by_id(id);
        assert_eq!(attribute(span, "error.type").as_deref(), Some(problem));
        let status = span.status.as_ref().unwrap();
        assert_eq!((status.code(), &*status.message), (StatusCode::Error, ""));
    }
    assert_eq!(attribute(by_id("c3"), "cofferdam.hooks").as_deref(), Some("guard: blocked"));
    for span in spans.iter().filter(|span| span.span_id != run.span_id) {
        assert_eq!(span.parent_span_id, run.span_id, "{span:?}");
        assert_eq!(span.trace_id, run.trace_id);
        assert!(run.start_time_unix_nano <= span.start_time_unix_nano, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert!(span.end_time_unix_nano <= run.end_time_unix_nano, "{span:?}");
    }
    assert_eq!(spans.len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_come_when_asked_for() {
    let (base, requests) = collector("200 OK");
    let otlp = Otlp::new(&Collector::At(base)).unwrap();
    run(&otlp, Contents::Shown).await;
    assert_eq!(otlp.finish(), None);
    let spans = spans(requests);
    for key in [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ] {
        let shown = spans.iter().filter_map(|span| attribute(span, key));
        assert!(shown.into_iter().any(|text| text.contains(SECRET)), "{key}: {spans:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_from_outside_is_a_trace_of_its_own_and_a_dropped_run_is_told() {
    let (base, requests) = collector("200 OK");
    let otlp = Otlp::new(&Collector::At(base)).unwrap();
    {
        let agent = agent_of(ScriptedModel::default());
        let subscription = agent.subscribe(otlp.observer(subject(), Contents::Hidden));
        let call = ToolCall::from_text("mcp-1", "add", "{}");
        agent.call(call, &AbortSignal::new(), &Recorder::default()).await;
        drop(subscription);
    }
    {
        let waits = cofferdam_agent::testing::FnTool::new("wait", |_, _, _| std::future::pending());
        let answer =
            cofferdam_agent::testing::answer::calls([("c1", "wait", serde_json::json!({}))]);
        let model = std::sync::Arc::new(ScriptedModel::new([answer]));
        let toolset = cofferdam_agent::Toolset::new(
            [waits.shared()],
            cofferdam_agent::toolset::Rules::Portable,
        );
        let settings = cofferdam_agent::Settings::new(model).with_toolset(toolset);
        let agent = cofferdam_agent::Agent::new(cofferdam_agent::AgentConfig::new(settings));
        agent.subscribe(otlp.observer(subject(), Contents::Hidden)).detach();
        let mut dropped = Box::pin(agent.prompt("go"));
        assert!(futures::poll!(dropped.as_mut()).is_pending());
    }
    assert_eq!(otlp.finish(), None);
    let spans = spans(requests);
    let call = spans.iter().find(|span| span.name == "execute_tool add").unwrap();
    assert!(call.parent_span_id.is_empty(), "{call:?}");
    let run = spans.iter().find(|span| span.name == "invoke_agent cofferdam").unwrap();
    assert_eq!(attribute(run, "error.type").as_deref(), Some("dropped"));
    assert_ne!(run.trace_id, call.trace_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_or_says_no_costs_spans_and_is_told() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (no, _requests) = collector("400 Bad Request");
    for base in [format!("http://{gone}"), no] {
        let otlp = Otlp::new(&Collector::At(base)).unwrap();
        run(&otlp, Contents::Hidden).await;
        let note = otlp.finish().unwrap();
        assert!(note.contains("7 of 7 spans were not delivered"), "{note}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_holds_up_nothing_for_long() {
    // Takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", silent.local_addr().unwrap());
    let otlp = Otlp::new(&Collector::At(base)).unwrap();
    // More than a queue holds.
    for _ in 0..400 {
        run(&otlp, Contents::Hidden).await;
    }
    let before = Instant::now();
    let note = otlp.finish().unwrap();
    // The bound is three seconds; what is above is a machine that is busy.
    assert!(before.elapsed() < Duration::from_secs(30), "{:?}", before.elapsed());
    assert!(note.contains("2800 of 2800 spans were not delivered"), "{note}");
}

#[test]
fn what_is_no_collector_is_refused() {
    let refused = Otlp::new(&Collector::At("127.0.0.1:4318".into())).unwrap_err();
    assert!(refused.to_string().contains("http://"), "{refused}");
}
