//! `cofferdam run`: whole runs on the scripted model.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, root, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with an operator's file and a script.
pub(crate) struct Setup {
    folder: TempDir,
}

impl Setup {
    pub(crate) fn new(config: &str, script: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n";
        std::fs::write(folder.path().join("cofferdam.toml"), format!("{model}{config}")).unwrap();
        std::fs::write(folder.path().join("answers.json"), script.to_string()).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let mut command = cofferdam();
        command.arg("run").arg("--config").arg(self.path("cofferdam.toml")).args(more).arg("go");
        command
    }

    pub(crate) fn run(&self, more: &[&str]) -> Ran {
        run(&mut self.command(more))
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let ran = self.run(&["--json", "--allow-unpinned"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json_lines()
    }
}

/// The entry of a sample plugin.
pub(crate) fn entry(name: &str, more: &str) -> String {
    entry_of(name, &plugin(name), more)
}

pub(crate) fn entry_of(name: &str, path: &Path, more: &str) -> String {
    format!("[[plugins]]\nname = {name:?}\npath = {:?}\n{more}\n", path.display().to_string())
}

pub(crate) fn calls(calls: &[(&str, &str, Value)]) -> Value {
    let block = |(id, name, arguments): &(&str, &str, Value)| json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments});
    json!({"content": calls.iter().map(block).collect::<Vec<_>>(), "stop_reason": "tool_use"})
}

pub(crate) fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "stop_reason": "stop"})
}

/// The end event of a call.
pub(crate) fn end<'a>(events: &'a [Value], id: &str) -> &'a Value {
    events
        .iter()
        .find(|event| event["type"] == "tool_execution_end" && event["tool_call_id"] == id)
        .unwrap_or_else(|| panic!("{id} has no end event"))
}

