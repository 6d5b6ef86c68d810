//! Questions to a person at a terminal that shows lines only, through a pseudo-terminal.

use crate::cofferdam;
use cofferdam_tests::plugin;
use rexpect::session::{PtySession, spawn_command};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any step takes on a loaded machine.
const PATIENCE_MS: u64 = 120_000;
const PROMPT: &str = "anything else = no, and why: ";

struct Desk {
    folder: TempDir,
}

impl Desk {
    /// A folder with an operator's file for these plugins, and a model that asks for these calls.
    fn new(config: &str, calls: &[(&str, &str, Value)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n";
        std::fs::write(folder.path().join("cofferdam.toml"), format!("{model}{config}")).unwrap();
        let block = |(id, name, arguments): &(&str, &str, Value)| json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments});
        let asks = json!({"content": calls.iter().map(block).collect::<Vec<_>>(), "stop_reason": "tool_use"});
        let texts: String =
            calls.iter().map(|(id, ..)| format!("{id}: ${{results.{id}}}\n")).collect();
        let says = json!({"content": [{"type": "text", "text": format!("{texts}the end")}], "stop_reason": "stop"});
        std::fs::write(folder.path().join("answers.json"), json!([asks, says]).to_string())
            .unwrap();
        Self { folder }
    }

    /// The run, with somebody at the terminal.
    fn sit_down(&self) -> PtySession {
        let mut command = cofferdam();
        command.env("TERM", "dumb").args(["run", "--no-session", "--allow-unpinned", "--config"]);
        command.arg(self.folder.path().join("cofferdam.toml")).arg("go");
        spawn_command(command, Some(PATIENCE_MS)).unwrap()
    }
}

fn entry(name: &str, more: &str) -> String {
    format!(
        "[[plugins]]\nname = {name:?}\npath = {:?}\n{more}\n",
        plugin(name).display().to_string()
    )
}

fn calc(id: &'static str, expression: &str) -> (&'static str, &'static str, Value) {
    (id, "calc", json!({"expressions": [expression]}))
}

/// Everything up to the end, and the exit code.
fn leave(mut person: PtySession) -> (String, i32) {
    let rest = person.exp_eof().unwrap();
    // The type of the status is another crate's, and its text is all that is told.
    let status = format!("{:?}", person.process().wait().unwrap());
    let code = status
        .strip_prefix("Exited(")
        .and_then(|status| status.trim_end_matches(')').rsplit(' ').next());
    (rest, code.and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{status}")))
}

#[test]
fn one_question_at_a_time_and_each_answer_counts_for_its_call() {
    let limits = "limits = { wall_ms = 5000, queue_ms = 5000 }";
    let config = entry("calc", limits) + "[approval]\nask = [\"calc\"]\n";
    let desk = Desk::new(&config, &[calc("a", "6*7"), calc("b", "1/0\u{202e}"), calc("c", "2+2")]);
    let mut person = desk.sit_down();
    // Typed before anything was asked: no answer to what comes.
    person.send_line("y").unwrap();
    let first = person.exp_string(PROMPT).unwrap();
    assert!(
        first.contains("calc of the plugin calc, call a") && first.contains("\"6*7\""),
        "{first}"
    );
    assert!(!first.contains("call b"), "{first}");
    // The answer takes its time: that is not the call's wall time.
    std::thread::sleep(std::time::Duration::from_millis(5_100));
    person.send_line("yes").unwrap();
    let second = person.exp_string(PROMPT).unwrap();
    assert!(second.contains("call b") && second.contains("1/0\\u{202e}"), "{second}");
    person.send_line("not by zero").unwrap();
    person.exp_string("call c").unwrap();
    person.exp_string(PROMPT).unwrap();
    person.send_line("").unwrap();
    person.exp_string(PROMPT).unwrap();
    person.send_line("n").unwrap();
    let (rest, code) = leave(person);
    assert_eq!(code, 0, "{rest}");
    for want in ["42", "and the answer was no: not by zero.", "and the answer was no.", "the end"] {
        assert!(rest.contains(want), "{want}: {rest}");
    }
}

#[test]
fn a_hook_asks_in_its_own_words_about_the_final_arguments() {
    let config = entry(
        "files",
        "grants.files = [{ host = \".\", guest = \"/workspace\", access = \"read-write\" }]",
    ) + &entry("guard", "grants.config = { ask = \"*.md\" }")
        + "[[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"write_*\"]\n";
    let text = "one\n\u{1b}[2Jtwo\u{9b}31m";
    let write = json!({"path": "/workspace/a.md", "content": text});
    let desk = Desk::new(&config, &[("w", "write_file", write)]);
    let mut person = desk.sit_down();
    let asked = person.exp_string(PROMPT).unwrap();
    assert!(asked.contains("plugin guard; its own words"), "{asked}");
    assert!(asked.contains("one\\n\\u001b[2Jtwo\\u{9b}31m"), "{asked}");
    assert!(!asked.contains(['\u{1b}', '\u{9b}']), "{asked:?}");
    assert!(!desk.folder.path().join("a.md").exists());
    person.send_line("y").unwrap();
    let (rest, code) = leave(person);
    assert_eq!(code, 0, "{rest}");
    assert_eq!(std::fs::read_to_string(desk.folder.path().join("a.md")).unwrap(), text);
}

#[test]
fn an_interrupt_closes_the_question_and_ends_the_run() {
    let config = entry("calc", "") + "[approval]\nask = [\"calc\"]\n";
    let desk = Desk::new(&config, &[calc("a", "1"), calc("b", "2")]);
    let mut person = desk.sit_down();
    person.exp_string(PROMPT).unwrap();
    person.send_control('c').unwrap();
    let (rest, code) = leave(person);
    assert_eq!(code, 130, "{rest}");
    assert!(rest.contains("the question is taken back"), "{rest}");
    assert!(!rest.contains("call b\r\n│"), "the next call is not asked about: {rest}");
}

#[test]
fn the_end_of_input_and_the_end_of_patience_are_a_no() {
    let config = entry("calc", "") + "[approval]\nask = [\"calc\"]\ntimeout_seconds = 2\n";
    let desk = Desk::new(&config, &[calc("a", "1"), calc("b", "2")]);
    let mut person = desk.sit_down();
    person.exp_string(PROMPT).unwrap();
    person.send_control('d').unwrap();
    let (rest, code) = leave(person);
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("needs an approval, and the input ended."), "{rest}");

    let desk = Desk::new(&config, &[calc("a", "1")]);
    let mut person = desk.sit_down();
    person.exp_string(PROMPT).unwrap();
    let (rest, code) = leave(person);
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("nobody answered within 2 s"), "{rest}");
}
