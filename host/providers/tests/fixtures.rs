//! Answers of providers, byte for byte, over loopback: each case gives the expected message however
//! its bytes are cut, and no call runs that must not. The format is described in `tests/sse` of the
//! repository.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod serve;

use cofferdam_agent::message::{AssistantBlock, AssistantMessage, StopReason};
use cofferdam_agent::model::{Model, Request, Step, Thinking};
use cofferdam_agent::testing::FnTool;
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use cofferdam_providers::{Dialect, Endpoint, Remote, Wire, read_body};
use futures::StreamExt;
use serde_json::{Value, json};
use serve::{Reply, Server, stop};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

struct Case {
    name: String,
    wire: Wire,
    body: Vec<u8>,
    expected: Value,
}

fn cases(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, wire) in [
        ("anthropic", Wire::Anthropic),
        ("openai-chat", Wire::Chat(Dialect::Generic)),
        ("openai-responses", Wire::Responses),
        ("gemini", Wire::Gemini),
    ] {
        for entry in std::fs::read_dir(folder.join(name)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                let expected = std::fs::read(path.with_extension("expected.json")).unwrap();
                cases.push(Case {
                    name: format!("{name}/{}", path.file_stem().unwrap().display()),
                    wire,
                    body: std::fs::read(&path).unwrap(),
                    expected: serde_json::from_slice(&expected).unwrap(),
                });
            }
        }
    }
    assert!(!cases.is_empty(), "{} has no cases", folder.display());
    cases
}

fn synthetic() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sse/synthetic")
}

fn endpoint(case: &Case, server: &Server) -> Endpoint {
    Endpoint { base_url: server.url.clone(), ..Endpoint::new(case.wire, "m") }
}

async fn answer(case: &Case, reply: Reply) -> AssistantMessage {
    let server = Server::start([reply]).await;
    let model = Remote::new(endpoint(case, &server)).unwrap();
    let request = Request {
        system_prompt: "".into(),
        messages: Arc::new(vec![Arc::new("go".into())]),
        tools: Arc::default(),
        thinking: Thinking::Off,
        credential: None,
    };
    let steps: Vec<Step> = model.stream(request, AbortSignal::new()).collect().await;
    check_order(&case.name, &steps);
    let Some(Step::Done(message)) = steps.last() else { panic!("{}: no last step", case.name) };
    message.clone()
}

/// Start, then each block as a start, deltas, an end, numbered from 0 in the order of their starts.
fn check_order(name: &str, steps: &[Step]) {
    let (mut begun, mut ended) = (0, HashSet::new());
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Retry(_) => panic!("{name}: a retry"),
            Step::Start => assert_eq!(at, 0, "{name}"),
            Step::Done(_) => assert_eq!(at, steps.len() - 1, "{name}"),
            Step::TextStart { index }
            | Step::ThinkingStart { index }
            | Step::ToolCallStart { index, .. } => {
                assert_eq!(*index, begun, "{name}: {step:?}");
                begun += 1;
            }
            Step::TextDelta { index, .. }
            | Step::ThinkingDelta { index, .. }
            | Step::ToolCallDelta { index, .. } => {
                assert!(*index < begun && !ended.contains(index), "{name}: {step:?}");
            }
            Step::TextEnd { index, .. }
            | Step::ThinkingEnd { index, .. }
            | Step::ToolCallEnd { index, .. } => {
                assert!(*index < begun && ended.insert(*index), "{name}: {step:?}");
            }
        }
    }
}

/// What differs between a message and the expected one.
fn difference(message: &AssistantMessage, expected: &Value) -> Option<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, got: Value, want: &Value| {
        if got != *want {
            wrong.push(format!("{what}: got {got}, expected {want}"));
        }
    };
    compare("stop_reason", message.stop_reason.as_str().into(), &expected["stop_reason"]);
    compare("raw_stop_reason", json!(message.raw_stop_reason), &expected["raw_stop_reason"]);
    let blocks = expected["content"].as_array().unwrap();
    compare("blocks", message.content.len().into(), &blocks.len().into());
    for (block, want) in message.content.iter().zip(blocks) {
        compare("block", shown(block, want), want);
    }
    if let Some(usage) = expected.get("usage") {
        let told =
            json!({"input_tokens": message.usage.input, "output_tokens": message.usage.output});
        compare("usage", told, usage);
    }
    if let Some(part) = expected["error_contains"].as_str() {
        let told = message.error_message.as_deref().unwrap_or_default();
        if !told.contains(part) {
            wrong.push(format!("error: {told:?} does not contain {part:?}"));
        }
    }
    let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
    let distinct: HashSet<&&str> = calls.iter().filter(|id| !id.is_empty()).collect();
    if distinct.len() != calls.len() {
        wrong.push(format!("ids: {calls:?}"));
    }
    (!wrong.is_empty()).then(|| wrong.join("\n  "))
}

