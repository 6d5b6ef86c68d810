//! Batches and turns with a say over time: lanes, progress, settings that change.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::message::Message;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
use cofferdam_agent::tool::{Execution, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// xorshift64.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

type Log = Arc<Mutex<Vec<(char, String)>>>;

/// A tool that notes when its calls begin and end, and takes as long as its argument says.
fn timed(name: &str, lanes: &[&str], log: &Log) -> FnTool {
    let log = log.clone();
    let tool = FnTool::new(name, move |call, _, _| {
        let log = log.clone();
        async move {
            log.lock().unwrap().push(('+', call.id.to_string()));
            let turns = call.arguments.get("turns").and_then(|turns| turns.as_u64()).unwrap();
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            log.lock().unwrap().push(('-', call.id.to_string()));
            Ok(ToolResult::text(&*call.id))
        }
    });
    let lanes: Vec<String> = lanes.iter().map(|lane| (*lane).to_owned()).collect();
    if lanes.is_empty() { tool } else { tool.with_execution(Execution::Exclusive(lanes)) }
}

const TOOLS: [(&str, &[&str]); 4] =
    [("read", &[]), ("write", &["files"]), ("post", &["net"]), ("sync", &["files", "net"])];

/// Runs a batch of calls and returns its log and transcript.
async fn run(calls: &[(String, usize, u64)]) -> (Vec<(char, String)>, Vec<Arc<Message>>) {
    let log = Log::default();
    let tools = TOOLS.map(|(name, lanes)| timed(name, lanes, &log).shared());
    let calls = calls
        .iter()
        .map(|(id, tool, turns)| (id.as_str(), TOOLS[*tool].0, json!({"turns": turns})));
    let model = ScriptedModel::new([answer::calls(calls)]);
    let toolset = Toolset::new(tools, Rules::Portable);
    let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset)));
    let end = agent.prompt("go").await.unwrap();
    let log = log.lock().unwrap().clone();
    (log, end.messages)
}

fn at(log: &[(char, String)], what: char, id: &str) -> usize {
    log.iter().position(|(sign, call)| *sign == what && call == id).unwrap()
}

#[tokio::test]
async fn calls_of_one_lane_never_overlap_and_the_transcript_is_the_same_whatever_the_timing() {
    let mut state = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..300 {
        let count = 2 + draw(&mut state, 8);
        let mut calls: Vec<(String, usize, u64)> = (0..count)
            .map(|n| (format!("c{n}"), draw(&mut state, 4) as usize, draw(&mut state, 6)))
            .collect();
        let (log, messages) = run(&calls).await;
        for (later, call) in calls.iter().enumerate() {
            for earlier in &calls[..later] {
                let share = TOOLS[earlier.1].1.iter().any(|lane| TOOLS[call.1].1.contains(lane));
                if share {
                    assert!(
                        at(&log, '-', &earlier.0) < at(&log, '+', &call.0),
                        "{calls:?}\n{log:?}"
                    );
                }
            }
        }
        // Other times, the same transcript.
        for call in &mut calls {
            call.2 = draw(&mut state, 6);
        }
        let (_, again) = run(&calls).await;
        let results = |messages: &[Arc<Message>]| messages[2..].to_vec();
        assert_eq!(results(&again), results(&messages));
    }
}

#[tokio::test]
async fn a_call_does_not_wait_for_a_lane_that_it_does_not_use() {
    let calls =
        [("c0".into(), 1, 50), ("c1".into(), 1, 0), ("c2".into(), 2, 0), ("c3".into(), 0, 0)];
    let (log, _) = run(&calls).await;
    assert!(
        at(&log, '-', "c2") < at(&log, '-', "c0") && at(&log, '-', "c3") < at(&log, '-', "c0"),
        "{log:?}"
    );
    assert!(at(&log, '-', "c0") < at(&log, '+', "c1"), "{log:?}");
}

#[test]
fn a_report_after_the_end_is_dropped_and_counted() {
    let kept: Arc<Mutex<Option<Progress>>> = Arc::default();
    let keeps = kept.clone();
    let tool = FnTool::new("t", move |_, progress, _| {
        *keeps.lock().unwrap() = Some(progress);
        std::future::ready(Ok(ToolResult::default()))
    });
    let model = ScriptedModel::new([answer::calls([("c1", "t", json!({}))])]);
    let toolset = Toolset::new([tool.shared()], Rules::Portable);
    let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset)));
    block_on(agent.prompt("go")).unwrap();
    let progress = kept.lock().unwrap().take().unwrap();
    progress.report(ToolResult::text("ghost"));
    block_on(progress.announced());
    assert_eq!(progress.late(), 1);
}

/// Takes the tools away as soon as a call of one begins.
struct Reload(Mutex<Option<Agent>>);

impl Observer for Reload {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionStart { .. } = event
            && let Some(agent) = &*self.0.lock().unwrap()
        {
            let settings = (*agent.settings()).clone();
            agent.set_settings(settings.with_toolset(Toolset::default()).with_system_prompt("new"));
        }
        Box::pin(std::future::ready(()))
    }
}

#[test]
fn new_settings_hold_from_the_next_turn_on() {
    let call = || answer::calls([("c1", "t", json!({}))]);
    let model = Arc::new(ScriptedModel::new([call(), call()]).keeping_requests());
    let toolset = Toolset::new([FnTool::text("t", "still here").shared()], Rules::Portable);
    let agent = Agent::new(AgentConfig::new(Settings::new(model.clone()).with_toolset(toolset)));
    let reload = Arc::new(Reload(Mutex::new(Some(agent.clone()))));
    agent.subscribe(reload.clone()).detach();
    let end = block_on(agent.prompt("go")).unwrap();
    reload.0.lock().unwrap().take();
    let requests = model.requests();
    assert_eq!((requests[0].tools.len(), &*requests[0].system_prompt), (1, ""));
    assert_eq!((requests[1].tools.len(), &*requests[1].system_prompt), (0, "new"));
    let errors: Vec<bool> = end
        .messages
        .iter()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(result.is_error),
            _ => None,
        })
        .collect();
    assert_eq!(errors, [false, true], "the running call keeps its tool, the next one has none");
}

#[tokio::test]
async fn waiting_for_idle_ends_with_the_run() {
    let tool = FnTool::new("t", |_, _, _| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(ToolResult::default())
    });
    let model = ScriptedModel::new([answer::calls([("c1", "t", json!({}))])]);
    let toolset = Toolset::new([tool.shared()], Rules::Portable);
    let agent = Agent::new(AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset)));
    agent.wait_for_idle().await;
    let running = tokio::spawn({
        let agent = agent.clone();
        async move { agent.prompt("go").await }
    });
    tokio::task::yield_now().await;
    agent.wait_for_idle().await;
    assert!(!agent.is_running());
    running.await.unwrap().unwrap();
}
