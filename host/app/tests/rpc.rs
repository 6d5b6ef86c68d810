//! The lines of `rpc`: what they do, what they may not do, and who waits for whom.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::config::BeforeEntry;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage};
use cofferdam_agent::model::{Model, Request, Step};
use cofferdam_agent::queue::QueueKind;
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer};
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use cofferdam_app::approve::{self, AskFirst, Questions};
use cofferdam_app::patterns::ToolPatterns;
use cofferdam_app::rpc;
use cofferdam_tests::hostile_line;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

const SCHEMA: &str = include_str!("../../docs/rpc.schema.json");

fn schema(of: &str) -> jsonschema::Validator {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    schema["$ref"] = format!("#/$defs/{of}").into();
    jsonschema::validator_for(&schema).unwrap()
}

static REQUEST: LazyLock<jsonschema::Validator> = LazyLock::new(|| schema("request"));
static LINE: LazyLock<jsonschema::Validator> = LazyLock::new(|| schema("line"));

fn agent(model: impl Model + 'static, tools: Vec<FnTool>) -> (Agent, Questions) {
    let toolset = Toolset::new(tools.into_iter().map(FnTool::shared), Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    let tools = ToolPatterns::parse(&["asks_*".into()]).unwrap();
    config.before = vec![BeforeEntry::new(Arc::new(AskFirst { tools }))];
    let (approver, questions) = approve::channel();
    config.approver = Some(approver);
    (Agent::new(config), questions)
}

/// A session with its client's ends.
struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Client {
    /// `room` bytes fit between the session and a reader that reads nothing.
    fn new((agent, questions): (Agent, Questions), room: usize) -> Self {
        let (input, theirs) = tokio::io::duplex(1 << 20);
        let (output, their_output) = tokio::io::duplex(room);
        let theirs = BufReader::new(theirs);
        let served = rpc::serve(agent, questions, theirs, their_output, AbortSignal::new());
        Self { input, output: BufReader::new(output).lines(), served: tokio::spawn(served) }
    }

    async fn send(&mut self, request: Value) {
        assert!(REQUEST.is_valid(&request), "{request}");
        self.raw(format!("{request}\n").as_bytes()).await;
    }

    async fn raw(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.unwrap();
    }

    /// The next line; none at the end.
    async fn read(&mut self) -> Option<Value> {
        let line: Value = serde_json::from_str(&self.output.next_line().await.unwrap()?).unwrap();
        assert!(LINE.is_valid(&line), "{line}");
        Some(line)
    }

    /// Reads on to the first line that has these fields.
    async fn until(&mut self, fields: Value) -> Value {
        let fields = fields.as_object().unwrap();
        loop {
            let line = self.read().await.unwrap_or_else(|| panic!("no line with {fields:?}"));
            if fields.iter().all(|(field, value)| line[field] == *value) {
                return line;
            }
        }
    }

    async fn answer(&mut self, request: Value) -> Value {
        self.send(request).await;
        self.until(json!({"type": "answer"})).await
    }

    /// Ends the input and reads what is left.
    async fn leave(mut self) -> Vec<Value> {
        self.input.shutdown().await.unwrap();
        let mut lines = Vec::new();
        while let Some(line) = self.read().await {
            lines.push(line);
        }
        self.served.await.unwrap().unwrap();
        lines
    }
}

fn calls(tool: &str, count: usize) -> AssistantMessage {
    let ids: Vec<String> = (0..count).map(|number| format!("c{number}")).collect();
    answer::calls(ids.iter().map(|id| (id.as_str(), tool, json!({}))))
}

/// A tool that says when it began and waits to be let go or aborted.
fn gate(name: &str) -> (FnTool, Arc<Semaphore>, Arc<Semaphore>) {
    let (began, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, opens) = (began.clone(), open.clone());
    let tool = FnTool::new(name, move |_, _, abort| {
        let (began, open) = (begins.clone(), opens.clone());
        async move {
            began.add_permits(1);
            let let_go = open.acquire();
            match abort.run_until_cancelled(let_go).await {
                Some(permit) => {
                    permit.unwrap().forget();
                    Ok(ToolResult::text("let go"))
                }
                None => Ok(ToolResult::text("stopped")),
            }
        }
    });
    (tool, began, open)
}

#[tokio::test]
async fn a_prompt_is_answered_at_once_and_its_run_comes_as_events() {
    let model = ScriptedModel::new([calls("greet", 1), answer::text("Fine.")]);
    let mut client = Client::new(agent(model, vec![FnTool::text("greet", "Hello.")]), 1 << 20);
    let hello = client.read().await.unwrap();
    assert_eq!((&hello["type"], &hello["tools"]), (&json!("hello"), &json!(["greet"])));
    client.send(json!({"id": 1, "type": "prompt", "text": "How are you?"})).await;
    let mut events = Vec::new();
    let end = loop {
        let line = client.read().await.unwrap();
        match line["type"].as_str().unwrap() {
            "event" => events.push(line),
            "answer" => {
                assert_eq!(line, json!({"type": "answer", "id": 1, "ok": true, "result": {}}));
            }
            _ => break line,
        }
    };
    assert_eq!(end, json!({"type": "run_end", "reason": "finished", "error": null}));
    assert_eq!(events[0], json!({"type": "event", "event": "agent_start"}));
    assert_eq!(events.last().unwrap()["event"], "agent_end");
    let said = events.iter().filter(|event| event["event"] == "message_end");
    let said: Vec<&Value> = said.map(|event| &event["message"]).collect();
    assert_eq!(said.len(), 4);
    let kept = client.answer(json!({"type": "messages", "from": 1})).await;
    assert_eq!(kept["result"]["total"], 4);
    assert_eq!(kept["result"]["messages"], json!(said[1..]));
    let state = client.answer(json!({"id": "s", "type": "state"})).await;
    assert_eq!((&state["id"], &state["result"]["running"]), (&json!("s"), &json!(false)));
    let nothing = client.answer(json!({"type": "continue"})).await;
    assert_eq!(nothing["error"]["code"], "nothing_to_continue");
    assert!(client.leave().await.is_empty());
}

#[tokio::test]
async fn a_run_is_steered_followed_up_and_aborted() {
    let (tool, began, open) = gate("wait");
    let model = ScriptedModel::new([calls("wait", 1), answer::text("steered"), calls("wait", 2)]);
    let (agent, questions) = agent(model, vec![tool]);
    let mut client = Client::new((agent.clone(), questions), 1 << 20);
    client.send(json!({"type": "prompt", "text": "go"})).await;
    began.acquire().await.unwrap().forget();
    let busy = client.answer(json!({"id": 9, "type": "prompt", "text": "go"})).await;
    // The first answer is the prompt's own.
    assert_eq!(busy["ok"], true);
    assert_eq!(client.until(json!({"id": 9})).await["error"]["code"], "busy");
    let steered = client.answer(json!({"type": "steer", "text": "left"})).await;
    assert_eq!(steered["result"], json!({"queued": 1}));
    client.answer(json!({"type": "follow_up", "text": "then"})).await;
    let state = client.answer(json!({"type": "state"})).await;
    assert_eq!(state["result"]["queued"], json!({"steering": 1, "follow_up": 1}));
    assert_eq!(state["result"]["pending_tool_calls"], json!(["c0"]));
    open.add_permits(1);
    began.acquire().await.unwrap().forget();
    assert_eq!(client.answer(json!({"type": "abort"})).await["result"], json!({"running": true}));
    assert_eq!(client.until(json!({"type": "run_end"})).await["reason"], "aborted");
    assert_eq!(client.answer(json!({"type": "abort"})).await["result"], json!({"running": false}));
    assert!(!agent.is_running());
}

#[tokio::test]
async fn questions_come_out_answers_go_in_and_an_abort_takes_one_back() {
    let tool = FnTool::text("asks_first", "ran");
    let model =
        ScriptedModel::new([calls("asks_first", 2), answer::text("so"), calls("asks_first", 1)]);
    let mut client = Client::new(agent(model, vec![tool]), 1 << 20);
    client.send(json!({"type": "prompt", "text": "go"})).await;
    let first = client.until(json!({"type": "question"})).await;
    assert_eq!((&first["tool_name"], &first["arguments"]), (&json!("asks_first"), &json!({})));
    let wrong = json!({"type": "answer", "question": "q7", "approved": true});
    client.send(wrong).await;
    assert_eq!(client.until(json!({"ok": false})).await["error"]["code"], "no_such_question");
    let yes = json!({"id": 2, "type": "answer", "question": first["question"], "approved": true});
    client.send(yes).await;
    let second = client.until(json!({"type": "question"})).await;
    let question = &second["question"];
    client
        .send(json!({"type": "answer", "question": question, "approved": false, "reason": "no"}))
        .await;
    let refused = client.until(json!({"event": "tool_execution_end", "is_error": true})).await;
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().ends_with("no: no."));
    client.until(json!({"type": "run_end", "reason": "finished"})).await;
    client.send(json!({"type": "prompt", "text": "again"})).await;
    let third = client.until(json!({"type": "question"})).await;
    client.send(json!({"type": "abort"})).await;
    let back = client.until(json!({"type": "question_withdrawn"})).await;
    assert_eq!(back["question"], third["question"]);
    client.until(json!({"type": "run_end", "reason": "aborted"})).await;
}

