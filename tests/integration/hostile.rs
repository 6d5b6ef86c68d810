//! The hostile kit from the outside: `cofferdam plugin call` on each file, and agent runs with all of
//! them at once.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry_of, says};
use cofferdam_tests::{Ran, root, run};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A row of the kit, see `tests/guests/hostile/README.md`.
struct Row(Value);

impl Row {
    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap()
    }

    fn expected(&self, field: &str) -> &str {
        self.0["expected"][field].as_str().unwrap_or_default()
    }

    fn path(&self) -> PathBuf {
        folder().join(self.text("file"))
    }

    /// `KEY=VALUE` pairs as entries of a map in an operator's file.
    fn limits(&self) -> String {
        let pairs = self.0["limits"].as_array().unwrap().iter().map(|pair| pair.as_str().unwrap());
        let entry = |pair: &str| match pair.split_once('=').unwrap() {
            (key, "off") => format!("{key} = false"),
            (key, value) => format!("{key} = {value}"),
        };
        pairs.map(entry).collect::<Vec<_>>().join(", ")
    }

    fn flags(&self) -> Vec<String> {
        let pairs = |flag: &str, field: &str| {
            let pairs = self.0[field].as_array().unwrap().iter();
            pairs
                .flat_map(|pair| [flag.to_owned(), pair.as_str().unwrap().to_owned()])
                .collect::<Vec<_>>()
        };
        [pairs("--limit", "limits"), pairs("--grant", "grants")].concat()
    }
}

fn folder() -> PathBuf {
    root().join("tests/guests/hostile")
}

fn kit() -> Vec<Row> {
    let kit = std::fs::read_to_string(folder().join("kit.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&kit).unwrap();
    rows.into_iter().map(Row).collect()
}

/// Nothing that is printed drives a terminal, and nothing is a panic of the host.
fn check_output(name: &str, ran: &Ran) {
    for text in [&ran.out, &ran.err] {
        let live = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(live), "{name}: {text:?}");
        assert!(!text.contains("RUST_BACKTRACE"), "{name}: {text}");
    }
}

#[test]
fn each_file_by_itself() {
    for row in kit() {
        let name = row.text("file");
        let mut command = cofferdam();
        command.args(["plugin", "call"]).arg(row.path());
        command.args([row.text("tool"), row.text("arguments"), "--json"]).args(row.flags());
        let ran = run(&mut command);
        check_output(name, &ran);
        match row.expected("at") {
            "call" => {
                let said = ran.json();
                assert_eq!((ran.code, &said["is_error"]), (1, &json!(true)), "{name}: {ran:?}");
                assert_eq!(said["failure"]["kind"], row.expected("ended_by"), "{name}: {said}");
                let message = said["failure"]["message"].as_str().unwrap();
                assert!(message.contains(row.expected("says")), "{name}: {message:.500}");
                // Arguments that the schema refuses never reach the plugin.
                let never_ran = row.expected("ended_by") == "invalid-arguments";
                assert_eq!(said["receipt"].is_null(), never_ran, "{name}: {said}");
            }
            "answer" => {
                let said = ran.json();
                assert_eq!((ran.code, &said["is_error"]), (0, &json!(false)), "{name}: {ran:?}");
                assert!(said["receipt"]["wall_us"].is_number(), "{name}: {said}");
            }
            _ => {
                assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{name}: {ran:?}");
                assert!(ran.err.starts_with("error: "), "{name}: {ran:?}");
            }
        }
    }
}

/// The file as a component in a folder of the test: an agent takes no text.
fn component(row: &Row, folder: &Path) -> PathBuf {
    let path = folder.join(row.text("file")).with_extension("wasm");
    std::fs::write(&path, wat::parse_file(row.path()).unwrap()).unwrap();
    path
}

/// A plugin that answers, under as many names as are needed.
fn good(folder: &Path, name: &str) -> String {
    let row = kit().into_iter().find(|row| row.text("file") == "memory-bomb-quiet.wat").unwrap();
    entry_of(name, &component(&row, folder), &format!("prefix = \"{name}_\""))
}

/// The one end event of a call.
fn end<'a>(events: &'a [Value], id: &str) -> &'a Value {
    let of = |event: &&Value| event["type"] == "tool_execution_end" && event["tool_call_id"] == id;
    let ends: Vec<&Value> = events.iter().filter(of).collect();
    assert_eq!(ends.len(), 1, "{id}: {ends:?}");
    ends[0]
}

