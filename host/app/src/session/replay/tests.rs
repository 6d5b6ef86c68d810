//! Sessions that were just recorded, played again: whole, and broken off at every line.

use super::{Difference, Replay, replay};
use crate::session::format::{Entry, Header, Line, Setup, VERSION};
use crate::session::{Record, Recorder, witnessed};
use cofferdam_agent::config::{
    AfterEntry, AfterFailure, BeforeEntry, BeforeFailure, Rewrites, ToolExecution,
};
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::hook::{
    AfterHook, Amendment, Approval, Approver, BeforeHook, Decision, Hooked, HookedCall, Question,
    Ran, Refusal, Verdict,
};
use cofferdam_agent::message::{Arguments, AssistantMessage, StopReason};
use cofferdam_agent::model::Model;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

/// An agent whose runs are recorded.
struct Recorded {
    agent: Agent,
    recorder: Arc<Recorder>,
    setup: Setup,
}

impl Recorded {
    fn new(
        tools: Vec<Arc<dyn Tool>>,
        answers: Vec<AssistantMessage>,
        shape: impl FnOnce(&mut AgentConfig),
    ) -> Self {
        let recorder = Arc::new(Recorder::in_memory("s".into(), Box::new(|| 0)));
        let tools = witnessed(tools.into_iter(), &recorder);
        let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(answers));
        let settings = Settings::new(model).with_toolset(Toolset::new(tools, Rules::Lenient));
        let mut config = AgentConfig::new(settings);
        shape(&mut config);
        config.journal = Some(recorder.clone());
        let setup = Setup::of(&config);
        let agent = Agent::new(config);
        agent.subscribe(recorder.clone()).detach();
        Self { agent, recorder, setup }
    }

    /// What its file would be.
    fn text(&self) -> String {
        let header = Header { version: VERSION, id: "s".into(), cofferdam: "0".into() };
        let head = [Entry::Session(header), Entry::Setup(self.setup.clone().into())];
        let head = head.into_iter().map(|entry| Line { at_us: 0, entry });
        head.chain(self.recorder.lines()).map(|line| line.to_text()).collect()
    }

    /// Plays it again, whole and broken off behind each line.
    fn check(&self) {
        let text = self.text();
        for whole in 2..=text.lines().count() {
            let part: String = text.split_inclusive('\n').take(whole).collect();
            for played in replayed(&part) {
                assert_eq!(played.difference, None, "broken off behind line {whole} of\n{text}");
            }
        }
        assert!(replayed(&text).iter().all(|played| !played.cut && played.lines > 4), "{text}");
    }
}

fn replayed(text: &str) -> Vec<Replay> {
    replay(&Record::read(text.as_bytes()).unwrap())
}

fn shared(tool: FnTool) -> Arc<dyn Tool> {
    tool.shared()
}

/// Two tools of which the first waits for the second, each time they are called together.
fn slow_and_fast() -> Vec<Arc<dyn Tool>> {
    let gates: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>> = Arc::default();
    let opened = gates.clone();
    let slow = FnTool::new("slow", move |call, progress, _| {
        let (sender, gate) = oneshot::channel();
        opened.lock().unwrap().insert(call.id.to_string(), sender);
        async move {
            progress.report(ToolResult::text("one"));
            progress.report(ToolResult::text("two"));
            let _ = gate.await;
            Ok(ToolResult::text("slow"))
        }
    });
    let fast = FnTool::new("fast", move |_, progress, _| {
        let gates = gates.clone();
        async move {
            progress.report(ToolResult::text("quick"));
            gates.lock().unwrap().clear();
            Ok(ToolResult { details: Some(json!({"n": 1})), ..ToolResult::text("fast") })
        }
    });
    let number =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": []});
    vec![shared(slow), shared(fast.with_parameters(number))]
}

#[test]
fn calls_at_once_are_played_in_their_order() {
    let answers = vec![
        answer::calls([
            ("c1", "slow", json!({})),
            ("c2", "gone", json!({})),
            ("c3", "fast", json!({"n": "7"})),
            ("c4", "fast", json!({"n": []})),
            ("c5", "slow", json!({})),
            ("c6", "fast", json!({})),
        ]),
        answer::calls([("c1", "fast", json!({}))]),
        answer::text("done"),
    ];
    let recorded = Recorded::new(slow_and_fast(), answers, |_| {});
    block_on(recorded.agent.prompt("go")).unwrap();
    block_on(recorded.agent.prompt("again")).unwrap();
    recorded.check();
}