#[tokio::test]
async fn the_end_of_input_stops_in_order() {
    let (tool, began, _) = gate("wait");
    let (agent, questions) = agent(ScriptedModel::new([calls("wait", 1)]), vec![tool]);
    let mut client = Client::new((agent.clone(), questions), 1 << 20);
    client.send(json!({"type": "prompt", "text": "go"})).await;
    began.acquire().await.unwrap().forget();
    let lines = client.leave().await;
    assert_eq!(
        *lines.last().unwrap(),
        json!({"type": "run_end", "reason": "aborted", "error": lines.last().unwrap()["error"]})
    );
    assert!(!agent.is_running());
    assert_eq!(agent.messages().len(), 4, "every call has its result");
}

#[tokio::test]
async fn ten_thousand_hostile_lines_get_an_answer_each_and_only_good_ones_do_something() {
    let (agent, questions) = agent(ScriptedModel::default(), vec![]);
    let mut client = Client::new((agent.clone(), questions), 1 << 20);
    let mut state = 88_172_645_463_325_252;
    let (mut steered, mut followed, mut good) = (0, 0, 0);
    for _ in 0..10_000 {
        let line = hostile_line(&mut state);
        client.raw(&[&line[..], b"\n"].concat()).await;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = client.until(json!({"type": "answer"})).await;
        let request = serde_json::from_slice::<Value>(&line);
        if answer["ok"] == true {
            let request = request.unwrap();
            assert!(REQUEST.is_valid(&request), "carried out: {request}");
            assert_eq!(answer["id"], request["id"]);
            good += 1;
            steered += usize::from(request["type"] == "steer");
            followed += usize::from(request["type"] == "follow_up");
        } else if answer["error"]["code"] == "malformed" {
            // A schema sees neither fields that are there twice nor how a number is written.
            let twice = line.windows(6).filter(|part| *part == b"\"text\"").count() > 1;
            let valid = request.as_ref().is_ok_and(|request| {
                REQUEST.is_valid(request) && request.get("from").is_none_or(Value::is_u64)
            });
            assert!(!valid || twice, "refused: {answer} {}", String::from_utf8_lossy(&line));
        }
    }
    assert!(good > 1_000, "{good} of the lines were good");
    assert_eq!(agent.queued(QueueKind::Steering).len(), steered);
    assert_eq!(agent.queued(QueueKind::FollowUp).len(), followed);
    assert!(agent.messages().is_empty(), "nothing ever ran");
    let long = vec![b'x'; 5 << 20];
    client.raw(&[&long[..], b"\n"].concat()).await;
    let refused = client.until(json!({"type": "answer"})).await;
    assert_eq!(refused["error"]["code"], "malformed");
    assert_eq!(client.answer(json!({"id": 5, "type": "state"})).await["id"], 5);
    assert!(client.leave().await.is_empty());
}

