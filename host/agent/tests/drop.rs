//! Dropping a run's future at any await leaves nothing running and the transcript valid.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::config::{AfterEntry, BeforeEntry};
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::hook::{AfterHook, Amendment, BeforeHook, Hooked, HookedCall, Ran, Verdict};
use cofferdam_agent::journal::{Journal, JournalError};
use cofferdam_agent::message::{Message, StopReason};
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
use cofferdam_agent::tool::{Execution, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use futures::future::BoxFuture;
use serde_json::json;
use std::collections::HashSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// Is pending once, so that every party is an await at which the run can be dropped.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct Slow;

impl Observer for Slow {
    fn on_event<'a>(&'a self, _: &'a Event<'a>) -> BoxFuture<'a, ()> {
        Box::pin(yield_once())
    }
}

impl BeforeHook for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn before<'a>(
        &'a self,
        _: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        Box::pin(async {
            yield_once().await;
            Ok(Verdict::Proceed).into()
        })
    }
}

impl AfterHook for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn after<'a>(
        &'a self,
        _: HookedCall<'a>,
        _: Ran<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        Box::pin(async {
            yield_once().await;
            Ok(Amendment::default()).into()
        })
    }
}

#[derive(Default)]
struct Book(Mutex<Vec<Arc<Message>>>);

impl Journal for Book {
    fn append<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async {
            yield_once().await;
            self.0.lock().unwrap().push(message.clone());
            Ok(())
        })
    }
}

struct Stage {
    agent: Agent,
    book: Arc<Book>,
    running: Arc<AtomicUsize>,
}

fn stage(execution: Execution) -> Stage {
    let running = Arc::new(AtomicUsize::new(0));
    let counted = running.clone();
    let tool = FnTool::new("slow", move |_, progress, _| {
        let counted = counted.clone();
        async move {
            struct Running(Arc<AtomicUsize>);
            impl Drop for Running {
                fn drop(&mut self) {
                    self.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let _running = Running(counted);
            progress.report(ToolResult::text("half"));
            yield_once().await;
            Ok(ToolResult::text("whole"))
        }
    });
    let tool = tool.with_execution(execution);
    let calls = [("a", "slow", json!({})), ("b", "nope", json!({})), ("c", "slow", json!({}))];
    let model =
        ScriptedModel::new([answer::calls(calls.clone()), answer::calls([calls[0].clone()])]);
    let toolset = Toolset::new([tool.shared()], Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    let book = Arc::new(Book::default());
    config.journal = Some(book.clone());
    config.before = vec![BeforeEntry::new(Arc::new(Slow))];
    config.after = vec![AfterEntry::new(Arc::new(Slow))];
    let agent = Agent::new(config);
    agent.subscribe(Arc::new(Slow)).detach();
    Stage { agent, book, running }
}

/// Every call of a finished answer has exactly one result, right after it, in source order.
fn check_valid(messages: &[Arc<Message>]) {
    let mut at = 0;
    while at < messages.len() {
        let Message::Assistant(answer) = &*messages[at] else {
            assert!(!matches!(*messages[at], Message::ToolResult(_)), "a result without a call");
            at += 1;
            continue;
        };
        assert_ne!(answer.stop_reason, StopReason::Pending);
        at += 1;
        for call in answer.tool_calls() {
            match messages.get(at).map(|message| &**message) {
                Some(Message::ToolResult(result)) => assert_eq!(result.tool_call_id, call.id),
                other => panic!("call {} is followed by {other:?}", call.id),
            }
            at += 1;
        }
    }
}

fn drop_at_every_poll(execution: &Execution) {
    for polls in 0.. {
        let Stage { agent, book, running } = stage(execution.clone());
        let finished = {
            let mut run = pin!(agent.prompt("go"));
            let mut cx = Context::from_waker(Waker::noop());
            (0..polls).any(|_| run.as_mut().poll(&mut cx).is_ready())
        };
        assert_eq!(running.load(Ordering::SeqCst), 0, "a tool is left after {polls} polls");
        assert!(!agent.is_running());
        assert!(agent.pending_tool_calls().is_empty());
        check_valid(&agent.messages());
        // And the agent goes on; the journal then has everything, in order. A message whose append
        // was cut may be there twice, which a reader knows by its identity.
        block_on(agent.prompt("again")).unwrap();
        check_valid(&agent.messages());
        let mut seen = HashSet::new();
        let written: Vec<_> = book.0.lock().unwrap().clone();
        let written: Vec<_> = written.into_iter().filter(|m| seen.insert(Arc::as_ptr(m))).collect();
        let kept: HashSet<_> = agent.messages().iter().map(Arc::as_ptr).collect();
        let written: Vec<_> =
            written.into_iter().filter(|m| kept.contains(&Arc::as_ptr(m))).collect();
        assert_eq!(written.len(), agent.messages().len(), "after {polls} polls");
        if finished {
            assert!(polls > 30, "only {polls} places to drop");
            return;
        }
    }
}

#[test]
fn of_a_parallel_batch() {
    drop_at_every_poll(&Execution::Parallel);
}

#[test]
fn of_a_sequential_batch() {
    drop_at_every_poll(&Execution::Sequential);
}

#[test]
fn of_a_batch_with_a_lane() {
    drop_at_every_poll(&Execution::Exclusive(vec!["files".into()]));
}

struct Broken(AtomicUsize);

impl Journal for Broken {
    fn append<'a>(&'a self, _: &'a Arc<Message>) -> BoxFuture<'a, Result<(), JournalError>> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        Box::pin(std::future::ready(left.map(drop).map_err(|_| JournalError("disk full".into()))))
    }
}

#[test]
fn a_journal_that_fails_ends_the_run_with_an_error_and_a_valid_transcript() {
    for writes in 0..6 {
        let mut config = AgentConfig::new(Settings::new(Arc::new(ScriptedModel::new([
            answer::calls([("a", "nope", json!({})), ("b", "nope", json!({}))]),
        ]))));
        config.journal = Some(Arc::new(Broken(AtomicUsize::new(writes))));
        let agent = Agent::new(config);
        let ended = block_on(agent.prompt("go"));
        assert_eq!(ended.is_err(), writes < 5, "after {writes} writes");
        check_valid(&agent.messages());
        assert!(!agent.is_running());
    }
}
