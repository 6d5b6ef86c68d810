//! The log: which lines, with which spans, and what they never hold.

use crate::support::{SECRET, agent, agent_of};
use cofferdam_agent::testing::{Recorder, ScriptedModel, block_on};
use cofferdam_agent::{AbortSignal, message::ToolCall};
use cofferdam_observe::{Contents, Logs, Subject};
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::level_filters::LevelFilter;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn subject() -> Subject {
    let some = |word: &str| Some(word.to_owned());
    Subject { provider: some("gemini"), model: some("test-model"), session: some("s1") }
}

/// The log of a run, as text and as JSON.
fn logged(level: LevelFilter, contents: Contents) -> (String, Vec<Value>) {
    let run = || {
        let agent = agent();
        agent.subscribe(Arc::new(Logs::new(subject(), contents))).detach();
        block_on(agent.prompt(SECRET)).unwrap();
    };
    let (text, lines) = (Page::default(), Page::default());
    let writer = text.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .without_time()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    tracing::subscriber::with_default(subscriber.finish(), run);
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(level).json().with_writer(move || writer.clone());
    tracing::subscriber::with_default(subscriber.finish(), run);
    let string = |page: Page| String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    let lines = string(lines);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (string(text), lines)
}

fn says<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["fields"]["message"] == message).collect()
}

#[test]
fn a_run_is_told_with_its_spans_and_without_contents() {
    let (text, lines) = logged(LevelFilter::INFO, Contents::Hidden);
    assert!(!text.contains(SECRET), "{text}");
    assert!(!format!("{lines:?}").contains(SECRET));
    assert_eq!(says(&lines, "run begins")[0]["fields"]["model"], "test-model");
    assert_eq!(says(&lines, "run begins")[0]["spans"][0]["session"], "s1");
    let calls = says(&lines, "call ended");
    let ended: Vec<_> = calls
        .iter()
        .map(|line| {
            let spans: Vec<_> = line["spans"]
                .as_array()
                .unwrap()
                .iter()
                .map(|span| span["name"].as_str().unwrap())
                .collect();
            assert_eq!(spans, ["run", "turn", "call"], "{line}");
            let id = line["spans"][2]["id"].as_str().unwrap();
            (id, line["level"].as_str().unwrap(), line["fields"]["end"].as_str().unwrap())
        })
        .collect();
    for want in [
        ("c1", "INFO", "ok"),
        ("c2", "WARN", "trap"),
        ("c3", "WARN", "blocked"),
        ("c4", "WARN", "unknown-tool"),
    ] {
        assert!(ended.contains(&want), "{ended:?}");
    }
    assert_eq!(ended.len(), 4);
    let c1 = calls.iter().find(|line| line["spans"][2]["id"] == "c1").unwrap();
    for (field, figure) in
        [("fuel", 1234), ("memory_peak_bytes", 131_072), ("waiting_us", 5), ("refusals", 1)]
    {
        assert_eq!(c1["fields"][field], figure, "{c1}");
    }
    // What was asked for, the rule and the line, whatever the contents are set to.
    let refused = says(&lines, "refused");
    assert!(refused.iter().any(|line| line["spans"][2]["id"] == "c1"), "{refused:?}");
    for line in refused {
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["fields"]["refusal"], "`../a` is not granted; to allow it: a line");
    }
    let answers = says(&lines, "answer");
    assert_eq!((answers.len(), &answers[0]["fields"]["cache_read_tokens"]), (2, &30.into()));
    assert_eq!(says(&lines, "hook")[0]["fields"]["did"], "blocked");
    assert_eq!(says(&lines, "run ended")[0]["fields"]["end"], "finished");
    // A line is a line, whatever a name has in it.
    assert_eq!(text.lines().count(), lines.len(), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}");
    assert!(text.contains(r#"tool="no\u{1b}[31m\n"#), "{text}");
}

#[test]
fn a_level_keeps_the_spans_of_its_lines_and_contents_come_when_asked_for() {
    let (_, warnings) = logged(LevelFilter::WARN, Contents::Hidden);
    assert!(warnings.iter().all(|line| line["level"] == "WARN"), "{warnings:?}");
    assert_eq!(says(&warnings, "call ended")[0]["spans"].as_array().unwrap().len(), 3);
    let (_, all) = logged(LevelFilter::DEBUG, Contents::Shown);
    for (message, field) in [
        ("message of the user", "prompt"),
        ("call begins", "arguments"),
        ("call ended", "result"),
        ("answer", "answer"),
    ] {
        let told = says(&all, message);
        let mut told = told.iter().filter_map(|line| line["fields"][field].as_str());
        assert!(told.any(|text| text.contains(SECRET)), "{message}: {all:?}");
    }
}

#[test]
fn a_call_from_outside_stands_alone_and_a_dropped_run_leaves_nothing_behind() {
    let lines = Page::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone());
    tracing::subscriber::with_default(subscriber.finish(), || {
        let agent = agent_of(ScriptedModel::new([crate::support::calls()]));
        agent.subscribe(Arc::new(Logs::new(subject(), Contents::Hidden))).detach();
        {
            // Polled once, and dropped in the middle of it or done.
            let mut run = Box::pin(agent.prompt("go"));
            let _ = block_on(async { futures::poll!(run.as_mut()) });
        }
        let call = ToolCall::from_text("mcp-1", "add", "{}");
        block_on(agent.call(call, &AbortSignal::new(), &Recorder::default()));
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["spans"].as_array().unwrap().len(), 1, "{last}");
    assert_eq!(last["spans"][0]["id"], "mcp-1");
}