/// Streams an answer in many parts.
struct Chatty(usize);

impl Model for Chatty {
    fn stream(&self, _: Request, _: AbortSignal) -> BoxStream<'static, Step> {
        let part = |_| Step::TextDelta { index: 0, delta: "word ".into() };
        let whole = answer::text(&"word ".repeat(self.0));
        let begin = [Step::Start, Step::TextStart { index: 0 }];
        let end = Step::Done(whole);
        stream::iter(begin)
            .chain(stream::iter((0..self.0).map(part)))
            .chain(stream::iter([end]))
            .boxed()
    }
}

/// Sends a prompt to a session whose output nobody reads, and waits for the end of its run.
async fn unread(client: &mut Client, agent: &Agent) {
    client.send(json!({"type": "prompt", "text": "go"})).await;
    while !agent.is_running() && agent.messages().is_empty() {
        tokio::task::yield_now().await;
    }
    agent.wait_for_idle().await;
}

#[tokio::test]
async fn a_reader_that_stops_delays_nothing_and_gets_text_and_reports_joined() {
    const PARTS: usize = 20_000;
    let (agent, questions) = agent(Chatty(PARTS), vec![]);
    let mut client = Client::new((agent.clone(), questions), 16);
    unread(&mut client, &agent).await;
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &Value| line["type"] != "run_end") {
        lines.push(client.read().await.unwrap());
    }
    assert!(lines.len() < 20, "{} lines", lines.len());
    let parts = lines.iter().filter_map(|line| line["delta"].as_str());
    assert_eq!(parts.collect::<String>(), "word ".repeat(PARTS));

    let tool = FnTool::new("work", |_, progress, _| async move {
        for step in 0..PARTS {
            progress.report(ToolResult::text(format!("step {step}")));
            progress.announced().await;
        }
        Ok(ToolResult::text("worked"))
    });
    let (agent, questions) = self::agent(ScriptedModel::new([calls("work", 2)]), vec![tool]);
    let mut client = Client::new((agent.clone(), questions), 16);
    unread(&mut client, &agent).await;
    let mut reports = Vec::new();
    loop {
        let line = client.read().await.unwrap();
        if line["event"] == "tool_execution_update" {
            reports.push(line["partial_result"]["content"][0]["text"].clone());
        }
        if line["type"] == "run_end" {
            break;
        }
    }
    assert_eq!(
        reports,
        [json!(format!("step {}", PARTS - 1)), json!(format!("step {}", PARTS - 1))]
    );
}

