//! The chain of hooks: order, rewrites, failures, approvals, and what is on record afterwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::config::{
    AfterEntry, AfterFailure, BeforeEntry, BeforeFailure, Rewrites, ToolFilter,
};
use cofferdam_agent::event::{CallEnd, Event, HookAction, Observer, ended_by};
use cofferdam_agent::hook::{
    AfterHook, Amendment, Approval, Approver, BeforeHook, Decision, Hooked, HookedCall, Question,
    Ran, Refusal, Verdict,
};
use cofferdam_agent::message::{Arguments, Content};
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type Decide = dyn Fn(&Value) -> Result<Verdict, String> + Send + Sync;

/// A before-hook from a closure over the arguments.
struct Before(&'static str, Box<Decide>);

impl BeforeHook for Before {
    fn name(&self) -> &str {
        self.0
    }

    fn before<'a>(
        &'a self,
        hooked: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let verdict = self.1(&Value::Object((*hooked.call.arguments).clone()));
        Box::pin(std::future::ready(verdict.into()))
    }
}

struct After(&'static str, Result<Amendment, String>);

impl AfterHook for After {
    fn name(&self) -> &str {
        self.0
    }

    fn after<'a>(
        &'a self,
        _: HookedCall<'a>,
        _: Ran<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        Box::pin(std::future::ready(self.1.clone().into()))
    }
}

#[derive(Default)]
struct Ends(Mutex<Vec<CallEnd>>);

impl Observer for Ends {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionEnd { end, .. } = event {
            self.0.lock().unwrap().push((*end).clone());
        }
        Box::pin(std::future::ready(()))
    }
}

/// Answers every question the same, and notes which arguments it was shown.
struct Person(Decision, Mutex<Vec<Value>>);

impl Approver for Person {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        let shown = Value::Object((*approval.call.arguments).clone());
        self.1.lock().unwrap().push(shown);
        Box::pin(std::future::ready(self.0.clone()))
    }
}

/// Whoever says this.
fn person(decision: Decision) -> Arc<Person> {
    Arc::new(Person(decision, Mutex::default()))
}

fn before(
    name: &'static str,
    decide: impl Fn(&Value) -> Result<Verdict, String> + Send + Sync + 'static,
) -> BeforeEntry {
    BeforeEntry::new(Arc::new(Before(name, Box::new(decide))))
}

fn rewrite(arguments: Value) -> Verdict {
    Verdict::Rewrite(Arguments::new(arguments.as_object().unwrap().clone()))
}

fn ask() -> Verdict {
    Verdict::Ask(Question { title: "Really?".into(), message: String::new() })
}

/// Runs one call of a tool that shows its arguments, through these hooks.
fn run(before: Vec<BeforeEntry>, after: Vec<AfterEntry>, approver: Option<Arc<Person>>) -> CallEnd {
    let tool = FnTool::new("show", |call, _, _| {
        std::future::ready(Ok(ToolResult::text(json!(*call.arguments).to_string())))
    });
    let tool = tool.with_parameters(json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }));
    let model = ScriptedModel::new([answer::calls([("c", "show", json!({"n": 1}))])]);
    let toolset = Toolset::new([tool.shared()], Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    config.before = before;
    config.after = after;
    config.approver = approver.map(|person| person as Arc<dyn Approver>);
    let agent = Agent::new(config);
    let ends = Arc::new(Ends::default());
    agent.subscribe(ends.clone()).detach();
    block_on(agent.prompt("go")).unwrap();
    ends.0.lock().unwrap().pop().unwrap()
}

