//! Requests as they are sent: one conversation that has everything, to every provider. What each
//! restricts is checked here; the shape is checked against the types of the official Python
//! packages where they are installed (`COFFERDAM_PYTHON`, or `python3`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod serve;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, Image, MalformedArguments, Message, StopReason,
    TextBlock, ThinkingBlock, ToolCall, ToolResultMessage, UserMessage,
};
use cofferdam_agent::model::{Model, Request, Thinking};
use cofferdam_agent::tool::Declaration;
use cofferdam_providers::{Dialect, Endpoint, Remote, Wire};
use futures::StreamExt;
use serde_json::{Value, json};
use serve::{Reply, Server};
use std::collections::HashSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

const WIRES: [(&str, Wire); 8] = [
    ("anthropic", Wire::Anthropic),
    ("chat", Wire::Chat(Dialect::OpenAi)),
    ("chat", Wire::Chat(Dialect::Generic)),
    ("chat", Wire::Chat(Dialect::Mistral)),
    ("chat", Wire::Chat(Dialect::DeepSeek)),
    ("chat", Wire::Chat(Dialect::OpenRouter)),
    ("responses", Wire::Responses),
    ("gemini", Wire::Gemini),
];

/// Gemini's are base64.
const OWN_SIGNATURE: &str = "b3duLXNpZ25hdHVyZQ==";

fn text(text: &str) -> Content {
    Content::Text(text.into())
}

fn image() -> Content {
    Content::Image(Image { media_type: "image/png".into(), data: Arc::from([1, 2, 3]) })
}

fn call(id: &str, name: &str, arguments: Value) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCall::from_text(id, name, &arguments.to_string()))
}

fn says(text: &str) -> AssistantBlock {
    AssistantBlock::Text(TextBlock { text: text.into(), signature: None })
}

fn thinks(thinking: &str, signature: &str) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingBlock {
        thinking: thinking.into(),
        signature: Some(signature.into()),
        redacted: false,
        id: Some("rs_1".into()),
    })
}

fn result(id: &str, content: Vec<Content>, is_error: bool) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: "look".into(),
        content,
        details: Some(json!({"never": "sent"})),
        is_error,
    })
}

/// A conversation that went over several providers and through everything that can go wrong. The
/// answers of the provider in question are its own, the rest are foreign.
fn conversation(provider: &str) -> Vec<Arc<Message>> {
    let answer = |of: &str, stop_reason, content| {
        Message::Assistant(AssistantMessage {
            content,
            stop_reason,
            provider: of.into(),
            model: "m-3".into(),
            ..AssistantMessage::pending()
        })
    };
    let (uses, stop) = (StopReason::ToolUse, StopReason::Stop);
    let mut malformed = ToolCall::from_text("call_bad", "look", "");
    malformed.malformed =
        Some(MalformedArguments { text: "{oops".into(), problem: "no JSON".into() });
    let long = "call_".to_owned() + &"x".repeat(80);
    let messages = vec![
        Message::from("Look at both."),
        answer(
            "elsewhere",
            uses,
            vec![
                thinks("foreign thought", "foreign-signature"),
                call("functions.look:0", "look", json!({"at": "a"})),
                call("functions.look:1", "multi_tool_use.parallel", json!({})),
                says("After the calls."),
            ],
        ),
        result("functions.look:1", vec![text("one")], false),
        result("functions.look:0", vec![text("two"), image()], true),
        Message::from("Go on."),
        answer(
            provider,
            uses,
            vec![
                thinks("own thought", OWN_SIGNATURE),
                says("I look again."),
                call(&long, "look", json!({"at": "b"})),
                call(&(long.clone() + "y"), "look", json!({})),
                AssistantBlock::ToolCall(malformed),
            ],
        ),
        result(&long, vec![], false),
        // The run was cut: no result of the other two. Then a request that failed, with a call.
        Message::from("What is missing?"),
        answer(provider, StopReason::Error, vec![call("dead", "look", json!({}))]),
        answer(provider, StopReason::Aborted, vec![says("Half a")]),
        Message::User(UserMessage { content: vec![text("See:"), image()] }),
        answer(provider, stop, vec![thinks("alone", OWN_SIGNATURE)]),
        answer(provider, StopReason::Length, vec![call("functions.look:0", "look", json!({}))]),
        result("functions.look:0", vec![text("cut")], true),
        answer(provider, stop, vec![says("  "), says("Done. żółw 🐢")]),
        Message::from("Thanks."),
    ];
    messages.into_iter().map(Arc::new).collect()
}

