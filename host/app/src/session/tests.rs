//! The example of the documentation, read and cut at every byte.

use super::format::{Entry, Line, VERSION};
use super::{NoRecord, Record, Recorder, Skipped, Summary, Transcript, witnessed};
use cofferdam_agent::message::{Content, Message};
use cofferdam_agent::replay::replay;
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer, block_on};
use cofferdam_agent::tool::ToolResult;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use futures::channel::oneshot;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const DOCUMENTATION: &str = include_str!("../../../docs/sessions.md");

/// The example in the documentation.
fn example() -> &'static str {
    let (_, after) = DOCUMENTATION.split_once("```jsonl\n").unwrap();
    after.split_once("```").unwrap().0
}

/// The example up to the kill, with the line that it cut.
fn killed() -> String {
    let at = example().find("{\"type\":\"opened\"").unwrap();
    let cut = "{\"type\":\"message\",\"at_us\":1764511503901000,\"message\":{\"ro";
    format!("{}{cut}", &example()[..at])
}

/// A transcript, a word for each message.
fn digest(transcript: &Transcript) -> String {
    let word = |message: &Arc<Message>| match &**message {
        Message::User(_) => "user".to_owned(),
        Message::Assistant(_) => "answer".to_owned(),
        Message::ToolResult(result) => {
            let Content::Text(text) = &result.content[0] else { panic!("no text") };
            let text: String = text.chars().skip_while(|c| *c != '\'').take(40).collect();
            format!("{}{text}", result.tool_call_id)
        }
        Message::Custom(custom) => custom.role.clone(),
    };
    let kept: Vec<String> = transcript.messages.iter().map(word).collect();
    let missing: Vec<String> = transcript.missing.iter().map(word).collect();
    format!("{} + {}", kept.join(" "), missing.join(" ")).trim().to_owned()
}

#[test]
fn the_example_of_the_documentation_is_what_is_written() {
    for text in example().lines() {
        let line = Line::parse(text).unwrap();
        assert!(!matches!(line.entry, Entry::Unknown), "{text}");
        assert_eq!(line.to_text(), format!("{text}\n"));
    }
    let cut = killed().len() - killed().rfind('\n').unwrap() - 1;
    assert!(example().contains(&format!("\"cut_bytes\":{cut}}}")), "{cut}");
    assert!(DOCUMENTATION.contains(&format!("`version` in the first line is {VERSION}")));
}

#[test]
fn the_documentation_has_every_type() {
    let table = DOCUMENTATION.split_once("| type |").unwrap().1;
    for text in example().lines() {
        let kind = text.split('"').nth(3).unwrap();
        assert!(table.contains(&format!("`{kind}`")), "{kind}");
    }
}

#[test]
fn what_was_confirmed_is_read_wherever_the_file_is_cut() {
    let text = killed();
    let mut boundaries = Vec::new();
    for cut in 0..=text.len() {
        let bytes = &text.as_bytes()[..cut];
        let whole = text[..cut].rfind('\n').map_or(0, |at| at + 1);
        let lines = text[..whole].lines().count();
        let record = match Record::read(bytes) {
            Err(problem) => {
                assert_eq!((problem, lines), (NoRecord::Empty, 0), "cut at {cut}");
                continue;
            }
            Ok(record) => record,
        };
        assert_eq!(record.lines.len(), lines, "cut at {cut}");
        assert_eq!((record.whole_bytes, record.cut_bytes), (whole as u64, (cut - whole) as u64));
        assert_eq!(record.skipped, []);
        let transcript = Transcript::of(&record.lines);
        let mut messages = transcript.messages.clone();
        messages.extend(transcript.missing.iter().cloned());
        assert_eq!(replay(&messages, true), messages, "a valid request, cut at {cut}");
        let short = Transcript::of(&Record::read_to_go_on(bytes).unwrap().lines);
        assert_eq!(short.messages, transcript.messages, "the short way, cut at {cut}");
        assert_eq!(short.missing, transcript.missing, "the short way, cut at {cut}");
        if cut == whole {
            boundaries.push(digest(&transcript));
        }
    }
    let never = "c1's process ended before this call ran. c2's process ended before this call ran.";
    let c1_ran = "c1's process ended while this call was run";
    let c2_ran = "c2's process ended while this call was run";
    let c2_never = "c2's process ended before this call ran.";
    let expected = [
        "+".to_owned(),
        "+".to_owned(),
        "+".to_owned(),
        "+".to_owned(),
        "user +".to_owned(),
        "user +".to_owned(),
        format!("user answer + {never}"),
        format!("user answer + {never}"),
        format!("user answer + {never}"),
        format!("user answer + {never}"),
        format!("user answer + {c1_ran} {c2_never}"),
        format!("user answer + {c1_ran} {c2_ran}"),
        format!("user answer + {c1_ran} {c2_ran}"),
        format!("user answer + {c1_ran} c2"),
    ];
    assert_eq!(boundaries, expected);
}

