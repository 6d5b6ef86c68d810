//! Calls outside a run: the same walk as in one, no transcript, and kept apart as their tools ask.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::config::BeforeEntry;
use cofferdam_agent::event::{CallEnd, Event, Observer, ended_by};
use cofferdam_agent::hook::{BeforeHook, Hooked, HookedCall, Question, Verdict};
use cofferdam_agent::message::{Content, ToolCall};
use cofferdam_agent::testing::{FnTool, Recorder, ScriptedModel};
use cofferdam_agent::tool::{Execution, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use futures::future::{BoxFuture, join_all};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

fn config(tools: impl IntoIterator<Item = FnTool>) -> AgentConfig {
    let toolset = Toolset::new(tools.into_iter().map(FnTool::shared), Rules::Portable);
    AgentConfig::new(Settings::new(Arc::new(ScriptedModel::default())).with_toolset(toolset))
}

async fn call(agent: &Agent, id: &str, tool: &str, arguments: &str) -> CallEnd {
    let call = ToolCall::from_text(id, tool, arguments);
    agent.call(call, &AbortSignal::new(), &Recorder::default()).await
}

fn text(end: &CallEnd) -> &str {
    match end.result.content.first() {
        Some(Content::Text(text)) => text,
        _ => "",
    }
}

/// Counts how many are inside at the same time, and keeps each there until it is let go.
#[derive(Default)]
struct Room {
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Room {
    /// Stays for a while: every other task has its turns meanwhile.
    async fn stay(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

fn staying(name: &str, room: &Arc<Room>, execution: Execution) -> FnTool {
    let room = room.clone();
    let tool = FnTool::new(name, move |_, _, _| {
        let room = room.clone();
        async move {
            room.stay().await;
            Ok(ToolResult::text("left"))
        }
    });
    tool.with_execution(execution)
}

/// A before-hook that stays in a room, then asks, blocks nothing.
struct Stays(Arc<Room>, Option<Question>);

impl BeforeHook for Stays {
    fn name(&self) -> &str {
        "stays"
    }

    fn before<'a>(
        &'a self,
        _: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        Box::pin(async {
            self.0.stay().await;
            Ok(self.1.clone().map_or(Verdict::Proceed, Verdict::Ask)).into()
        })
    }
}

#[derive(Default)]
struct Watcher(Mutex<Vec<String>>);

impl Observer for Watcher {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let seen = match event {
            Event::ToolExecutionStart { call } => format!("start {}", call.id),
            Event::ToolExecutionUpdate { partial, .. } => format!("update {partial:?}"),
            Event::ToolExecutionEnd { call, end } => format!("end {} {}", call.id, end.is_error),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(seen);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn both_observers_see_the_call_and_the_transcript_does_not() {
    let tool = FnTool::new("greet", |_, progress, _| async move {
        progress.report(ToolResult::default());
        Ok(ToolResult::text("Hello."))
    });
    let agent = Agent::new(config([tool]));
    let (mine, the_agents) = (Watcher::default(), Arc::new(Watcher::default()));
    let subscription = agent.subscribe(the_agents.clone());
    let call = ToolCall::from_text("c1", "greet", "{}");
    let end = agent.call(call, &AbortSignal::new(), &mine).await;
    assert_eq!((text(&end), end.is_error, &end.ended_by), ("Hello.", false, &None));
    let seen = mine.0.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert_eq!((&*seen[0], &*seen[2]), ("start c1", "end c1 false"));
    assert!(seen[1].starts_with("update "));
    assert_eq!(*seen, *the_agents.0.lock().unwrap());
    assert!(agent.messages().is_empty() && agent.pending_tool_calls().is_empty());
    drop(subscription);
}

#[tokio::test]
async fn what_preflight_refuses_is_refused_here() {
    let parameters = serde_json::json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let tool = FnTool::text("count", "counted").with_parameters(parameters);
    let agent = Agent::new(config([tool]));
    for (tool, arguments, code) in [
        ("count", "{", ended_by::MALFORMED_ARGUMENTS),
        ("count", r#"{"n": "many"}"#, ended_by::INVALID_ARGUMENTS),
        ("missing", "{}", ended_by::UNKNOWN_TOOL),
    ] {
        let end = call(&agent, "c1", tool, arguments).await;
        assert_eq!((end.is_error, end.ended_by.as_deref()), (true, Some(code)), "{tool}");
    }
    assert_eq!(text(&call(&agent, "c1", "count", r#"{"n": "5"}"#).await), "counted");
}

#[tokio::test]
async fn hooks_are_asked_about_one_call_at_a_time_and_nobody_is_a_no() {
    let room = Arc::new(Room::default());
    let question = Question { title: "Run it?".into(), message: String::new() };
    let mut config = config([FnTool::text("greet", "Hello.")]);
    config.before = vec![BeforeEntry::new(Arc::new(Stays(room.clone(), Some(question))))];
    let agent = Agent::new(config);
    let ends = join_all((0..8).map(|_| call(&agent, "same id", "greet", "{}"))).await;
    for end in ends {
        assert_eq!(end.ended_by.as_deref(), Some(ended_by::NOT_APPROVED));
    }
    assert_eq!(room.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn scheduling_rules_hold_among_the_calls_of_the_moment() {
    let lane = |names: &[&str]| Execution::Exclusive(names.iter().map(|n| n.to_string()).collect());
    for (one, other, together) in [
        (Execution::Parallel, Execution::Parallel, 4),
        (Execution::Sequential, Execution::Parallel, 2),
        (Execution::Sequential, Execution::Sequential, 1),
        (lane(&["a", "b"]), lane(&["b", "a"]), 1),
        (lane(&["a"]), lane(&["b"]), 2),
        (lane(&["a", "a"]), Execution::Parallel, 3),
    ] {
        let room = Arc::new(Room::default());
        let what = format!("{one:?} beside {other:?}");
        let tools = [staying("one", &room, one), staying("other", &room, other)];
        let agent = Agent::new(config(tools));
        let tools = ["one", "one", "other", "other"];
        let ends = join_all(tools.map(|tool| call(&agent, "c", tool, "{}"))).await;
        assert!(ends.iter().all(|end| text(end) == "left"), "{what}");
        assert_eq!(room.most.load(Ordering::SeqCst), together, "{what}");
    }
}

#[tokio::test]
async fn an_abort_ends_its_own_call_wherever_it_waits() {
    let gate = Arc::new(Semaphore::new(0));
    let open = gate.clone();
    let tool = FnTool::new("hold", move |_, _, _| {
        let gate = open.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(ToolResult::text("held"))
        }
    });
    let agent = Agent::new(config([tool.with_execution(Execution::Sequential)]));
    let held = tokio::spawn({
        let agent = agent.clone();
        async move { call(&agent, "c1", "hold", "{}").await }
    });
    tokio::task::yield_now().await;
    let abort = AbortSignal::new();
    let (waits, ()) = tokio::join!(
        async {
            let call = ToolCall::from_text("c2", "hold", "{}");
            agent.call(call, &abort, &Recorder::default()).await
        },
        async { abort.cancel() }
    );
    assert_eq!(waits.ended_by.as_deref(), Some(ended_by::ABORTED));
    gate.add_permits(1);
    assert_eq!(text(&held.await.unwrap()), "held");
}
