//! A model call that writes a large file: 216 KB of arguments in 4,320 fragments, from the socket to
//! the last message, with the partial view after each fragment.
//!
//! The figure counts everything: the request, loopback, framing, JSON, the steps, and the view that
//! an observer of the run gets.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

#[path = "../tests/serve/mod.rs"]
mod serve;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::model::{Model, Request, Step, Thinking};
use cofferdam_agent::partial::Partial;
use cofferdam_providers::{Dialect, Endpoint, Remote, Wire};
use criterion::{Criterion, criterion_group, criterion_main};
use futures::StreamExt;
use serde_json::json;
use serve::{Reply, Server};
use std::hint::black_box;
use std::sync::Arc;

const FRAGMENTS: usize = 4_320;
const FRAGMENT_BYTES: usize = 50;

/// The pieces of `{"path": "big.txt", "content": "…"}`.
fn fragments() -> Vec<String> {
    let line = "let x = \"a line of code with an escape\\n\";\n";
    let content = line.repeat(FRAGMENTS * FRAGMENT_BYTES / line.len() + 1);
    let text = json!({"path": "big.txt", "content": content}).to_string();
    let text = &text.as_bytes()[..FRAGMENTS * FRAGMENT_BYTES - 2];
    // Cut where an escape would be, and closed.
    let mut text = String::from_utf8_lossy(text).trim_end_matches('\\').to_owned();
    text.push_str("\"}");
    text.as_bytes()
        .chunks(FRAGMENT_BYTES)
        .map(|piece| String::from_utf8_lossy(piece).into_owned())
        .collect()
}

fn event(data: &serde_json::Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or("message"))
}

fn anthropic() -> String {
    let mut body = event(&json!({"type": "message_start", "message": {"id": "m"}}));
    body += &event(&json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "t", "name": "write_file", "input": {}}}));
    for piece in fragments() {
        body += &event(&json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": piece}}));
    }
    body += &event(&json!({"type": "content_block_stop", "index": 0}));
    body += &event(&json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    body + &event(&json!({"type": "message_stop"}))
}

fn chat() -> String {
    let chunk = |call, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": finish});
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
        )
    };
    let mut body = chunk(
        json!({"index": 0, "id": "t", "function": {"name": "write_file", "arguments": ""}}),
        None,
    );
    for piece in fragments() {
        body += &chunk(json!({"index": 0, "function": {"arguments": piece}}), None);
    }
    body + &chunk(json!({"index": 0, "function": {"arguments": ""}}), Some("tool_calls"))
        + "data: [DONE]\n\n"
}

async fn call(model: &Remote) -> usize {
    let request = Request {
        system_prompt: "".into(),
        messages: Arc::new(vec![Arc::new("go".into())]),
        tools: Arc::default(),
        thinking: Thinking::Off,
        credential: None,
    };
    let mut stream = model.stream(request, AbortSignal::new());
    let (mut partial, mut fragments) = (Partial::default(), 0);
    while let Some(step) = stream.next().await {
        partial.fold(&step);
        // What an observer of each fragment looks at.
        black_box(partial.message());
        match step {
            Step::ToolCallDelta { .. } => fragments += 1,
            Step::Done(message) => {
                let call = message.tool_calls().next().unwrap();
                assert!(call.malformed.is_none(), "{:?}", call.malformed);
            }
            _ => {}
        }
    }
    fragments
}

fn bench(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for (name, wire, body) in [
        ("anthropic", Wire::Anthropic, anthropic()),
        ("chat", Wire::Chat(Dialect::Generic), chat()),
    ] {
        let server = runtime.block_on(Server::start([Reply::events(body)]));
        let endpoint = Endpoint { base_url: server.url.clone(), ..Endpoint::new(wire, "m") };
        let model = Remote::new(endpoint).unwrap();
        assert_eq!(runtime.block_on(call(&model)), fragments().len());
        criterion.bench_function(&format!("216 KB in 4,320 fragments, {name}"), |bencher| {
            bencher.iter(|| runtime.block_on(call(&model)));
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