pub(crate) fn text(end: &Value) -> &str {
    end["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn the_demo_runs_to_its_answer_past_a_trap_a_loop_and_a_block() {
    std::fs::create_dir_all(root().join("target/demo")).unwrap();
    let mut command = cofferdam();
    command.args(["run", "--json", "--allow-unpinned", "--config"]);
    let ran = run(command.arg(root().join("tests/demo/cofferdam.toml")).arg("go"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.json_lines();
    assert_eq!(events[0]["type"], "agent_start");
    assert_eq!(events.last().unwrap()["type"], "agent_end");
    for (id, ended_by) in [("c4", json!("trap")), ("c5", json!("time-limit")), ("c1", Value::Null)]
    {
        assert_eq!(end(&events, id)["ended_by"], ended_by, "{id}: {}", end(&events, id));
    }
    assert!(text(end(&events, "c4")).contains("this plugin panics on purpose"));
    assert_eq!(end(&events, "c6")["is_error"], true);
    assert_eq!(end(&events, "c6")["hooks"][0]["action"], "blocked");
    for id in ["c1", "c2", "c3", "c7", "c8"] {
        let end = end(&events, id);
        assert_eq!(end["is_error"], false, "{end}");
        assert!(end["receipt"]["fuel"].as_u64().unwrap() > 0, "{end}");
        assert!(end["duration_ms"].as_f64().unwrap() > 0.0, "{end}");
    }
    let notes = std::fs::read_to_string(root().join("target/demo/notes/interfaces.md")).unwrap();
    assert!(notes.contains("before-tool-call"), "{notes}");
}

#[test]
fn end_events_follow_completion_and_the_transcript_follows_the_source() {
    let script = json!([
        calls(&[
            ("slow", "nap", json!({"ms": 300})),
            ("fast", "calc", json!({"expressions": ["1+1"]}))
        ]),
        says("done")
    ]);
    let events = Setup::new(&(entry("unruly", "") + &entry("calc", "")), &script).events();
    let ids = |kind: &str| -> Vec<&Value> {
        events.iter().filter(|e| e["type"] == kind).map(|e| &e["tool_call_id"]).collect()
    };
    assert_eq!(ids("tool_execution_start"), ["slow", "fast"]);
    assert_eq!(ids("tool_execution_end"), ["fast", "slow"]);
    let turn_end = events.iter().find(|e| e["type"] == "turn_end").unwrap();
    let results: Vec<&Value> =
        turn_end["tool_results"].as_array().unwrap().iter().map(|m| &m["tool_call_id"]).collect();
    assert_eq!(results, ["slow", "fast"]);
}

#[test]
fn print_gives_the_answer_alone() {
    let setup = Setup::new(
        &entry("calc", ""),
        &json!([
            calls(&[("c1", "calc", json!({"expressions": ["6*7"]}))]),
            says("It is: ${results.c1.details.results.0.exact}")
        ]),
    );
    let ran = setup.run(&["--print", "--allow-unpinned"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "It is: 42\n"), "{ran:?}");
    assert!(ran.err.contains("calc c1"), "{ran:?}");
}

#[test]
fn one_tool_name_in_two_plugins_is_refused_with_the_line_that_settles_it() {
    let twice = entry("calc", "") + &entry_of("calculator", &plugin("calc"), "");
    let ran = Setup::new(&twice, &json!([says("hi")])).run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    for want in ["`calc`", "`calculator`", "prefix = \"", "tools = ["] {
        assert!(ran.err.contains(want), "{want}: {}", ran.err);
    }
    let settled =
        entry("calc", "") + &entry_of("calculator", &plugin("calc"), "prefix = \"other_\"");
    let script =
        json!([calls(&[("c1", "other_calc", json!({"expressions": ["2+2"]}))]), says("ok")]);
    let events = Setup::new(&settled, &script).events();
    assert_eq!(end(&events, "c1")["is_error"], false);
}

#[test]
fn only_what_is_pinned_or_allowed_unpinned_is_loaded() {
    let script = json!([says("hi")]);
    let ran = Setup::new(&entry("calc", ""), &script).run(&[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let pin = ran.err.split("sha256 = \"").nth(1).and_then(|rest| rest.get(..64)).unwrap();
    let pinned = entry("calc", &format!("sha256 = \"{pin}\""));
    let ran = Setup::new(&pinned, &script).run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = Setup::new(&pinned.replace(&pin[..4], "0000"), &script).run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("SHA-256") && ran.err.contains(&pin[4..]), "{}", ran.err);
}

#[test]
fn tools_that_are_not_offered_do_not_run() {
    let script =
        json!([calls(&[("c1", "crash", json!({})), ("c2", "nap", json!({"ms": 1}))]), says("ok")]);
    let events = Setup::new(&entry("unruly", "tools = [\"nap\"]"), &script).events();
    assert!(text(end(&events, "c1")).contains("crash"));
    assert!(end(&events, "c1")["receipt"].is_null());
    assert_eq!(end(&events, "c2")["is_error"], false);
}

#[test]
fn redact_masks_what_a_tool_returns_before_anybody_sees_it() {
    let config = entry("files", "grants.files = [{ host = \".\", guest = \"/workspace\" }]")
        + &entry("redact", "")
        + "[[hooks]]\nplugin = \"redact\"\non = [\"after\"]\n";
    let script = json!([calls(&[("c1", "read_file", json!({"path": "key.txt"}))]), says("ok")]);
    let setup = Setup::new(&config, &script);
    std::fs::write(setup.path("key.txt"), "id AKIAIOSFODNN7EXAMPLE\n").unwrap();
    let ran = setup.run(&["--json", "--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let events = ran.json_lines();
    assert_eq!(end(&events, "c1")["hooks"][0]["action"], "amended");
    let seen = end(&events, "c1")["result"].to_string();
    assert!(!seen.contains("AKIAIOSFODNN7EXAMPLE"), "{seen}");
    for message in events.iter().filter(|event| event["type"] == "message_end") {
        assert!(!message.to_string().contains("AKIAIOSFODNN7EXAMPLE"), "{message}");
    }
}

#[test]
fn a_question_without_a_person_is_a_no() {
    let config = entry("calc", "") + "[approval]\nask = [\"calc\"]\n";
    let script = json!([calls(&[("c1", "calc", json!({"expressions": ["1"]}))]), says("ok")]);
    let events = Setup::new(&config, &script).events();
    assert_eq!(end(&events, "c1")["is_error"], true);
    assert!(end(&events, "c1")["receipt"].is_null(), "the call never ran");
}

#[test]
fn each_way_to_end_has_a_code_of_its_own() {
    let fails = json!([{"content": [], "stop_reason": "error", "error_message": "no such luck"}]);
    let again = calls(&[("c1", "calc", json!({"expressions": ["1"]}))]);
    let goes_on = json!([again, again, again]);
    let calc = entry("calc", "");
    for (config, script, code, says) in [
        ("", json!([says("hi")]), 0, ""),
        ("", fails, 4, "no such luck"),
        (&format!("{calc}[agent]\nmax_turns = 2\n"), goes_on, 5, "after 2 turns"),
        ("[[plugins]]\nname = \"a\"\npath = \"b.wasm\"\n", json!([says("hi")]), 2, "b.wasm"),
        ("[agent]\nmax_turn = 2\n", json!([says("hi")]), 3, "max_turn"),
    ] {
        let setup = Setup::new(config, &script);
        for way in [&[][..], &["--print"], &["--json"]] {
            let ran = setup.run(&[&["--allow-unpinned"][..], way].concat());
            assert_eq!(ran.code, code, "{config} {way:?}: {ran:?}");
            assert!(ran.err.contains(says), "{config} {way:?}: {ran:?}");
        }
    }
}

#[test]
fn mistakes_in_the_operators_file_end_before_anything_runs() {
    for (config, want) in [
        ("[agent]\nsystem_promt = \"x\"\n", "system_promt"),
        ("[[hooks]]\nplugin = \"ghost\"\non = [\"before\"]\n", "ghost"),
        ("[model]\nname = \"x\"\n", "model"),
    ] {
        let ran = Setup::new(config, &json!([says("hi")])).run(&["--allow-unpinned"]);
        assert_eq!(ran.code, 3, "{config}: {ran:?}");
        assert!(ran.err.contains(want), "{config}: {}", ran.err);
    }
    let ran = run(cofferdam().args(["run", "--config", "no/such.toml", "go"]));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("no/such.toml"), "{}", ran.err);
}

#[test]
fn a_hook_that_its_plugin_does_not_have_is_refused() {
    let config = entry("calc", "") + "[[hooks]]\nplugin = \"calc\"\non = [\"before\"]\n";
    let ran = Setup::new(&config, &json!([says("hi")])).run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("calc") && ran.err.contains("before"), "{}", ran.err);
}
