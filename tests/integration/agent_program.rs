//! `cofferdam mcp` under an agent program of others: Qwen Code, `npm install @qwen-code/qwen-code`. Its
//! model is a script behind OpenAI's Chat wire on this machine, so nothing leaves it. Where the
//! program is not installed, these tests say so and pass.
//!
//! `COFFERDAM_QWEN` names the program (default: `qwen` on the path).

use crate::mcp::{Listening, command, setup};
use cofferdam_tests::{Ran, run};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// What the model asks for, one call a turn, and a word of what it must be told for it.
const CALLS: [(&str, &str, &str); 5] = [
    ("calc", r#"{"expressions": ["6 * 7"]}"#, "= 42"),
    ("crash", r#"{"message": "on purpose"}"#, "on purpose"),
    ("spin", "{}", "stopped after 1500 ms"),
    ("calm_chatter", r#"{"lines": 20}"#, "said 20 lines"),
    ("calc", r#"{"expressions": ["2 ^ 10"]}"#, "= 1024"),
];

/// A call on which the program gives up after its own time-out, and says so to the server. It then
/// connects anew and asks once more; on HTTP its model has no tools until it has, so that is for the
/// end.
const GIVEN_UP: (&str, &str, &str) = ("calm_patient", "{}", "timed out");

/// Milliseconds that the program waits for a call.
const PATIENCE_MS: u32 = 10_000;

/// A model behind the Chat wire that makes [`CALLS`] and [`GIVEN_UP`], and then says so.
struct ScriptedServer {
    base: String,
    /// The last message of each request that offered tools.
    told: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedServer {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = told.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A connection that breaks is the program's affair.
                let _ = answer(stream, &kept);
            }
        });
        Self { base, told }
    }
}

fn answer(mut stream: TcpStream, told: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    // A request without tools is about something else, such as a title for the session.
    let call = request.get("tools").and_then(|_| {
        let mut told = told.lock().unwrap();
        told.push(request["messages"].as_array()?.last()?.clone());
        CALLS.iter().chain([&GIVEN_UP]).nth(told.len() - 1).map(|call| (told.len(), call))
    });
    let (delta, finish) = match call {
        Some((number, (tool, arguments, _))) => {
            let function =
                json!({"name": format!("mcp__cofferdam__{tool}"), "arguments": arguments});
            let id = format!("call_{number}");
            let call = json!({"index": 0, "id": id, "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": "All done."}), "stop"),
    };
    let choice = json!({"index": 0, "delta": delta, "message": delta, "finish_reason": finish});
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let whole = json!({
        "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "script",
        "choices": [choice], "usage": usage,
    });
    let (kind, text) = match request["stream"] == true {
        true => ("text/event-stream", format!("data: {whole}\n\ndata: [DONE]\n\n")),
        false => ("application/json", whole.to_string()),
    };
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn program() -> Option<OsString> {
    let program = std::env::var_os("COFFERDAM_QWEN").unwrap_or("qwen".into());
    if Command::new(&program).arg("--version").output().is_ok_and(|out| out.status.success()) {
        return Some(program);
    }
    eprintln!("LEFT OUT: an agent program: npm install @qwen-code/qwen-code");
    None
}

/// Lets the program work with a server of this entry.
fn work(program: &OsString, folder: &Path, server: &Value, model: &ScriptedServer) -> Ran {
    let settings = json!({"privacy": {"usageStatisticsEnabled": false}});
    std::fs::create_dir_all(folder.join("home/.qwen")).unwrap();
    std::fs::write(folder.join("home/.qwen/settings.json"), settings.to_string()).unwrap();
    let mut entry = server.clone();
    entry["timeout"] = PATIENCE_MS.into();
    let servers = json!({"mcpServers": {"cofferdam": entry}});
    std::fs::write(folder.join("mcp.json"), servers.to_string()).unwrap();
    let mut command = Command::new(program);
    command.current_dir(folder).env("HOME", folder.join("home"));
    command.args(["--mcp-config", "mcp.json", "--auth-type", "openai", "--model", "script"]);
    command.args(["--openai-api-key", "none", "--openai-base-url", &model.base, "--yolo"]);
    run(command.args(["--prompt", "Do what you have to do."]))
}

/// The program got what each call came to, and so did the server's log.
fn check(ran: &Ran, model: &ScriptedServer, log: &Path, http: bool) {
    assert_eq!((ran.code, ran.out.trim()), (0, "All done."), "{ran:?}");
    let told = model.told.lock().unwrap();
    assert_eq!(told.len(), CALLS.len() + 2, "{told:?}");
    for ((tool, _, word), told) in CALLS.iter().chain([&GIVEN_UP]).zip(&told[1..]) {
        assert_eq!(told["role"], "tool", "{told}");
        assert!(told["content"].to_string().contains(word), "{tool}: {told}");
    }
    let log = std::fs::read_to_string(log).unwrap();
    let ended = log.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let tool = line["spans"][0]["tool"].as_str()?;
        Some(format!("{tool}: {}", line["fields"]["end"].as_str()?))
    });
    let mut ended: Vec<String> = ended.collect();
    // The tool watches for cancellation and ends well. On HTTP the program drops the connection with
    // the notice of it, and a call whose connection is gone runs on to its own limit.
    let given_up = |end: &String| end.starts_with("calm_patient: ");
    assert!(http || ended.iter().any(|end| end == "calm_patient: ok"), "{log}");
    ended.retain(|end| !given_up(end));
    let wanted = ["calc: ok", "crash: trap", "spin: time-limit", "calm_chatter: ok", "calc: ok"];
    assert_eq!(ended, wanted, "{log}");
}

#[test]
fn an_agent_program_of_others_works_with_the_tools_on_streams() {
    let Some(program) = program() else { return };
    let folder = setup();
    let log = folder.path().join("log.jsonl");
    let mut server = command(&folder);
    server.args(["--log-format", "json", "--log-file"]).arg(&log);
    let words: Vec<_> = server.get_args().map(|word| word.to_string_lossy()).collect();
    let environment = server.get_envs().filter_map(|(key, value)| {
        Some((key.to_string_lossy().into_owned(), value?.to_string_lossy().into_owned()))
    });
    let environment: serde_json::Map<String, Value> =
        environment.map(|(key, value)| (key, value.into())).collect();
    let entry = json!({
        "command": server.get_program().to_string_lossy(), "args": words, "env": environment,
    });
    let model = ScriptedServer::new();
    check(&work(&program, folder.path(), &entry, &model), &model, &log, false);
}

#[test]
fn an_agent_program_of_others_works_with_the_tools_on_http() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let listening =
        Listening::new(&["--log-format", "json", "--log-file", &log.display().to_string()]);
    let entry = json!({"httpUrl": format!("http://{}/mcp", listening.address)});
    let model = ScriptedServer::new();
    check(&work(&program, folder.path(), &entry, &model), &model, &log, true);
}