#[test]
fn a_batch_of_which_some_results_have_retired_gets_the_others() {
    let at = example().find("{\"type\":\"message\",\"at_us\":1764511633000020").unwrap();
    let record = Record::read(&example().as_bytes()[..at]).unwrap();
    let transcript = Transcript::of(&record.lines);
    assert_eq!(digest(&transcript), "user answer c1's process ended while this call was run + c2");
    let whole = Record::read(example().as_bytes()).unwrap();
    assert_eq!(Transcript::of(&whole.lines).missing, []);
}

#[test]
fn a_damaged_line_is_skipped_and_reported() {
    let damaged =
        example().replace("{\"type\":\"turn_start\",\"at_us\":1764511503000110}", "\0\0\0");
    let record = Record::read(damaged.as_bytes()).unwrap();
    assert_eq!(record.lines.len(), example().lines().count() - 1);
    let [Skipped { line: 4, problem }] = &record.skipped[..] else { panic!("{record:?}") };
    assert!(problem.contains("line 1 column 1"), "{problem}");
}

#[test]
fn other_files_and_later_versions_are_refused() {
    let later = example().replace("\"version\":1", "\"version\":2");
    for (text, problem) in [
        ("", "nothing was recorded"),
        ("{\"type\":\"session\"", "nothing was recorded"),
        ("hello\n", "no session file"),
        ("{\"type\":\"agent_start\",\"at_us\":1}\n", "not of the type `session`"),
        (&later, "version 2"),
    ] {
        let said = Record::read(text.as_bytes()).unwrap_err().to_string();
        assert!(said.contains(problem), "{text}: {said}");
    }
}

#[test]
fn what_a_later_version_adds_is_skipped() {
    let with = example().replace("\"coerce_arguments\":true", "\"coerce_arguments\":true,\"x\":1")
        + "{\"type\":\"weather\",\"at_us\":1,\"rain\":true}\n";
    let record = Record::read(with.as_bytes()).unwrap();
    assert_eq!(record.skipped, []);
    assert!(matches!(record.lines.last().unwrap().entry, Entry::Unknown));
}

#[test]
fn a_summary_tells_a_session_in_one_line() {
    let summary = Summary::of(example().as_bytes()).unwrap();
    assert_eq!(
        summary,
        Summary {
            began_us: 1_764_511_503_000_000,
            config: Some("/home/ada/cofferdam.toml".into()),
            messages: 5,
            calls: 1,
            title: "Sleep, and add one and one.".into(),
            ended: true,
        }
    );
    assert!(!Summary::of(killed().as_bytes()).unwrap().ended);
}

/// A line in a few words.
fn words(line: &Line) -> String {
    let line = line.to_json();
    let message = &line["message"];
    let which = [&line["tool_call_id"], &message["tool_call_id"], &message["role"]];
    let which = which.into_iter().find_map(Value::as_str).unwrap_or_default();
    let mut words = format!("{} {which}", line["type"].as_str().unwrap());
    if let Some(arguments) = line.get("arguments") {
        words.push_str(&format!(" {arguments}"));
    }
    words.trim_end().to_owned()
}

#[test]
fn lines_come_in_the_order_of_what_happens() {
    // The first call waits until the second has ended, and the third is alone.
    let (done, wait) = oneshot::channel::<()>();
    let (done, wait) = (Mutex::new(Some(done)), Mutex::new(Some(wait)));
    let slow = FnTool::new("slow", move |_, progress, _| {
        let wait = wait.lock().unwrap().take().unwrap();
        async move {
            progress.report(ToolResult::text("half"));
            wait.await.unwrap();
            Ok(ToolResult::text("slow"))
        }
    });
    let fast = FnTool::new("fast", move |_, _, _| {
        if let Some(done) = done.lock().unwrap().take() {
            done.send(()).unwrap();
        }
        async { Ok(ToolResult::text("fast")) }
    });
    let number =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": []});
    let fast = fast.with_parameters(number);
    let recorder = Arc::new(Recorder::in_memory("s".into(), Box::new(|| 0)));
    let tools = witnessed([slow.shared(), fast.shared()].into_iter(), &recorder);
    let model = ScriptedModel::new([
        answer::calls([
            ("c1", "slow", json!({})),
            ("c2", "fast", json!({"n": "1"})),
            ("c3", "gone", json!({})),
        ]),
        answer::calls([("c4", "fast", json!({}))]),
        answer::text("done"),
    ]);
    let toolset = Toolset::new(tools, Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    config.journal = Some(recorder.clone());
    let agent = Agent::new(config);
    agent.subscribe(recorder.clone()).detach();
    block_on(agent.prompt("go")).unwrap();
    let lines: Vec<String> = recorder.lines().iter().map(words).collect();
    let expected = [
        "run_start",
        "turn_start",
        "message user",
        "message assistant",
        "call_start c1",
        "call_start c2",
        "call_start c3",
        "call_end c3",
        "call_run c1",
        "call_progress c1",
        "call_run c2 {\"n\":1}",
        "call_end c2",
        "call_end c1",
        "message c1",
        "message c2",
        "message c3",
        "turn_end",
        "turn_start",
        "message assistant",
        "call_start c4",
        "call_run c4",
        "call_end c4",
        "message c4",
        "turn_end",
        "turn_start",
        "message assistant",
        "turn_end",
        "run_end",
    ];
    assert_eq!(lines, expected);
}