fn text(end: &CallEnd) -> &str {
    match &end.result.content[..] {
        [Content::Text(text)] => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_hook_sees_what_the_earlier_ones_left_and_the_first_block_ends_the_chain() {
    let end = run(
        vec![
            before("adds", |_| Ok(rewrite(json!({"n": 2})))),
            before("looks", |args| {
                assert_eq!(args, &json!({"n": 2}));
                Ok(Verdict::Proceed)
            }),
            before("blocks", |_| {
                Ok(Verdict::Block(Refusal { reason: "no".into(), terminate: None }))
            }),
            before("never asked", |_| panic!("asked")),
        ],
        vec![],
        None,
    );
    assert_eq!(text(&end), "no");
    assert_eq!(end.ended_by.as_deref(), Some(ended_by::BLOCKED));
    let names: Vec<&str> = end.hooks.iter().map(|record| record.hook.as_str()).collect();
    assert_eq!(names, ["adds", "blocks"]);
}

#[test]
fn what_a_rewrite_may_do_is_the_operators_choice() {
    let wrong = |rewrites, failure| {
        let entry = before("wrong", |_| Ok(rewrite(json!({"n": "many"}))));
        run(vec![BeforeEntry { rewrites, failure, ..entry }], vec![], None)
    };
    assert_eq!(text(&wrong(Rewrites::Trusted, BeforeFailure::Block)), r#"{"n":"many"}"#);
    let end = wrong(Rewrites::Revalidated, BeforeFailure::Block);
    assert!(text(&end).contains("n: expected type integer"), "{}", text(&end));
    assert!(text(&wrong(Rewrites::Forbidden, BeforeFailure::Block)).contains("may not"));
    // A hook that failed has changed nothing.
    assert_eq!(text(&wrong(Rewrites::Revalidated, BeforeFailure::Proceed)), r#"{"n":1}"#);
    let coerced = before("text", |_| Ok(rewrite(json!({"n": "7"}))));
    let end = run(vec![BeforeEntry { rewrites: Rewrites::Revalidated, ..coerced }], vec![], None);
    assert_eq!(text(&end), r#"{"n":7}"#);
}

#[test]
fn a_person_is_asked_after_the_last_rewrite_and_sees_the_final_arguments() {
    let chain =
        || vec![before("asks", |_| Ok(ask())), before("adds", |_| Ok(rewrite(json!({"n": 9}))))];
    let yes = person(Decision::Approved);
    let end = run(chain(), vec![], Some(yes.clone()));
    assert_eq!(text(&end), r#"{"n":9}"#);
    assert_eq!(*yes.1.lock().unwrap(), [json!({"n": 9})]);
    for (decision, says) in [
        (Decision::declined(), "and the answer was no."),
        (Decision::Declined { reason: Some("too far".into()) }, "and the answer was no: too far."),
        (Decision::Unanswered { why: "it is late".into() }, "and it is late."),
    ] {
        let no = run(chain(), vec![], Some(person(decision.clone())));
        assert!(text(&no).ends_with(says), "{}", text(&no));
        assert_eq!(no.ended_by.as_deref(), Some(ended_by::NOT_APPROVED));
        assert_eq!(no.hooks.last().unwrap().action, HookAction::Asked(decision));
    }
    let nobody = run(chain(), vec![], None);
    assert!(text(&nobody).contains("nobody to ask"), "{}", text(&nobody));
}

/// Never answers, and aborts the run once it is asked.
struct Silent {
    abort: Mutex<Option<Agent>>,
    open: Arc<AtomicBool>,
}

impl Approver for Silent {
    fn approve<'a>(&'a self, _: Approval<'a>) -> BoxFuture<'a, Decision> {
        struct Closes(Arc<AtomicBool>);
        impl Drop for Closes {
            fn drop(&mut self) {
                self.0.store(false, Ordering::SeqCst);
            }
        }
        self.open.store(true, Ordering::SeqCst);
        let closes = Closes(self.open.clone());
        if let Some(agent) = &*self.abort.lock().unwrap() {
            agent.abort();
        }
        Box::pin(async move {
            let _closes = closes;
            std::future::pending().await
        })
    }
}

#[test]
fn an_abort_closes_the_question_and_the_call_has_not_run() {
    let open = Arc::new(AtomicBool::new(false));
    let silent = Arc::new(Silent { abort: Mutex::default(), open: open.clone() });
    let tool = FnTool::new("show", |_, _, _| async { panic!("it runs") });
    let calls = answer::calls([("a", "show", json!({})), ("b", "show", json!({}))]);
    let model = ScriptedModel::new([calls]);
    let toolset = Toolset::new([tool.shared()], Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    config.before = vec![before("asks", |_| Ok(ask()))];
    config.approver = Some(silent.clone());
    let agent = Agent::new(config);
    *silent.abort.lock().unwrap() = Some(agent.clone());
    let ends = Arc::new(Ends::default());
    agent.subscribe(ends.clone()).detach();
    block_on(agent.prompt("go")).unwrap();
    assert!(!open.load(Ordering::SeqCst), "the question is still open");
    let ends = ends.0.lock().unwrap();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end.ended_by.as_deref() == Some(ended_by::ABORTED)), "{ends:?}");
}

#[test]
fn what_the_failure_of_a_before_hook_means() {
    let fails = |failure, approver| {
        let entry = before("fails", |_| Err("out of order".into()));
        run(vec![BeforeEntry { failure, ..entry }], vec![], approver)
    };
    let blocked = fails(BeforeFailure::Block, None);
    assert_eq!(text(&blocked), "out of order");
    assert_eq!(blocked.ended_by.as_deref(), Some(ended_by::HOOK));
    assert_eq!(text(&fails(BeforeFailure::Proceed, None)), r#"{"n":1}"#);
    assert!(fails(BeforeFailure::Ask, None).is_error);
    let yes = person(Decision::Approved);
    assert_eq!(text(&fails(BeforeFailure::Ask, Some(yes))), r#"{"n":1}"#);
    let panics = run(vec![before("panics", |_| panic!("boo"))], vec![], None);
    assert_eq!(text(&panics), "boo");
}

#[test]
fn amendments_replace_whole_fields_in_order_and_a_failure_is_an_error_or_nothing() {
    let amend = |name, amendment| AfterEntry::new(Arc::new(After(name, Ok(amendment))));
    let fails = |failure| {
        let hook = Arc::new(After("fails", Err("no audit".into())));
        AfterEntry { failure, ..AfterEntry::new(hook) }
    };
    let first = Amendment {
        details: Some(json!({"by": 1})),
        terminate: Some(true),
        ..Amendment::default()
    };
    let second = Amendment { is_error: Some(true), content: Some(vec![]), ..Amendment::default() };
    let end = run(vec![], vec![amend("first", first.clone()), amend("second", second)], None);
    assert_eq!(end.result.content, []);
    assert_eq!(end.result.details, Some(json!({"by": 1})));
    assert!(end.is_error);
    assert_eq!(end.hooks.len(), 2);
    let end = run(vec![], vec![amend("first", first.clone()), fails(AfterFailure::Error)], None);
    assert_eq!(text(&end), "no audit");
    assert_eq!((end.is_error, end.result.terminate), (true, None));
    let end = run(vec![], vec![amend("first", first), fails(AfterFailure::Keep)], None);
    assert_eq!(text(&end), r#"{"n":1}"#);
    assert!(!end.is_error);
    assert_eq!(end.hooks[1].action, HookAction::Failed("no audit".into()));
}

#[test]
fn a_hook_is_asked_about_its_tools_only() {
    let entry = before("other", |_| panic!("asked"));
    let entry = BeforeEntry { tools: ToolFilter::matching(|name| name != "show"), ..entry };
    assert_eq!(text(&run(vec![entry], vec![], None)), r#"{"n":1}"#);
}