fn declarations() -> Vec<Arc<Declaration>> {
    let look = Declaration {
        name: "look".into(),
        label: Some("Look".into()),
        description: "Looks at a place".into(),
        parameters: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"at": {"type": "string"}, "many": {"type": "array", "items": {"$ref": "#/$defs/p"}}},
            "required": [],
            "$defs": {"p": {"type": "integer"}},
        }),
    };
    vec![Arc::new(look)]
}

async fn body(endpoint: Endpoint, messages: Vec<Arc<Message>>, thinking: Thinking) -> Value {
    let server = Server::start([Reply::events("")]).await;
    let model = Remote::new(Endpoint { base_url: server.url.clone(), ..endpoint }).unwrap();
    let request = Request {
        system_prompt: "Be brief.".into(),
        messages: Arc::new(messages),
        tools: Arc::new(declarations()),
        thinking,
        credential: None,
    };
    let _: Vec<_> = model.stream(request, AbortSignal::new()).collect().await;
    server.asked().remove(0).body
}

async fn full_body(wire: Wire, images: bool) -> Value {
    let endpoint =
        Endpoint { images, max_output_tokens: Some(1_000), ..Endpoint::new(wire, "m-3") };
    let messages = conversation(&endpoint.provider);
    body(endpoint, messages, Thinking::High).await
}

/// All values of these keys, anywhere.
fn all<'v>(value: &'v Value, keys: &[&str]) -> Vec<&'v Value> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, inner)| {
                let here = keys.contains(&key.as_str()).then_some(inner);
                here.into_iter().chain(all(inner, keys))
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(|item| all(item, keys)).collect(),
        _ => Vec::new(),
    }
}

/// The ids of the calls, and of the results.
fn ids(wire: Wire, body: &Value) -> (Vec<String>, Vec<String>) {
    let texts = |values: Vec<&Value>| -> Vec<String> {
        values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
    };
    match wire {
        Wire::Anthropic => {
            let uses = all(body, &["messages"]);
            let blocks: Vec<&Value> = all(uses[0], &["content"])
                .into_iter()
                .flat_map(|c| c.as_array().into_iter().flatten())
                .collect();
            let calls =
                blocks.iter().filter(|b| b["type"] == "tool_use").map(|b| &b["id"]).collect();
            (texts(calls), texts(all(body, &["tool_use_id"])))
        }
        Wire::Chat(_) => {
            let calls: Vec<&Value> = all(body, &["tool_calls"]);
            let calls = calls
                .iter()
                .flat_map(|calls| calls.as_array().unwrap())
                .map(|c| &c["id"])
                .collect();
            (texts(calls), texts(all(body, &["tool_call_id"])))
        }
        Wire::Responses => {
            let items = body["input"].as_array().unwrap();
            let of = |kind: &str| {
                items.iter().filter(|i| i["type"] == kind).map(|i| &i["call_id"]).collect()
            };
            (texts(of("function_call")), texts(of("function_call_output")))
        }
        Wire::Gemini => {
            let of = |key: &str| all(body, &[key]).into_iter().map(|call| &call["id"]).collect();
            (texts(of("functionCall")), texts(of("functionResponse")))
        }
    }
}

#[tokio::test]
async fn every_call_has_its_result_under_an_id_that_the_provider_takes() {
    for (_, wire) in WIRES {
        let body = full_body(wire, true).await;
        let (calls, results) = ids(wire, &body);
        let (distinct, answered): (HashSet<&String>, HashSet<&String>) =
            (calls.iter().collect(), results.iter().collect());
        assert_eq!((calls.len(), distinct.len()), (6, 6), "{wire:?}: {calls:?}");
        assert_eq!(distinct, answered, "{wire:?}");
        for id in calls {
            let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
            let fits = match wire {
                Wire::Chat(Dialect::Mistral) => id.len() == 9 && !id.contains(['_', '-']),
                Wire::Chat(Dialect::OpenAi) => id.len() <= 40 && plain,
                // A model's own ids go back as they are.
                Wire::Chat(_) => {
                    id.len() <= 40 && plain
                        || id.starts_with("functions.")
                        || id.starts_with("call_xx")
                }
                _ => id.len() <= 64 && plain,
            };
            assert!(fits, "{wire:?}: {id}");
        }
    }
}