/// Events that no reader does without, as what they are about.
fn essential(line: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match line["event"].as_str()? {
        "message_update" | "tool_execution_update" => None,
        event => Some(format!(
            "{event} {}{}{}",
            text(&line["tool_call_id"]),
            text(&line["role"]),
            text(&line["message"]["role"])
        )),
    }
}

/// Tools whose results, arguments and reports are all large.
fn large(reports: usize) -> FnTool {
    FnTool::new("large", move |_, progress, _| async move {
        for step in 0..reports {
            let details = Some(json!("d".repeat(1 << 17)));
            let text = format!("{step} {}", "é\n".repeat(1 << 16));
            progress.report(ToolResult { details, ..ToolResult::text(text) });
            progress.announced().await;
        }
        let details = Some(json!({"all": "d".repeat(1 << 19)}));
        Ok(ToolResult { details, ..ToolResult::text("x".repeat(1 << 19)) })
    })
}

#[tokio::test]
async fn no_event_but_an_update_is_left_out_and_long_fields_are_read_later_from_the_messages() {
    const CALLS: usize = 24;
    let ids: Vec<String> = (0..CALLS).map(|number| format!("c{number}")).collect();
    let arguments = json!({"text": "a".repeat(100_000)});
    let batch = answer::calls(ids.iter().map(|id| (id.as_str(), "large", arguments.clone())));
    let run = || {
        let model = ScriptedModel::new([batch.clone(), answer::text("so much")]);
        agent(model, vec![large(3)])
    };
    // A reader that reads at once, and one that does not until the run is over.
    let mut sequences: Vec<Vec<String>> = Vec::new();
    for at_once in [true, false] {
        let (agent, questions) = run();
        let mut client = Client::new((agent.clone(), questions), 1 << 16);
        match at_once {
            true => client.send(json!({"type": "prompt", "text": "go"})).await,
            false => unread(&mut client, &agent).await,
        }
        let (mut lines, mut bytes, mut short) = (Vec::new(), 0, 0);
        loop {
            let line = client.read().await.unwrap();
            let long = line.to_string().len();
            bytes += long;
            if line["event"] == "tool_execution_update" {
                assert!(long < 200_000, "{long} bytes of a report");
                assert_eq!(line["left_out"], json!(["partial_result", "args"]));
                let text = line["partial_result"]["content"][0]["text"].as_str().unwrap();
                assert!(text.len() > 60_000 && text.contains(" é\n"), "{}", text.len());
                assert_eq!(line["args"], json!({}));
            } else if let Some(left_out) = line.get("left_out") {
                short += 1;
                assert!(long < 2_000 * left_out.as_array().unwrap().len(), "{long}: {left_out}");
            }
            let over = line["type"] == "run_end";
            lines.push(line);
            if over {
                break;
            }
        }
        let ends = lines.iter().filter(|line| line["event"] == "tool_execution_end");
        assert_eq!(ends.clone().filter(|end| end["is_error"] == false).count(), CALLS);
        for end in ends.filter(|end| end.get("left_out").is_some()) {
            assert_eq!(end["result"]["content"], json!([]), "{end}");
        }
        if !at_once {
            assert!(short > CALLS, "{short} events in short");
            // What may wait, the one that went above it, and the one that is being written.
            assert!(bytes < (8 << 20) + (6 << 20), "{bytes} bytes");
        }
        sequences.push(lines.iter().filter_map(essential).collect());
        let kept = client.answer(json!({"type": "messages"})).await;
        let kept = kept["result"]["messages"].as_array().unwrap();
        let texts = kept.iter().filter(|message| message["role"] == "tool_result");
        assert!(texts.clone().count() == CALLS);
        for message in texts {
            assert_eq!(message["content"][0]["text"].as_str().unwrap().len(), 1 << 19);
        }
    }
    sequences.iter_mut().for_each(|sequence| sequence.sort());
    assert_eq!(sequences[0], sequences[1]);
}

