//! Text from plugins and models never drives a terminal, by whichever way it comes.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, root, run};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

/// A title for the window, a clipboard, colours in 7 and 8 bits, text turned round, hidden and
/// repeated in tags, a lone carriage return.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}]52;c;aGk=\u{7}\u{1b}[31m\u{9b}32m\u{202e}txt.exe\u{202c}\
                    \u{200b}\u{2066}\u{e0041}\u{feff}\u{2028}\r\u{8}\u{7f}end";

/// A guest that shows and says what a file holds.
fn probe() -> PathBuf {
    root().join("host/app/src/doctor/probes/probe.wat")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evil"), EVIL).unwrap();
    folder
}

/// That nothing on either stream is more than text and ends of lines.
fn pure(ran: &Ran, what: &str) {
    for stream in [&ran.out, &ran.err] {
        let odd = |c: char| c != '\n' && cofferdam_sandbox::text::is_unseen(c);
        let found: Vec<char> = stream.chars().filter(|c| odd(*c)).collect();
        assert!(found.is_empty(), "{what}: {found:?} in {stream:?}");
    }
    let shown = ran.out.clone() + &ran.err;
    assert!(shown.contains("1b"), "{what}: the escape is written out, not left out: {ran:?}");
}

fn calls(blocks: Value) -> Value {
    json!([
        {"content": blocks, "stop_reason": "tool_use"},
        {"content": [{"type": "text", "text": format!("${{results.c1}} {EVIL}")}], "stop_reason": "stop"},
    ])
}

/// A run in which everything that can be evil is.
fn agent_run(script: &Value, more: &[&str]) -> Ran {
    let folder = folder();
    let config = format!(
        "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n\
         [[plugins]]\nname = \"files\"\npath = {:?}\ngrants.files = [{{ host = \".\", guest = \"/workspace\" }}]\n\
         [[plugins]]\nname = \"guard\"\npath = {:?}\ngrants.config = {{ allow = \"**\", path_fields = \"pattern\" }}\n\
         [[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"grep\"]\n",
        plugin("files").display().to_string(),
        plugin("guard").display().to_string()
    );
    std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
    std::fs::write(folder.path().join("answers.json"), script.to_string()).unwrap();
    let mut command = cofferdam();
    command.args(["run", "--no-session", "--allow-unpinned", "--config"]);
    command.arg(folder.path().join("cofferdam.toml"));
    run(command.args(more).arg(format!("please {EVIL}")))
}

#[test]
fn results_answers_names_and_hooks_of_a_run() {
    let script = calls(json!([
        {"type": "tool_call", "id": "c1", "name": "read_file", "arguments": {"path": "/workspace/evil", "raw": true}},
        {"type": "tool_call", "id": format!("c2{EVIL}"), "name": format!("no{EVIL}"), "arguments": {EVIL: EVIL}},
        {"type": "tool_call", "id": "c3", "name": "grep", "arguments": {"pattern": EVIL}},
        {"type": "tool_call", "id": "c4", "name": "read_file", "arguments": {"path": EVIL}},
    ]));
    for more in [&[][..], &["--print"], &["--json"]] {
        let ran = agent_run(&script, more);
        assert_eq!(ran.code, 0, "{ran:?}");
        pure(&ran, &format!("run {more:?}"));
        if more == ["--json"] {
            let told = ran.json_lines().iter().any(|event| event.to_string().contains("owned"));
            assert!(told, "programs get the text as it is: {ran:?}");
        }
    }
    let fails = json!([{"content": [], "stop_reason": "error", "error_message": EVIL}]);
    let ran = agent_run(&fails, &[]);
    assert_eq!(ran.code, 4, "{ran:?}");
    pure(&ran, "a model's error");
}

#[test]
fn results_progress_and_standard_error_of_a_call() {
    let folder = folder();
    let grant = format!("files={}:/work:read-only", folder.path().display());
    for (task, code) in [("16 0 0|evil", 0), ("20 0 0|evil", 1)] {
        for more in [&[][..], &["--json"]] {
            let mut command = cofferdam();
            command.args(["plugin", "call"]).arg(probe()).arg("run");
            command.arg(json!({"task": task}).to_string()).args(["--grant", &grant]).args(more);
            let ran = run(&mut command);
            assert_eq!(ran.code, code, "{ran:?}");
            pure(&ran, task);
        }
    }
}

#[test]
fn what_a_file_says_of_itself_and_mistakes_on_the_command_line() {
    let folder = folder();
    let mut bytes = std::fs::read(plugin("calc")).unwrap();
    for section in ["description", "authors", "version", "homepage"] {
        // A custom section: zero, its size, the size of its name, its name, its text.
        let size = 1 + section.len() + EVIL.len();
        assert!(size < 128, "one byte holds the size");
        bytes.extend([0, u8::try_from(size).unwrap(), u8::try_from(section.len()).unwrap()]);
        bytes.extend(section.bytes().chain(EVIL.bytes()));
    }
    let file = folder.path().join(format!("odd{}.wasm", '\u{202e}'));
    std::fs::write(&file, bytes).unwrap();
    for more in [&[][..], &["--json"]] {
        let ran = run(cofferdam().args(["plugin", "inspect"]).arg(&file).args(more));
        assert_eq!(ran.code, 0, "{ran:?}");
        pure(&ran, "inspect");
    }
    let gone = folder.path().join(format!("gone{EVIL}.wasm"));
    for command in ["inspect", "call"] {
        let ran = run(cofferdam().args(["plugin", command]).arg(&gone).args(match command {
            "call" => &["any"][..],
            _ => &[],
        }));
        assert_eq!(ran.code, 2, "{ran:?}");
        pure(&ran, command);
    }
    let ran = run(cofferdam().args(["plugin", "call"]).arg(plugin("calc")).arg(EVIL));
    pure(&ran, "a tool's name");
}

#[test]
fn a_tool_with_an_evil_name() {
    let folder = folder();
    let file = folder.path().join("evil.wat");
    let text = std::fs::read_to_string(probe()).unwrap();
    std::fs::write(&file, text.replace("\"run\" \"A tool.\"", "\"\\1b[J\" \"A tool.\"")).unwrap();
    let ran = run(cofferdam().args(["plugin", "call"]).arg(&file).arg("any"));
    assert_eq!(ran.code, 2, "{ran:?}");
    pure(&ran, "a refused tool");
}

/// The one thing that may drive a terminal is a colour of the host's own.
#[cfg(unix)]
#[test]
fn a_limit_that_was_reached_is_red_and_a_plugins_colours_are_not_live() {
    let folder = folder();
    let mut command = cofferdam();
    command.args(["plugin", "call"]).arg(probe()).arg("run");
    command.arg(json!({"task": "20 0 0|evil"}).to_string());
    command.args(["--grant", &format!("files={}:/work:read-only", folder.path().display())]);
    command.env_remove("NO_COLOR");
    let mut person = rexpect::session::spawn_command(command, Some(120_000)).unwrap();
    let shown = person.exp_eof().unwrap();
    let ours = shown.replace("\u{1b}[31m", "<").replace("\u{1b}[0m", ">");
    assert!(ours.contains('<') && ours.contains('>'), "the end of the call is red: {shown:?}");
    let live = ours.chars().filter(|c| !matches!(c, '\r' | '\n'));
    let live: String = live.filter(|c| cofferdam_sandbox::text::is_unseen(*c)).collect();
    assert!(live.is_empty(), "{live:?} in {shown:?}");
    assert!(shown.contains("\\u{1b}[31m"), "the plugin's own red is written out: {shown:?}");
}