#[tokio::test]
async fn what_is_no_part_of_the_conversation_is_not_sent() {
    for (_, wire) in WIRES {
        let text = full_body(wire, true).await.to_string();
        for gone in [
            "foreign thought",
            "foreign-signature",
            "never",
            "dead",
            "Half a",
            "$schema",
            "multi_tool_use.parallel",
        ] {
            assert!(!text.contains(gone), "{wire:?} has {gone}: {text}");
        }
        for kept in [
            "Be brief.",
            "There is no result of this call.",
            "żółw 🐢",
            "After the calls.",
            "multi_tool_use_parallel",
        ] {
            assert!(text.contains(kept), "{wire:?} lacks {kept}: {text}");
        }
        // Only wires that take reasoning back get the model's own.
        let takes =
            !matches!(wire, Wire::Chat(Dialect::OpenAi | Dialect::Generic | Dialect::Mistral));
        assert_eq!(text.contains("own thought"), takes, "{wire:?}");
    }
}

#[tokio::test]
async fn images_are_shown_or_told_of() {
    for (_, wire) in WIRES {
        let (shown, told) =
            (full_body(wire, true).await.to_string(), full_body(wire, false).await.to_string());
        assert_eq!(shown.matches("AQID").count(), 2, "{wire:?}: {shown}");
        assert!(!told.contains("AQID"), "{wire:?}");
        assert_eq!(told.matches("[an image that this model cannot see]").count(), 2, "{wire:?}");
    }
    // Only newer models take an image inside a result.
    for (model, inside) in [("gemini-2.5-flash", false), ("gemini-3-flash-preview", true)] {
        let endpoint = Endpoint::new(Wire::Gemini, model);
        let body = body(endpoint, conversation("gemini"), Thinking::Off).await;
        let results = all(&body, &["functionResponse"]);
        assert_eq!(results.iter().any(|result| result.get("parts").is_some()), inside, "{model}");
        // Calls that other models made carry the stand-in for a signature, once an answer.
        let stand_ins = body.to_string().matches("skip_thought_signature_validator").count();
        assert_eq!(stand_ins, if inside { 3 } else { 0 }, "{model}");
    }
}

