//! A session of 20,000 messages: how long it takes to read, to go on with, and to make its page.
#![allow(clippy::print_stdout)]

use cofferdam_app::session::{Record, Summary, Transcript, export};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::hint::black_box;

/// A session file: runs of a prompt, three batches of four calls, and an answer.
fn session(messages: usize) -> String {
    let mut text = String::new();
    let mut at_us = 1_764_511_503_000_000_u64;
    let mut line = |kind: &str, fields: Value| {
        at_us += 731;
        let mut all = json!({"type": kind, "at_us": at_us});
        if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
            all.extend(fields);
        }
        let _ = writeln!(text, "{all}");
    };
    line("session", json!({"version": 1, "id": "s", "cofferdam": "0"}));
    line("setup", json!({"system_prompt": "You are a helpful agent."}));
    let mut written = 0;
    let mut calls = 0;
    while written < messages {
        line("run_start", json!({}));
        line("turn_start", json!({}));
        line("message", json!({"message": {"role": "user", "content": block(WORDS)}}));
        for _ in 0..3 {
            let ids: Vec<String> = (calls..calls + 4).map(|n| format!("c{n}")).collect();
            calls += 4;
            batch(&mut line, &ids);
            line("turn_end", json!({}));
            line("turn_start", json!({}));
        }
        line("message", json!({"message": answer(block(WORDS), "stop")}));
        line("turn_end", json!({}));
        line("run_end", json!({}));
        written += 17;
    }
    text
}

fn batch(line: &mut impl FnMut(&str, Value), ids: &[String]) {
    let call = |id: &String| json!({"type": "tool_call", "id": id, "name": "grep", "arguments": {"path": "/repo", "pattern": "fn"}});
    line("message", json!({"message": answer(ids.iter().map(call).collect(), "tool_use")}));
    for id in ids {
        line("call_start", json!({"tool_call_id": id, "tool_name": "grep"}));
    }
    for id in ids {
        line("call_run", json!({"tool_call_id": id}));
    }
    for id in ids.iter().rev() {
        let receipt = json!({"plugin": "files", "fuel": 123_456, "memory_peak_bytes": 1_200_000, "wall_us": 1_500, "host_calls": {"files": {"calls": 3, "bytes": 4_096}}});
        line(
            "call_end",
            json!({"tool_call_id": id, "tool_name": "grep", "result": {"content": block(WORDS)}, "is_error": false, "duration_ms": 1.5, "receipt": receipt}),
        );
    }
    for id in ids {
        line(
            "message",
            json!({"message": {"role": "tool_result", "tool_call_id": id, "tool_name": "grep", "content": block(WORDS), "is_error": false}}),
        );
    }
}

fn block(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn answer(content: Value, stop_reason: &str) -> Value {
    json!({"role": "assistant", "content": content, "stop_reason": stop_reason, "provider": "p", "model": "m", "usage": {"input_tokens": 1_234, "output_tokens": 321}})
}

const WORDS: &str = "A plugin host for sandboxed agent tools: a model states an intent, and the host \
                     validates, runs, records and feeds the result back, whatever a guest does.";

fn long_session(criterion: &mut Criterion) {
    let text = session(20_000);
    let mut group = criterion.benchmark_group("session of 20,000 messages");
    group.sample_size(10);
    group.bench_function("summary", |b| b.iter(|| black_box(Summary::of(text.as_bytes()))));
    group.bench_function("read", |b| b.iter(|| black_box(Record::read(text.as_bytes()))));
    group.bench_function("go on", |b| {
        b.iter(|| {
            Record::read_to_go_on(text.as_bytes()).map(|record| Transcript::of(&record.lines))
        });
    });
    if let Ok(record) = Record::read(text.as_bytes()) {
        group.bench_function("page", |b| b.iter(|| black_box(export::page(&record))));
    }
    group.finish();
}

criterion_group!(benches, long_session);
criterion_main!(benches);