#[test]
fn lanes_and_sequences_are_played_as_they_were() {
    let lane = Execution::Exclusive(vec!["a".into()]);
    let tools = || {
        let mut tools = slow_and_fast();
        tools.push(shared(FnTool::text("laned", "x").with_execution(lane.clone())));
        tools.push(shared(FnTool::text("alone", "x").with_execution(Execution::Sequential)));
        tools
    };
    for names in [["laned", "fast", "laned"], ["fast", "alone", "laned"]] {
        let ids = ["c1", "c2", "c3"];
        let calls = ids.into_iter().zip(names).map(|(id, name)| (id, name, json!({})));
        let recorded = Recorded::new(tools(), vec![answer::calls(calls)], |_| {});
        block_on(recorded.agent.prompt("go")).unwrap();
        recorded.check();
    }
    let answers = vec![answer::calls([("c1", "fast", json!({})), ("c2", "fast", json!({}))])];
    let recorded = Recorded::new(tools(), answers, |config| {
        config.tool_execution = ToolExecution::Sequential;
    });
    block_on(recorded.agent.prompt("go")).unwrap();
    recorded.check();
}

/// Does to each call what its arguments say.
struct Told(&'static str);

impl BeforeHook for Told {
    fn name(&self) -> &str {
        self.0
    }

    fn before<'a>(
        &'a self,
        call: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let word = call.call.arguments.get("before").and_then(Value::as_str).unwrap_or_default();
        let rewritten = |text: &str| {
            let mut arguments = (*call.call.arguments).clone();
            arguments.insert("seen".into(), text.into());
            Arguments::new(arguments)
        };
        let verdict = match word {
            "rewrite" => Ok(Verdict::Rewrite(rewritten(self.0))),
            "block" => Ok(Verdict::Block(Refusal { reason: "no".into(), terminate: Some(true) })),
            "ask" => Ok(Verdict::Ask(Question { title: "May I?".into(), message: String::new() })),
            "fail" => Err("the hook fell".into()),
            _ => Ok(Verdict::Proceed),
        };
        Box::pin(ready(verdict.into()))
    }
}

impl AfterHook for Told {
    fn name(&self) -> &str {
        self.0
    }

    fn after<'a>(
        &'a self,
        call: HookedCall<'a>,
        _: Ran<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        let word = call.call.arguments.get("after").and_then(Value::as_str).unwrap_or_default();
        let amendment = match word {
            "amend" => Ok(Amendment {
                content: Some(ToolResult::text(self.0).content),
                is_error: Some(false),
                ..Amendment::default()
            }),
            "fail" => Err("the hook fell".into()),
            _ => Ok(Amendment::default()),
        };
        Box::pin(ready(amendment.into()))
    }
}

/// Says yes to every second question.
struct Person(Mutex<bool>);

impl Approver for Person {
    fn approve<'a>(&'a self, _: Approval<'a>) -> BoxFuture<'a, Decision> {
        let mut last = self.0.lock().unwrap();
        *last = !*last;
        let decision = match *last {
            true => Decision::Approved,
            false => Decision::Declined { reason: Some("not now".into()) },
        };
        Box::pin(ready(decision))
    }
}

#[test]
fn hooks_and_the_person_do_again_what_they_did() {
    let broken = || FnTool::new("broken", |_, _, _| ready(Err(ToolFailure::new("it broke"))));
    let tools = || vec![shared(FnTool::text("plain", "result")), shared(broken())];
    let words = [
        json!({"before": "rewrite", "after": "amend"}),
        json!({"before": "block"}),
        json!({"before": "ask"}),
        json!({"before": "fail", "after": "fail"}),
        json!({"before": "ask", "after": "fail"}),
        json!({"after": "amend"}),
        json!({}),
    ];
    for failure in [BeforeFailure::Block, BeforeFailure::Ask, BeforeFailure::Proceed] {
        for tool in ["plain", "broken"] {
            let ids: Vec<String> = (0..words.len()).map(|n| format!("c{n}")).collect();
            let calls = ids.iter().zip(&words).map(|(id, words)| (&**id, tool, words.clone()));
            let answers = vec![answer::calls(calls), answer::text("done")];
            let recorded = Recorded::new(tools(), answers, |config| {
                let link = |name| BeforeEntry { failure, ..BeforeEntry::new(Arc::new(Told(name))) };
                let revalidated = BeforeEntry { rewrites: Rewrites::Revalidated, ..link("second") };
                config.before = vec![link("first"), revalidated];
                let keeps = AfterEntry {
                    failure: AfterFailure::Keep,
                    ..AfterEntry::new(Arc::new(Told("second")))
                };
                config.after = vec![AfterEntry::new(Arc::new(Told("first"))), keeps];
                config.approver = Some(Arc::new(Person(Mutex::new(false))));
            });
            block_on(recorded.agent.prompt("go")).unwrap();
            recorded.check();
        }
    }
}