#[tokio::test]
async fn the_order_is_one_that_strict_providers_take() {
    // Anthropic: roles alternate, results come first in the message after their calls.
    let anthropic = full_body(Wire::Anthropic, true).await;
    let messages = anthropic["messages"].as_array().unwrap();
    for (at, message) in messages.iter().enumerate() {
        assert_eq!(message["role"], ["user", "assistant"][at % 2], "{messages:#?}");
        let kinds: Vec<&str> = message["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|b| b["type"].as_str().unwrap())
            .collect();
        let last_result = kinds.iter().rposition(|kind| *kind == "tool_result");
        assert!(
            last_result.is_none_or(|at| kinds[..at].iter().all(|k| *k == "tool_result")),
            "{kinds:?}"
        );
        let first_call = kinds.iter().position(|kind| *kind == "tool_use");
        assert!(
            first_call.is_none_or(|at| kinds[at..].iter().all(|k| *k == "tool_use")),
            "{kinds:?}"
        );
    }
    assert_eq!(anthropic["max_tokens"], 1_000 + 16_384, "the thinking comes on top");
    // Mistral: an answer between results and the user's words.
    let mistral = full_body(Wire::Chat(Dialect::Mistral), true).await;
    let roles: Vec<&str> = mistral["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert!(!roles.windows(2).any(|pair| pair == ["tool", "user"]), "{roles:?}");
    // Gemini: as many results as calls, in the next content.
    let gemini = full_body(Wire::Gemini, true).await;
    let count = |content: &Value, key: &str| {
        content["parts"].as_array().unwrap().iter().filter(|p| p.get(key).is_some()).count()
    };
    let contents = gemini["contents"].as_array().unwrap();
    for pair in contents.windows(2) {
        assert_eq!(
            count(&pair[0], "functionCall"),
            count(&pair[1], "functionResponse"),
            "{pair:#?}"
        );
    }
    // Responses: reasoning that led to nothing is left out.
    let responses = full_body(Wire::Responses, true).await.to_string();
    assert!(responses.contains(OWN_SIGNATURE) && !responses.contains("\"alone\""), "{responses}");
}

#[tokio::test]
async fn the_dialects_fields() {
    for (dialect, has, lacks) in [
        (
            Dialect::OpenAi,
            vec!["max_completion_tokens", "stream_options", "reasoning_effort"],
            vec!["max_tokens"],
        ),
        (
            Dialect::Generic,
            vec!["max_tokens", "stream_options", "reasoning_effort"],
            vec!["max_completion_tokens"],
        ),
        (Dialect::Groq, vec!["max_tokens", "stream_options", "reasoning_effort"], vec!["thinking"]),
        (Dialect::Mistral, vec!["max_tokens"], vec!["stream_options", "reasoning_effort"]),
        (Dialect::OpenRouter, vec!["max_tokens", "reasoning"], vec!["stream_options"]),
        (Dialect::DeepSeek, vec!["max_tokens", "thinking"], vec!["reasoning_effort"]),
    ] {
        let body = full_body(Wire::Chat(dialect), true).await;
        for key in has {
            assert!(body.get(key).is_some(), "{dialect:?} lacks {key}");
        }
        for key in lacks {
            assert!(body.get(key).is_none(), "{dialect:?} has {key}");
        }
    }
}

#[tokio::test]
async fn the_operators_fields_are_merged() {
    let mut endpoint = Endpoint::new(Wire::Gemini, "m-3");
    let extra = json!({"generationConfig": {"temperature": 0}, "safetySettings": []});
    endpoint.extra = extra.as_object().unwrap().clone();
    endpoint.max_output_tokens = Some(7);
    let body = body(endpoint, conversation("gemini"), Thinking::Off).await;
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 7, "temperature": 0}));
    assert_eq!(body["safetySettings"], json!([]));
}

#[tokio::test]
async fn requests_fit_the_types_of_the_official_packages() {
    let mut cases = Vec::new();
    for (package, wire) in WIRES {
        // The other dialects have fields of their own.
        let own_fields = matches!(wire, Wire::Chat(Dialect::DeepSeek | Dialect::OpenRouter));
        if !own_fields {
            for (images, thinking) in [(true, true), (false, false)] {
                let mut request = full_body(wire, images).await;
                if !thinking {
                    request = body(
                        Endpoint::new(wire, "m-3"),
                        vec![Arc::new("go".into())],
                        Thinking::Off,
                    )
                    .await;
                }
                cases.push((package, json!({"wire": package, "body": request})));
            }
        }
    }
    let newest = Endpoint::new(Wire::Gemini, "gemini-3-flash-preview");
    let newest = body(newest, conversation("gemini"), Thinking::Low).await;
    cases.push(("gemini", json!({"wire": "gemini", "body": newest})));
    let python = std::env::var("COFFERDAM_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/requests/validate.py");
    let running =
        Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut running) = running else {
        eprintln!("skipped: there is no {python}");
        return;
    };
    let mut input = running.stdin.take().unwrap();
    for (_, case) in &cases {
        writeln!(input, "{case}").unwrap();
    }
    drop(input);
    let output = running.wait_with_output().unwrap();
    let verdicts = String::from_utf8(output.stdout).unwrap();
    assert_eq!(verdicts.lines().count(), cases.len(), "{verdicts}");
    for ((package, case), verdict) in cases.iter().zip(verdicts.lines()) {
        if verdict.starts_with("skipped") {
            eprintln!("{package}: {verdict}");
        } else {
            assert_eq!(verdict, "ok", "{package}: {case:#}");
        }
    }
}
