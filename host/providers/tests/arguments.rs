//! What servers send as the arguments of a call, on every wire and in every place where one may put
//! them: an object or the text of one is taken, nothing is no arguments, and with anything else the
//! call does not run and its error quotes what came.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod serve;

use cofferdam_agent::message::{Message, StopReason};
use cofferdam_agent::testing::FnTool;
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use cofferdam_providers::{Dialect, Endpoint, Remote, Wire};
use serde_json::{Value, json};
use serve::{Reply, Server, stop};
use std::sync::{Arc, Mutex};

/// What the tool is called with, or the text that the error quotes.
enum Want {
    Runs(Value),
    Quotes(String),
}

fn given() -> Vec<(Value, Want)> {
    let quotes = |text: &str| Want::Quotes(text.into());
    vec![
        (json!({"ms": 3}), Want::Runs(json!({"ms": 3}))),
        (json!({}), Want::Runs(json!({}))),
        (Value::Null, Want::Runs(json!({}))),
        (json!(""), Want::Runs(json!({}))),
        (json!("null"), Want::Runs(json!({}))),
        (json!("{\"ms\":3}"), Want::Runs(json!({"ms": 3}))),
        (json!("{\"ms\":\"a\nb\"}"), Want::Runs(json!({"ms": "a\nb"}))),
        (json!("{\"ms\":"), quotes("{\"ms\":")),
        (json!("{\"ms\":3} more"), quotes("{\"ms\":3} more")),
        (json!("[1]"), quotes("[1]")),
        (json!("\"{}\""), quotes("\"{}\"")),
        (json!([1]), quotes("[1]")),
        (json!([]), quotes("[]")),
        (json!([{"ms": 3}]), quotes("[{\"ms\":3}]")),
        (json!(5), quotes("5")),
        (json!(0), quotes("0")),
        (json!(true), quotes("true")),
        (json!(false), quotes("false")),
    ]
}

/// Answers that call `nap` with these arguments: the wire, the place of the arguments, the events.
fn answers(given: &Value) -> Vec<(Wire, &'static str, Vec<Value>)> {
    let anthropic = |events: Vec<Value>| {
        let mut all = vec![json!({"type": "message_start", "message": {"id": "m"}})];
        all.extend(events);
        all.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
        all.push(json!({"type": "message_stop"}));
        all
    };
    let block = json!({
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "c", "name": "nap", "input": given},
    });
    let block_of_none = json!({
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "c", "name": "nap", "input": {}},
    });
    let delta = json!({
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": given},
    });
    let no_delta = json!({
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": ""},
    });
    let block_end = json!({"type": "content_block_stop", "index": 0});
    let chat = |function: Value| {
        let call = json!({"index": 0, "id": "c", "function": function});
        vec![
            json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
        ]
    };
    let item = |arguments: &Value| json!({"type": "function_call", "id": "f", "call_id": "c", "name": "nap", "arguments": arguments});
    let added = |arguments: &Value| json!({"type": "response.output_item.added", "output_index": 0, "item": item(arguments)});
    let done = |arguments: &Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item(arguments)});
    let completed = |output: Value| json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    let piece = |kind: &str, key: &str| json!({"type": format!("response.function_call_arguments.{kind}"), "output_index": 0, key: given});
    let gemini = |call: Value| {
        let parts = json!([{"functionCall": call}]);
        vec![json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})]
    };
    let chat_wire = Wire::Chat(Dialect::Generic);
    let none = json!("");
    vec![
        (
            Wire::Anthropic,
            "block start",
            anthropic(vec![block.clone(), no_delta, block_end.clone()]),
        ),
        (Wire::Anthropic, "block start, never ended", anthropic(vec![block])),
        (Wire::Anthropic, "delta", anthropic(vec![block_of_none, delta, block_end])),
        (chat_wire, "function", chat(json!({"name": "nap", "arguments": given}))),
        (
            chat_wire,
            "function_call",
            vec![
                json!({"choices": [{"delta": {"function_call": {"name": "nap", "arguments": given}}}]}),
                json!({"choices": [{"delta": {}, "finish_reason": "function_call"}]}),
            ],
        ),
        (Wire::Responses, "item added", vec![added(given), completed(json!([]))]),
        (
            Wire::Responses,
            "item added and done with nothing",
            vec![added(given), done(&none), completed(json!([]))],
        ),
        (Wire::Responses, "item done", vec![added(&none), done(given), completed(json!([]))]),
        (Wire::Responses, "output", vec![completed(json!([item(given)]))]),
        (
            Wire::Responses,
            "delta",
            vec![added(&none), piece("delta", "delta"), completed(json!([]))],
        ),
        (
            Wire::Responses,
            "arguments done",
            vec![added(&none), piece("done", "arguments"), completed(json!([]))],
        ),
        (Wire::Gemini, "args", gemini(json!({"name": "nap", "args": given}))),
        (
            Wire::Gemini,
            "args, then the last piece",
            vec![
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "nap", "args": given, "willContinue": true}}]}}]}),
                gemini(json!({"args": {}})).remove(0),
            ],
        ),
    ]
}

fn body(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_object_or_the_text_of_one_runs() {
    for (given, want) in given() {
        for (wire, place, events) in answers(&given) {
            let case = format!("{wire:?}, {place}: {given}");
            let (runs, result) = run(wire, &events).await;
            match &want {
                Want::Runs(arguments) => {
                    assert_eq!(runs, std::slice::from_ref(arguments), "{case}: {result}");
                }
                Want::Quotes(text) => {
                    assert!(runs.is_empty(), "{case} ran with {runs:?}");
                    assert!(result.contains("not valid JSON"), "{case}: {result}");
                    assert!(result.ends_with(&format!("Received:\n{text}")), "{case}: {result}");
                }
            }
        }
    }
}

#[tokio::test]
async fn pieces_with_paths_that_are_no_list_are_no_arguments() {
    for pieces in [json!("{}"), json!({"jsonPath": "$.ms", "numberValue": 3}), json!(5)] {
        let call = json!({"name": "nap", "partialArgs": pieces});
        let parts = json!([{"functionCall": call}]);
        let event = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
        let (runs, result) = run(Wire::Gemini, &[event]).await;
        assert!(runs.is_empty() && result.contains("partialArgs"), "{pieces}: {result}");
    }
}

/// What `nap` was called with by this answer, and the text of the call's result.
async fn run(wire: Wire, events: &[Value]) -> (Vec<Value>, String) {
    let ran: Arc<Mutex<Vec<Value>>> = Arc::default();
    let book = ran.clone();
    let nap = FnTool::new("nap", move |call, _, _| {
        book.lock().unwrap().push(json!(*call.arguments));
        std::future::ready(Ok(ToolResult::text("ok")))
    });
    let server = Server::start([Reply::events(body(events)), Reply::events(stop(wire))]).await;
    let endpoint = Endpoint { base_url: server.url.clone(), ..Endpoint::new(wire, "m") };
    let settings = Settings::new(Arc::new(Remote::new(endpoint).unwrap()))
        .with_toolset(Toolset::new([nap.shared()], Rules::Lenient));
    let end = Agent::new(AgentConfig::new(settings)).prompt("go").await.unwrap();
    let first = end.messages[1].as_assistant().unwrap();
    assert_eq!(first.stop_reason, StopReason::ToolUse, "{first:?}");
    let Message::ToolResult(result) = &*end.messages[2] else { panic!("{:?}", end.messages) };
    let text = format!("{:?}", result.content);
    let text = result.content.first().map_or(text, |content| match content {
        cofferdam_agent::message::Content::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    });
    let runs = ran.lock().unwrap().clone();
    (runs, text)
}