/// All that are loaded and then misbehave, in one batch of one agent: each ends as its row says, and
/// afterwards a good call works.
#[test]
fn all_tools_in_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = good(folder.path(), "good");
    let mut batch = Vec::new();
    let rows: Vec<Row> =
        kit().into_iter().filter(|row| matches!(row.expected("at"), "call" | "answer")).collect();
    for (number, row) in rows.iter().enumerate() {
        let more = format!("prefix = \"t{number}_\"\nlimits = {{ {} }}", row.limits());
        config += &entry_of(row.text("file"), &component(row, folder.path()), &more);
        let arguments: Value = serde_json::from_str(row.text("arguments")).unwrap();
        batch.push((format!("c{number}"), format!("t{number}_{}", row.text("tool")), arguments));
    }
    let asked: Vec<(&str, &str, Value)> =
        batch.iter().map(|(id, tool, arguments)| (&**id, &**tool, arguments.clone())).collect();
    let script = json!([calls(&asked), calls(&[("last", "good_run", json!({}))]), says("done")]);
    let ran = Setup::new(&config, &script).run(&["--json", "--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    check_output("the run", &ran);
    let events = ran.json_lines();
    for (number, row) in rows.iter().enumerate() {
        let (name, end) = (row.text("file"), end(&events, &format!("c{number}")));
        match row.expected("at") {
            "call" => assert_eq!(end["ended_by"], row.expected("ended_by"), "{name}: {end}"),
            _ => assert_eq!(end["is_error"], false, "{name}: {end}"),
        }
        let has_run = end["ended_by"] != "invalid-arguments";
        assert_eq!(end["receipt"].is_object(), has_run, "{name}: {end}");
    }
    assert_eq!(end(&events, "last")["is_error"], false);
}

/// Hooks that misbehave cost the calls that they watch, and no other.
#[test]
fn all_hooks_in_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = good(folder.path(), "good");
    let mut batch = vec![("good".to_owned(), "good_run".to_owned())];
    let rows: Vec<Row> =
        kit().into_iter().filter(|row| matches!(row.expected("at"), "before" | "after")).collect();
    let mut hooks = String::new();
    for (number, row) in rows.iter().enumerate() {
        let tool = format!("h{number}");
        config += &good(folder.path(), &tool);
        let limits = format!("limits = {{ {} }}", row.limits());
        config += &entry_of(row.text("file"), &component(row, folder.path()), &limits);
        hooks += &format!(
            "[[hooks]]\nplugin = {:?}\non = [{:?}]\ntools = [\"{tool}_*\"]\n",
            row.text("file"),
            row.expected("at")
        );
        batch.push((tool.clone(), format!("{tool}_run")));
    }
    let asked: Vec<(&str, &str, Value)> =
        batch.iter().map(|(id, tool)| (&**id, &**tool, json!({}))).collect();
    let script = json!([calls(&asked), says("done")]);
    let ran = Setup::new(&(config + &hooks), &script).run(&["--json", "--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    check_output("the run", &ran);
    let events = ran.json_lines();
    assert_eq!(end(&events, "good")["is_error"], false);
    for (number, row) in rows.iter().enumerate() {
        let (name, end) = (row.text("file"), end(&events, &format!("h{number}")));
        // A person is asked, and there is none; a block is an error; a failure is one by default.
        let fine = matches!(row.expected("ended_by"), "proceed" | "rewrite" | "amend");
        assert_eq!(end["is_error"], !fine, "{name}: {end}");
        // Asking a person is a record of its own; the hook ran once.
        let ran = end["hooks"].as_array().unwrap().iter().filter(|hook| !hook["receipt"].is_null());
        assert_eq!(ran.count(), 1, "{name}: {end}");
    }
}