/// Takes a lone `value` as a list of `values`, and refuses anything else.
struct Prepares(Arc<Declaration>);

impl Tool for Prepares {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.0
    }

    fn prepare<'a>(
        &'a self,
        arguments: &'a Arguments,
        _: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        let prepared = match arguments.get("value") {
            Some(value) => Ok(json!({"values": [value]})),
            None => Err("there is no value".into()),
        };
        Some(Box::pin(ready(prepared)))
    }

    fn call<'a>(&'a self, call: Call, _: Progress, _: AbortSignal) -> BoxFuture<'a, Outcome> {
        let text = serde_json::to_string(&*call.arguments).unwrap();
        Box::pin(ready(Ok(ToolResult::text(text)).into()))
    }
}

#[test]
fn arguments_are_prepared_as_they_were() {
    let declaration = Declaration {
        name: "prepares".into(),
        label: None,
        description: "x".into(),
        parameters: json!({"type": "object", "required": ["values"], "properties": {
            "values": {"type": "array", "items": {"type": "integer"}},
        }}),
    };
    let answers = vec![answer::calls([
        ("c1", "prepares", json!({"value": 1})),
        ("c2", "prepares", json!({})),
        ("c3", "prepares", json!({"value": "no number"})),
    ])];
    let tool: Arc<dyn Tool> = Arc::new(Prepares(Arc::new(declaration)));
    let recorded = Recorded::new(vec![tool], answers, |_| {});
    block_on(recorded.agent.prompt("go")).unwrap();
    recorded.check();
}

#[test]
fn cut_and_failed_answers_are_given_again() {
    let cut = AssistantMessage {
        stop_reason: StopReason::Length,
        ..answer::calls([("c1", "plain", json!({})), ("c2", "plain", json!({}))])
    };
    let failed = AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some("overloaded".into()),
        ..answer::calls([("c3", "plain", json!({}))])
    };
    let tools = vec![shared(FnTool::text("plain", "x"))];
    let recorded = Recorded::new(tools, vec![cut, failed], |_| {});
    block_on(recorded.agent.prompt("go")).unwrap();
    recorded.check();
}

/// Queues a message when the first turn ends.
struct Typist(Agent, Mutex<bool>);

impl Observer for Typist {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let mut done = self.1.lock().unwrap();
        if !*done && matches!(event, Event::TurnEnd { .. }) {
            *done = true;
            self.0.steer("and another thing");
        }
        Box::pin(ready(()))
    }
}

#[test]
fn what_was_queued_comes_where_it_came() {
    let answers =
        vec![answer::calls([("c1", "plain", json!({}))]), answer::text("one"), answer::text("two")];
    let tools = vec![shared(FnTool::text("plain", "x"))];
    let recorded = Recorded::new(tools, answers, |_| {});
    let agent = &recorded.agent;
    agent.subscribe(Arc::new(Typist(agent.clone(), Mutex::new(false)))).detach();
    agent.steer("typed before");
    agent.follow_up("in the end");
    block_on(agent.prompt("go")).unwrap();
    recorded.check();
}

