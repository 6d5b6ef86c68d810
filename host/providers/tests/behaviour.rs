//! What a model call does besides reading an answer: aborts, time-outs, retries, credentials.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod serve;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, StopReason};
use cofferdam_agent::model::{Model, Request, Retry, Secret, Step, Thinking};
use cofferdam_providers::{CredentialSource, Dialect, Endpoint, Header, Patience, Remote, Wire};
use futures::StreamExt;
use serde_json::json;
use serve::{Reply, Server};
use std::sync::Arc;
use std::time::Duration;

const BEGUN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"},\"finish_reason\":null}]}\n\n";
const DONE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn whole() -> Reply {
    Reply::events([BEGUN, DONE].concat())
}

/// A head that never comes.
fn silence() -> Reply {
    Reply { head: String::new(), pieces: Vec::new(), hold: true }
}

fn endpoint(url: &str) -> Endpoint {
    Endpoint {
        base_url: url.into(),
        patience: Patience { retry_wait: Duration::from_millis(1), ..Patience::default() },
        ..Endpoint::new(Wire::Chat(Dialect::Generic), "m")
    }
}

fn request() -> Request {
    Request {
        system_prompt: "".into(),
        messages: Arc::new(vec![Arc::new("go".into())]),
        tools: Arc::default(),
        thinking: Thinking::Off,
        credential: None,
    }
}

/// The retries of a call, and its last message.
async fn ask(endpoint: Endpoint) -> (Vec<Retry>, AssistantMessage) {
    let model = Remote::new(endpoint).unwrap();
    let mut steps: Vec<Step> = model.stream(request(), AbortSignal::new()).collect().await;
    let Some(Step::Done(message)) = steps.pop() else { panic!("no last step") };
    let retries = steps.into_iter().filter_map(|step| match step {
        Step::Retry(retry) => Some(retry),
        _ => None,
    });
    (retries.collect(), message)
}

fn problem(message: &AssistantMessage) -> &str {
    assert_eq!(message.stop_reason, StopReason::Error, "{message:?}");
    message.error_message.as_deref().unwrap()
}