/// A block in the words of the expectation, with its wild cards where they hold.
fn shown(block: &AssistantBlock, want: &Value) -> Value {
    let mut shown = match block {
        AssistantBlock::Text(block) => json!({"type": "text", "text": block.text}),
        AssistantBlock::Thinking(block) => {
            let mut shown = json!({"type": "thinking", "thinking": block.thinking});
            if block.redacted {
                shown["redacted"] = true.into();
            }
            if let Some(signature) = &block.signature {
                shown["signature"] = signature.as_str().into();
            }
            shown
        }
        AssistantBlock::ToolCall(call) => {
            let mut shown = json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": *call.arguments});
            if let Some(signature) = &call.signature {
                shown["thought_signature"] = signature.as_str().into();
            }
            if want["arguments"] == "$invalid"
                && call.arguments.is_empty()
                && call.malformed.as_ref().is_some_and(|malformed| !malformed.text.is_empty())
            {
                shown["arguments"] = "$invalid".into();
            }
            shown
        }
    };
    if want["id"] == "$any" && !shown["id"].as_str().unwrap_or_default().is_empty() {
        shown["id"] = "$any".into();
    }
    shown
}

/// The three ways of serving a case.
fn ways(case: &Case) -> Vec<(String, Reply)> {
    let whole = Reply::events(case.body.clone());
    let inside_a_character = |offset: &usize| case.body[*offset] & 0b1100_0000 == 0b1000_0000;
    let cuts = (1..case.body.len()).filter(inside_a_character);
    let cuts = cuts.map(|offset| (format!("cut at {offset}"), whole.clone().cut_at(offset)));
    let mut ways: Vec<(String, Reply)> = cuts.collect();
    ways.push(("one byte per write".into(), whole.clone().byte_by_byte()));
    ways.push(("whole".into(), whole));
    ways
}

async fn check(folder: &Path) {
    let mut wrong = Vec::new();
    let (mut count, mut served) = (0, 0);
    for case in cases(folder) {
        count += 1;
        for (way, reply) in ways(&case) {
            served += 1;
            if let Some(difference) = difference(&answer(&case, reply).await, &case.expected) {
                wrong.push(format!("{}, {way}:\n  {difference}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    eprintln!("{count} cases, served {served} times");
}

/// Runs each case as the first answer of an agent that has every tool it names, and compares the
/// calls that run with those that may.
async fn check_calls(folder: &Path) {
    for case in cases(folder) {
        let expected = case.expected["content"].as_array().unwrap().iter();
        let calls: Vec<&Value> = expected.filter(|block| block["type"] == "tool_call").collect();
        let ran: Arc<Mutex<Vec<Value>>> = Arc::default();
        let names: HashSet<&str> =
            calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
        let tools = names.iter().filter(|name| !name.contains('.')).map(|name| {
            let (ran, named) = (ran.clone(), (*name).to_owned());
            FnTool::new(name, move |call, _, _| {
                ran.lock().unwrap().push(json!({"name": named, "arguments": *call.arguments}));
                std::future::ready(Ok(ToolResult::text("ok")))
            })
            .shared()
        });
        let server =
            Server::start([Reply::events(case.body.clone()), Reply::events(stop(case.wire))]).await;
        let model = Arc::new(Remote::new(endpoint(&case, &server)).unwrap());
        let settings = Settings::new(model).with_toolset(Toolset::new(tools, Rules::Lenient));
        let end = Agent::new(AgentConfig::new(settings)).prompt("go").await.unwrap();
        let first = end.messages[1].as_assistant().unwrap();
        let may_run = first.stop_reason == StopReason::ToolUse;
        let wanted: Vec<Value> = calls
            .iter()
            .filter(|call| may_run && call["arguments"].is_object())
            .filter(|call| !call["name"].as_str().unwrap().contains('.'))
            .map(|call| json!({"name": call["name"], "arguments": call["arguments"]}))
            .collect();
        assert_eq!(*ran.lock().unwrap(), wanted, "{}", case.name);
        if may_run {
            // The results of all calls went back, and the next answer was the last.
            assert_eq!(server.asked().len(), 2, "{}", case.name);
            assert_eq!(end.messages.len(), 3 + calls.len(), "{}: {:?}", case.name, end.messages);
        }
    }
}

/// Where the recorded cases are, which are other projects' and not part of this one.
fn recorded() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("COFFERDAM_RECORDED").map(|folder| repository.join(folder));
    if folder.is_none() {
        eprintln!("skipped: COFFERDAM_RECORDED does not say where the recorded cases are");
    }
    folder
}

/// Without a network in between, cuts are where they are said to be.
#[tokio::test]
async fn no_cut_makes_a_difference() {
    for case in cases(&synthetic()) {
        let whole = read_body(case.wire, vec![case.body.clone().into()]).await;
        let bytewise = case.body.iter().map(|byte| vec![*byte].into()).collect();
        assert_eq!(read_body(case.wire, bytewise).await, whole, "{}, byte by byte", case.name);
        for offset in 1..case.body.len() {
            let (one, other) = case.body.split_at(offset);
            let pieces = vec![one.to_vec().into(), other.to_vec().into()];
            assert_eq!(read_body(case.wire, pieces).await, whole, "{}, cut at {offset}", case.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synthetic_cases_give_the_expected_message() {
    check(&synthetic()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_cases_give_the_expected_message() {
    if let Some(folder) = recorded() {
        check(&folder).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_runs_that_must_not() {
    check_calls(&synthetic()).await;
    if let Some(folder) = recorded() {
        check_calls(&folder).await;
    }
}
