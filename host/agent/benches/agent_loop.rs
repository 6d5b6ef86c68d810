//! What the loop itself costs: a scripted model, a native tool that does nothing, one observer that
//! counts. `reference/` has the same for the reference implementation; the targets are ratios
//! between the two, measured in one session:
//!
//! - a turn with one call: at most a third,
//! - a call in a batch of 100 or 1,000: at most a half,
//! - a turn after 10,000 messages: the same as after none.

use cofferdam_agent::config::Guards;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, Message, StopReason, ToolCall,
};
use cofferdam_agent::model::{Model, Request, Step};
use cofferdam_agent::testing::{FnTool, answer, block_on};
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::json;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A model that asks for so many calls in each of so many turns, then says that it is done.
struct Scripted {
    turns: usize,
    calls: usize,
    turn: AtomicUsize,
    arguments: Arguments,
}

impl Model for Scripted {
    fn stream(&self, request: Request, _abort: AbortSignal) -> BoxStream<'static, Step> {
        black_box(&request);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let last = if turn < self.turns { self.calls(turn) } else { answer::text("done") };
        stream::iter([Step::Start, Step::Done(last)]).boxed()
    }
}

impl Scripted {
    fn calls(&self, turn: usize) -> AssistantMessage {
        let call = |index| {
            AssistantBlock::ToolCall(ToolCall {
                id: format!("c{turn}-{index}"),
                name: "read".into(),
                arguments: self.arguments.clone(),
                malformed: None,
                signature: None,
            })
        };
        AssistantMessage {
            content: (0..self.calls).map(call).collect(),
            stop_reason: StopReason::ToolUse,
            provider: "scripted".into(),
            model: "scripted".into(),
            ..AssistantMessage::pending()
        }
    }
}

#[derive(Default)]
struct Counter(AtomicU64);

impl Observer for Counter {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionEnd { end, .. } = event {
            assert!(!end.is_error);
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

fn toolset() -> Arc<Toolset> {
    let tool = FnTool::new("read", |call, _, _| {
        let path = call.arguments.get("path").and_then(|path| path.as_str()).unwrap_or_default();
        std::future::ready(Ok(ToolResult::text(path)))
    });
    let tool = tool.with_parameters(json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "offset": {"type": "number"},
            "limit": {"type": "number"},
        },
        "required": ["path"],
        "additionalProperties": false,
    }));
    Arc::new(Toolset::new([tool.shared()], Rules::Portable))
}

fn agent(toolset: &Arc<Toolset>, turns: usize, calls: usize, messages: Vec<Arc<Message>>) -> Agent {
    let arguments = json!({"path": "src/main.rs", "offset": 10, "limit": 200});
    let arguments = Arc::new(arguments.as_object().cloned().unwrap_or_default());
    let model = Scripted { turns, calls, turn: AtomicUsize::new(0), arguments };
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset.clone()));
    config.guards = Guards::NONE;
    config.messages = messages;
    let agent = Agent::new(config);
    agent.subscribe(Arc::new(Counter::default())).detach();
    agent
}

fn agent_loop(criterion: &mut Criterion) {
    let toolset = toolset();
    let mut measure = |name: &str, turns: usize, calls: usize, history: &[Arc<Message>]| {
        let mut group = criterion.benchmark_group("agent_loop");
        group.throughput(Throughput::Elements((turns * calls) as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || agent(&toolset, turns, calls, history.to_vec()),
                |agent| {
                    block_on(agent.prompt("go")).unwrap_or_else(|error| panic!("{error}"));
                    agent
                },
                // One agent at a time, as with the reference: a hoard of finished ones costs memory.
                BatchSize::PerIteration,
            );
        });
        group.finish();
    };
    measure("one call a turn, 20 turns", 20, 1, &[]);
    measure("one call a turn, 1,000 turns", 1_000, 1, &[]);
    measure("100 calls in a batch", 1, 100, &[]);
    measure("1,000 calls in a batch", 1, 1_000, &[]);
    let history: Vec<_> =
        (0..10_000).map(|n| Arc::new(Message::from(format!("message {n}")))).collect();
    measure("one call a turn, 20 turns, after 10,000 messages", 20, 1, &history);
}

criterion_group!(benches, agent_loop);
criterion_main!(benches);