#[tokio::test]
async fn an_abort_closes_the_connection_at_once_and_keeps_what_came() {
    let mut server = Server::start([Reply::events(BEGUN).held()]).await;
    let (model, abort) = (Remote::new(endpoint(&server.url)).unwrap(), AbortSignal::new());
    let mut stream = model.stream(request(), abort.clone());
    while !matches!(stream.next().await, Some(Step::TextDelta { .. })) {}
    abort.cancel();
    let Some(Step::Done(message)) = stream.next().await else { panic!("not the last step") };
    assert_eq!(message.stop_reason, StopReason::Aborted);
    assert_eq!(message.content.len(), 1);
    // The stream is still held here: it is the abort that closed the connection.
    server.closed.recv().await.unwrap();
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn an_abort_ends_every_stage_of_a_call() {
    // Before anything is sent.
    let server = Server::start([whole()]).await;
    let (model, aborted) = (Remote::new(endpoint(&server.url)).unwrap(), AbortSignal::new());
    aborted.cancel();
    let steps: Vec<Step> = model.stream(request(), aborted).collect().await;
    assert!(matches!(&steps[..], [Step::Done(m)] if m.stop_reason == StopReason::Aborted));
    assert!(server.asked().is_empty());
    // While the head is waited for, and while a retry is.
    let mut waiting = Server::start([silence()]).await;
    let busy = Server::start([Reply::status("503 Busy", "retry-after: 50\r\n", "")]).await;
    for url in [&waiting.url, &busy.url] {
        let (model, abort) = (Remote::new(endpoint(url)).unwrap(), AbortSignal::new());
        let steps = model.stream(request(), abort.clone()).collect::<Vec<Step>>();
        let server_was_asked = async {
            while waiting.asked().is_empty() || (*url == busy.url && busy.asked().is_empty()) {
                tokio::task::yield_now().await;
            }
            abort.cancel();
        };
        let (steps, ()) = tokio::join!(steps, server_was_asked);
        let Some(Step::Done(message)) = steps.last() else { panic!("{steps:?}") };
        assert_eq!(message.stop_reason, StopReason::Aborted);
    }
    waiting.closed.recv().await.unwrap();
}

#[tokio::test]
async fn a_dropped_stream_closes_the_connection_too() {
    let mut server = Server::start([Reply::events(BEGUN).held()]).await;
    let model = Remote::new(endpoint(&server.url)).unwrap();
    let mut stream = model.stream(request(), AbortSignal::new());
    assert_eq!(stream.next().await, Some(Step::Start));
    drop(stream);
    server.closed.recv().await.unwrap();
}

#[tokio::test]
async fn silence_has_a_limit_before_and_inside_an_answer() {
    let short = Duration::from_millis(60);
    for (reply, wants) in [
        (silence(), vec!["did not answer within 0.06 s", "headers_s"]),
        (Reply::events(BEGUN).held(), vec!["nothing came for 0.06 s", "idle_s"]),
    ] {
        let server = Server::start([reply]).await;
        let mut endpoint = endpoint(&server.url);
        endpoint.patience = Patience { headers: short, idle: short, ..endpoint.patience };
        let (retries, message) = ask(endpoint).await;
        assert!(retries.is_empty());
        for want in wants {
            assert!(problem(&message).contains(want), "{message:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_whose_ending_was_stated_is_complete_however_the_bytes_end() {
    let end =
        "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\n";
    // The length says that more is to come, and the connection breaks.
    let mut broken = Reply::events([BEGUN, end].concat());
    broken.head = broken.head.replace("connection", "content-length: 9999\r\nconnection");
    // Nothing more comes, and the connection stays open.
    let open = Reply::events([BEGUN, end].concat()).held();
    for reply in [broken, open] {
        let server = Server::start([reply]).await;
        let mut endpoint = endpoint(&server.url);
        endpoint.patience.idle = Duration::from_millis(60);
        let (_, message) = ask(endpoint).await;
        assert_eq!(message.stop_reason, StopReason::Stop, "{message:?}");
    }
}

#[tokio::test]
async fn a_busy_server_is_asked_again_as_it_wishes() {
    let busy = Reply::status(
        "429 Too Many",
        "retry-after-ms: 7\r\n",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let down = Reply::status("503 Down", "", "");
    let server = Server::start([busy, down, whole()]).await;
    let (retries, message) = ask(endpoint(&server.url)).await;
    assert_eq!(message.stop_reason, StopReason::Stop);
    let waits: Vec<u128> = retries.iter().map(|retry| retry.wait.as_millis()).collect();
    assert_eq!(waits, [7, 2], "the server's wish, then our own second wait");
    assert!(retries[0].problem.contains("429 Too Many Requests: slow down"), "{retries:?}");
    assert_eq!((retries[1].retry, retries[1].retries_max), (2, 3));
    // The same request each time.
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|one| one.body == asked[0].body));
}

#[tokio::test]
async fn retries_have_an_end_and_are_not_made_where_they_do_not_help() {
    for (reply, tries, want) in [
        (Reply::status("500 Oops", "", ""), 4, "500 Internal Server Error (after 3 retries)"),
        (
            Reply::status("401 No", "", r#"{"error":{"message":"bad key"}}"#),
            1,
            "401 Unauthorized: bad key",
        ),
        (Reply::status("503 Down", "retry-after: 3600\r\n", ""), 1, "asks to wait 3600 s"),
        (
            Reply::status("308 Moved", "location: http://elsewhere/\r\n", ""),
            1,
            "make it the `base_url`",
        ),
        // What comes after the first event is never asked for again.
        (
            Reply::events("data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n"),
            1,
            "overloaded",
        ),
        (Reply::events(BEGUN), 1, "ended before"),
        (Reply::events(""), 1, "ended before"),
    ] {
        let server = Server::start([reply]).await;
        let (retries, message) = ask(endpoint(&server.url)).await;
        assert!(problem(&message).contains(want), "{message:?}");
        assert_eq!(server.asked().len(), tries, "{want}");
        assert_eq!(retries.len(), tries - 1, "{want}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    // A port that was free a moment ago.
    let url = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (retries, message) = ask(endpoint(&url)).await;
    assert_eq!(retries.len(), 3);
    let problem = problem(&message);
    assert!(problem.contains(&url) && problem.contains("refused"), "{problem}");
}

#[tokio::test]
async fn json_in_place_of_events_is_told() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let body = br#"{"error":"this model does not stream"}"#.to_vec();
    let server =
        Server::start([Reply { head: head.into(), pieces: vec![body], hold: false }]).await;
    let (_, message) = ask(endpoint(&server.url)).await;
    assert!(problem(&message).contains("this model does not stream"), "{message:?}");
    let server = Server::start([Reply::events("data: <html>\n\ndata: {}\n\n")]).await;
    let (_, message) = ask(endpoint(&server.url)).await;
    assert!(problem(&message).contains("no JSON: <html>"), "{message:?}");
}

#[tokio::test]
async fn each_wire_carries_the_credential_in_its_own_header_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "s3cret-key\n").unwrap();
    for (wire, header, value) in [
        (Wire::Anthropic, "x-api-key", "s3cret-key"),
        (Wire::Chat(Dialect::Generic), "authorization", "Bearer s3cret-key"),
        (Wire::Responses, "authorization", "Bearer s3cret-key"),
        (Wire::Gemini, "x-goog-api-key", "s3cret-key"),
    ] {
        // A server that echoes the key, as some do.
        let echo = Reply::status("401 No", "", r#"{"error":{"message":"bad key s3cret-key"}}"#);
        let server = Server::start([echo]).await;
        let endpoint = Endpoint {
            credential: CredentialSource::File(key.clone()),
            headers: vec![Header { name: "X-Org".into(), value: "own".into() }],
            ..Endpoint { base_url: server.url.clone(), ..Endpoint::new(wire, "m") }
        };
        let model = Remote::new(endpoint.clone()).unwrap();
        let (_, message) = ask(endpoint).await;
        let asked = server.asked().remove(0);
        assert_eq!(asked.header(header), Some(value), "{wire:?}");
        assert_eq!(asked.header("x-org"), Some("own"));
        assert!(!asked.line.contains("s3cret"), "{}", asked.line);
        assert!(problem(&message).contains("bad key [credential]"), "{message:?}");
        assert!(!format!("{message:?} {model:?}").contains("s3cret"));
    }
}

#[tokio::test]
async fn the_loops_credential_wins_and_one_that_cannot_be_had_ends_the_call() {
    let server = Server::start([whole()]).await;
    let endpoint = Endpoint {
        credential: CredentialSource::File("/no/such/file".into()),
        ..endpoint(&server.url)
    };
    let (_, message) = ask(endpoint.clone()).await;
    assert!(problem(&message).contains("/no/such/file"), "{message:?}");
    assert!(server.asked().is_empty());
    let request = Request { credential: Some(Secret::new("from-the-loop")), ..request() };
    let model = Remote::new(endpoint).unwrap();
    let _: Vec<Step> = model.stream(request, AbortSignal::new()).collect().await;
    assert_eq!(server.asked()[0].header("authorization"), Some("Bearer from-the-loop"));
}

#[test]
fn an_endpoint_that_makes_no_sense_is_refused() {
    let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
    let chat = |base_url: &str| Endpoint { base_url: base_url.into(), ..endpoint("") };
    for (endpoint, want) in [
        (chat(""), "say where the server is"),
        (chat("localhost:11434"), "must begin with http"),
        (chat("http://"), "is no address"),
        (chat("https://user:s3cret@host/v1"), "may not carry a credential"),
        (chat("https://user:s3cret@host:port/v1"), "is no address"),
        (chat("https://user:s3cret?x@host/v1"), "is no address"),
        (chat("ftp://user:s3cret@host/v1"), "must begin with http"),
        (chat("user:s3cret@host"), "must begin with http"),
        (chat("ftp://host/v1?key=s3cret"), "must begin with http"),
        (Endpoint { headers: vec![header("a b", "x")], ..chat("http://h") }, "`a b`"),
        (Endpoint { headers: vec![header("x-a", "s3cret\n")], ..chat("http://h") }, "`x-a`"),
    ] {
        let problem = Remote::new(endpoint).unwrap_err();
        let shown = format!("{problem} {problem:?}");
        assert!(shown.contains(want) && !shown.contains("s3cret"), "{shown}");
    }
}

/// Each wire's answer that was begun and whose ending is stated with these words.
fn endings(word: &str) -> [(Wire, String); 4] {
    let events = |events: &[serde_json::Value]| {
        events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>()
    };
    [
        (
            Wire::Anthropic,
            events(&[
                json!({"type": "message_start", "message": {"id": word, "model": word}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": word, "name": "f", "input": {}}}),
                json!({"type": "message_delta", "delta": {"stop_reason": word, "stop_details": {"explanation": word}}}),
            ]),
        ),
        (
            Wire::Chat(Dialect::Generic),
            events(&[
                json!({"id": word, "model": word, "choices": [{"delta": {"tool_calls": [{"id": word, "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": word}]}),
            ]),
        ),
        (
            Wire::Responses,
            events(&[
                json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning", "id": word, "summary": [{"text": "hm"}]}}),
                json!({"type": "response.output_item.done", "output_index": 1, "item": {"type": "function_call", "id": word, "call_id": word, "name": "f", "arguments": "{}"}}),
                json!({"type": "response.incomplete", "response": {"id": word, "incomplete_details": {"reason": word}, "output": []}}),
            ]),
        ),
        (
            Wire::Gemini,
            events(&[
                json!({"responseId": word, "modelVersion": word, "candidates": [{"content": {"parts": [{"functionCall": {"id": word, "name": "f"}}]}, "finishReason": word, "finishMessage": word}]}),
            ]),
        ),
    ]
}

#[tokio::test]
async fn a_credential_that_is_echoed_is_in_nothing_that_the_server_says_beside_the_answer() {
    for spelled in ["sk-s3cret", "sk%2Ds3cret", "in sk-s3cret, twice: sk-s3cret"] {
        for (wire, body) in endings(spelled) {
            let server = Server::start([Reply::events(body)]).await;
            let model =
                Remote::new(Endpoint { base_url: server.url.clone(), ..Endpoint::new(wire, "m") });
            let request = Request { credential: Some(Secret::new("sk-s3cret")), ..request() };
            let steps: Vec<Step> =
                model.unwrap().stream(request, AbortSignal::new()).collect().await;
            assert!(!format!("{steps:?}").contains("s3cret"), "{wire:?}: {steps:#?}");
            let Some(Step::Done(message)) = steps.last() else { panic!("no last step") };
            let word = message.raw_stop_reason.as_deref().unwrap();
            assert!(word.contains("[credential]"), "{wire:?}: {word}");
            assert!(problem(message).contains("[credential]"), "{wire:?}");
            assert_eq!(message.tool_calls().count(), 1);
        }
    }
}

/// What is cut for people is masked before it is: half a credential is one, too.
#[tokio::test]
async fn no_part_of_a_credential_is_left_where_a_text_is_cut() {
    let long = |length: usize| format!("{}sk-s3cret", "x".repeat(length));
    let mut bodies = Vec::new();
    for length in 1_990..2_002 {
        bodies.push(Reply::status("400 No", "", &long(length)));
        bodies.push(Reply::events(format!("<p>{}", long(length - 3))));
    }
    for length in 190..202 {
        bodies.push(Reply::events(format!("data: {}\n\n", long(length))));
    }
    for reply in bodies {
        let server = Server::start([reply]).await;
        let model = Remote::new(endpoint(&server.url)).unwrap();
        let request = Request { credential: Some(Secret::new("sk-s3cret")), ..request() };
        let steps: Vec<Step> = model.stream(request, AbortSignal::new()).collect().await;
        let Some(Step::Done(message)) = steps.last() else { panic!("no last step") };
        assert!(!problem(message).contains("sk-"), "{message:?}");
    }
}

/// Signatures are the provider's: it takes them back only as they were.
#[tokio::test]
async fn a_signature_stays_byte_for_byte() {
    let body = concat!(
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"AsAbCdEfB\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
    );
    let server = Server::start([Reply::events(body)]).await;
    let model = Remote::new(Endpoint {
        base_url: server.url.clone(),
        ..Endpoint::new(Wire::Anthropic, "m")
    });
    let request = Request { credential: Some(Secret::new("AbCdEf")), ..request() };
    let steps: Vec<Step> = model.unwrap().stream(request, AbortSignal::new()).collect().await;
    assert!(format!("{:?}", steps.last()).contains("\"AsAbCdEfB\""), "{steps:?}");
}

#[tokio::test]
async fn bytes_that_are_no_text_become_a_replacement_character() {
    for (bytes, want) in [
        (&b"a\xffb"[..], "a\u{fffd}b"),
        (b"a\xc3", "a\u{fffd}"),
        (b"\xe2\x82\xe2\x82\xac", "\u{fffd}\u{20ac}"),
        (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
    ] {
        let [before, after] = [
            &b"data: {\"choices\":[{\"delta\":{\"content\":\""[..],
            b"\"},\"finish_reason\":\"stop\"}]}\n\n",
        ];
        for reply in [
            Reply::events([before, bytes, after].concat()),
            Reply::events([before, bytes, after].concat()).byte_by_byte(),
        ] {
            let server = Server::start([reply]).await;
            let (_, message) = ask(endpoint(&server.url)).await;
            assert_eq!(message.stop_reason, StopReason::Stop, "{message:?}");
            let Some(AssistantBlock::Text(block)) = message.content.first() else {
                panic!("{message:?}")
            };
            assert_eq!(block.text, want);
        }
    }
}

#[tokio::test]
async fn a_body_without_events_is_told_in_the_servers_words() {
    let error = r#"{"error":{"message":"no such deployment","code":404}}"#;
    let pretty =
        "{\n  \"id\": 1,\n  \"error\": {\n    \"message\": \"no such deployment\"\n  }\n}\n";
    let page = "<!doctype html>\n<title>Log in</title>\n<p>data: none</p>\n";
    let long = format!("<html>{}", "x".repeat(100_000));
    for (body, want) in [
        (error, "no such deployment"),
        (pretty, "no such deployment"),
        (page, "<title>Log in</title>"),
        ("upstream is away", "upstream is away"),
        ("\u{feff}{\"detail\":\"gone\"}", "gone"),
        (&long, "<html>xxx"),
        // These are event streams, which were cut.
        ("", "ended before"),
        ("\n\n", "ended before"),
        (": wait\n\n", "ended before"),
        ("event: ping\nid: 1\nretry: 5\n\n", "ended before"),
        ("data:\n\n", "ended before"),
    ] {
        for type_ in ["text/event-stream", "text/html; charset=utf-8", "application/json"] {
            for many in [false, true] {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {type_}\r\nconnection: close\r\n\r\n"
                );
                let reply = Reply { head, pieces: vec![body.into()], hold: false };
                let reply = if many && body.len() < 1_000 { reply.byte_by_byte() } else { reply };
                let server = Server::start([reply]).await;
                let (retries, message) = ask(endpoint(&server.url)).await;
                let told = problem(&message);
                if type_ == "application/json" && want == "ended before" {
                    assert!(told.contains("JSON instead of an event stream"), "{told}");
                } else {
                    assert!(told.contains(want), "{type_} {body:.60}: {told}");
                }
                assert!(told.len() < 3_000 && retries.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn a_response_that_says_it_failed_is_no_answer_whatever_its_event_is_called() {
    for (response, want, stop) in [
        (
            json!({"status": "failed", "error": {"message": "out of memory"}}),
            "out of memory",
            StopReason::Error,
        ),
        (json!({"status": "failed"}), "the response failed", StopReason::Error),
        (json!({"status": "cancelled"}), "the response cancelled", StopReason::Error),
        (
            json!({"status": "completed", "error": {"code": "x", "message": "odd"}}),
            "odd",
            StopReason::Error,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            "content_filter",
            StopReason::Error,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            "",
            StopReason::Length,
        ),
        (json!({"incomplete_details": {"reason": "max_output_tokens"}}), "", StopReason::Length),
        (
            json!({"status": "completed", "error": null, "incomplete_details": null}),
            "",
            StopReason::ToolUse,
        ),
        (json!({}), "", StopReason::ToolUse),
    ] {
        let mut response = response;
        response["output"] =
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]);
        let event = json!({"type": "response.completed", "response": response});
        let server = Server::start([Reply::events(format!("data: {event}\n\n"))]).await;
        let endpoint =
            Endpoint { base_url: server.url.clone(), ..Endpoint::new(Wire::Responses, "m") };
        let (_, message) = ask(endpoint).await;
        assert_eq!(message.stop_reason, stop, "{message:?}");
        assert!(message.error_message.as_deref().unwrap_or_default().contains(want), "{message:?}");
    }
}