#[test]
fn an_aborted_run_is_aborted_where_it_was() {
    // A tool that aborts the run that it belongs to, and is stopped by it or not.
    let aborts = |name: &str, stopped: bool| {
        FnTool::new(name, move |_, _, abort: AbortSignal| {
            abort.cancel();
            let failure = ToolFailure { ended_by: "aborted".into(), ..ToolFailure::new("stopped") };
            ready(if stopped { Err(failure) } else { Ok(ToolResult::text("tidy")) })
        })
    };
    let lane = Execution::Exclusive(vec!["a".into()]);
    for (execution, stopped) in [
        (&Execution::Sequential, true),
        (&Execution::Sequential, false),
        (&lane, true),
        (&lane, false),
    ] {
        let tools = vec![
            shared(aborts("aborts", stopped).with_execution(execution.clone())),
            shared(FnTool::text("plain", "x").with_execution(execution.clone())),
        ];
        let answers = vec![
            answer::calls([
                ("c1", "plain", json!({})),
                ("c2", "aborts", json!({})),
                ("c3", "plain", json!({})),
                ("c4", "plain", json!({})),
            ]),
            answer::text("never said"),
        ];
        let recorded = Recorded::new(tools, answers, |_| {});
        block_on(recorded.agent.prompt("go")).unwrap();
        assert!(recorded.text().contains("\"stop_reason\":\"aborted\""));
        recorded.check();
    }
}

#[test]
fn a_difference_is_shown_where_it_is() {
    let answers = vec![
        answer::calls([("c1", "slow", json!({})), ("c2", "fast", json!({}))]),
        answer::text("done"),
    ];
    let recorded = Recorded::new(slow_and_fast(), answers, |_| {});
    block_on(recorded.agent.prompt("go")).unwrap();
    let text = recorded.text();
    // As a loop would that put results into the transcript in the order of their ends.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines.iter().position(|line| line.contains("\"role\":\"tool_result\"")).unwrap();
    let mut swapped = lines.clone();
    swapped.swap(at, at + 1);
    let [played] = &replayed(&swapped.concat())[..] else { panic!("one run") };
    let Some(Difference { line, recorded: Some(then), replayed: Some(now) }) = &played.difference
    else {
        panic!("{played:?}")
    };
    // The header and the setup are no lines of the run.
    assert_eq!(*line, at - 1);
    assert_eq!(then["message"]["tool_call_id"], "c2");
    assert_eq!(now["message"]["tool_call_id"], "c1");
    // As a loop would that ends a run too early.
    let short = text.replace("{\"type\":\"turn_end\",\"at_us\":0}\n", "");
    assert!(replayed(&short)[0].difference.is_some());
}

/// The program plays sessions on a thread of tokio, which lets a task take its locks so many times
/// only before it has to go back to the scheduler.
#[tokio::test]
async fn runs_of_any_length_are_played_on_a_thread_of_tokio() {
    let tools = || vec![shared(FnTool::text("plain", "x"))];
    let ids: Vec<String> = (0..400).map(|number| format!("c{number}")).collect();
    let call = |id: &'_ String| answer::calls([(id.as_str(), "plain", json!({}))]);
    let at_once = answer::calls(ids.iter().map(|id| (id.as_str(), "plain", json!({}))));
    let one_by_one: Vec<AssistantMessage> = ids.iter().map(call).collect();
    for (answers, execution) in [
        (vec![at_once.clone()], ToolExecution::Parallel),
        (vec![at_once], ToolExecution::Sequential),
        (one_by_one, ToolExecution::Parallel),
    ] {
        let done = [answer::text("done"), answer::text("again")];
        let answers = answers.into_iter().chain(done).collect();
        let recorded = Recorded::new(tools(), answers, |config| {
            config.tool_execution = execution;
            config.guards.turns_max = None;
        });
        recorded.agent.prompt("go").await.unwrap();
        recorded.agent.prompt("go on").await.unwrap();
        let [long, short] = &replayed(&recorded.text())[..] else { panic!("two runs") };
        assert_eq!((long.calls, &long.difference), (ids.len(), &None));
        assert_eq!((short.calls, &short.difference), (0, &None));
    }
    // Many runs of one session share what the thread has.
    let answers = ids.iter().flat_map(|id| [call(id), answer::text("done")]).collect();
    let recorded = Recorded::new(tools(), answers, |_| {});
    for _ in &ids {
        recorded.agent.prompt("go").await.unwrap();
    }
    let played = replayed(&recorded.text());
    assert_eq!(played.len(), ids.len());
    assert!(played.iter().all(|run| run.calls == 1 && run.difference.is_none()));
}