#[tokio::test]
async fn reports_of_one_call_make_room_for_the_ends_of_others() {
    // Many calls, each with a report that waits, and then as many ends.
    const CALLS: usize = 300;
    let model = ScriptedModel::new([calls("large", CALLS), answer::text("so much")]);
    let (agent, questions) = agent(
        model,
        vec![FnTool::new("large", |_, progress, _| async move {
            progress.report(ToolResult::text("r".repeat(60_000)));
            progress.announced().await;
            Ok(ToolResult::text("e".repeat(2_000)))
        })],
    );
    let mut client = Client::new((agent.clone(), questions), 16);
    unread(&mut client, &agent).await;
    let (mut missed, mut whole) = (0, 0);
    loop {
        let line = client.read().await.unwrap();
        missed += line["events"].as_u64().unwrap_or(0);
        let end = line["event"] == "tool_execution_end";
        if end && line["result"]["content"][0]["text"].as_str().is_some_and(|t| t.len() == 2_000) {
            whole += 1;
        }
        if line["type"] == "run_end" {
            break;
        }
    }
    assert_eq!(whole, CALLS, "reports gave way");
    assert!(missed > CALLS as u64 / 2, "{missed} reports left out");
}

#[tokio::test]
async fn what_waits_does_not_keep_requests_from_being_read() {
    let model = ScriptedModel::new([calls("large", 16), answer::text("so much")]);
    let (agent, questions) = agent(model, vec![large(0)]);
    let mut client = Client::new((agent.clone(), questions), 16);
    unread(&mut client, &agent).await;
    client.send(json!({"type": "steer", "text": "left"})).await;
    while agent.queued(QueueKind::Steering).is_empty() {
        tokio::task::yield_now().await;
    }
    let mut ends = 0;
    loop {
        let line = client.read().await.unwrap();
        ends += usize::from(line["event"] == "tool_execution_end");
        if line["type"] == "run_end" {
            break;
        }
    }
    assert_eq!(ends, 16);
}

#[tokio::test]
async fn the_transcript_keeps_what_events_leave_out() {
    let model = ScriptedModel::new([calls("large", 12), answer::text("so much")]);
    let (agent, questions) = agent(model, vec![large(1)]);
    let mut client = Client::new((agent.clone(), questions), 16);
    unread(&mut client, &agent).await;
    client.until(json!({"type": "run_end", "reason": "finished"})).await;
    let kept = client.answer(json!({"type": "messages"})).await;
    let kept = kept["result"]["messages"].as_array().unwrap();
    assert_eq!(kept.len(), agent.messages().len());
    assert_eq!(kept.last().unwrap()["content"][0]["text"], "so much");
    assert!(matches!(
        agent.messages().last().unwrap().as_assistant().unwrap().content[..],
        [AssistantBlock::Text(_)]
    ));
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_session() {
    let (tool, began, _) = gate("wait");
    let (agent, questions) = agent(ScriptedModel::new([calls("wait", 1)]), vec![tool]);
    let mut client = Client::new((agent.clone(), questions), 1 << 20);
    client.send(json!({"type": "prompt", "text": "go"})).await;
    began.acquire().await.unwrap().forget();
    let Client { input, output, served } = client;
    drop(output);
    // The next line cannot be written.
    agent.steer("left");
    let mut input = input;
    input.write_all(b"{\"type\":\"state\"}\n").await.unwrap();
    served.await.unwrap().unwrap();
    assert!(!agent.is_running());
}
