//! `cofferdam doctor`, and settings of the operator's file as they reach a call.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, root, run};
use serde_json::{Value, json};
use std::path::Path;

fn doctor(more: &[&str]) -> Ran {
    run(cofferdam().arg("doctor").args(more).current_dir(tempfile::tempdir().unwrap().path()))
}

fn rows(report: &Value) -> Vec<&Value> {
    let sections = report["sections"].as_array().unwrap();
    sections.iter().flat_map(|section| section["rows"].as_array().unwrap()).collect()
}

#[test]
fn everything_holds_on_this_machine() {
    let ran = doctor(&["--json"]);
    let report = ran.json();
    let failed: Vec<&Value> =
        rows(&report).into_iter().filter(|row| row["verdict"] == "failed").collect();
    assert_eq!((ran.code, &report["sound"]), (0, &json!(true)), "{failed:#?}");
    for key in cofferdam_sandbox::Limits::KEYS {
        let row = rows(&report).into_iter().find(|row| row["subject"] == *key);
        let row = row.unwrap_or_else(|| panic!("{key} has no row"));
        assert!(row["value"].is_string() && row["default"].is_string(), "{row}");
    }
}

/// There need not be a file: what is set above it holds all the same, and so do mistakes in it.
#[test]
fn what_is_set_without_a_file_is_not_passed_over() {
    let ran = doctor(&["--quick", "--set", "sandbox.slots=0"]);
    assert_eq!((ran.code, ran.out.contains("sandbox.slots")), (1, true), "{ran:?}");
    let folder = tempfile::tempdir().unwrap();
    let list = |dir: &str| {
        let mut command = cofferdam();
        command.env("COFFERDAM_SESSION_DIR", folder.path().join(dir));
        run(command.args(["session", "list"]).current_dir(folder.path()))
    };
    std::fs::write(folder.path().join("file"), "").unwrap();
    let (there, file) = (list("sessions"), list("file"));
    assert_eq!(there.code, 0, "{there:?}");
    assert_ne!(file.code, 0, "{file:?}");
}

#[test]
fn a_plugin_that_is_not_what_was_pinned_fails_with_the_line_that_would_pin_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let entry = |pin: &str| {
        let path = plugin("calc").display().to_string();
        format!(
            "[[plugins]]\nname = \"calc\"\npath = {path:?}\n{pin}\nlimits = {{ wall_ms = 1234 }}\n"
        )
    };
    let look = |text: &str| {
        std::fs::write(&config, text).unwrap();
        doctor(&["--quick", "--config", config.to_str().unwrap()])
    };
    let unpinned = look(&entry(""));
    assert_eq!(unpinned.code, 1, "{unpinned:?}");
    let line = unpinned.out.split("sha256 = \"").nth(1).and_then(|rest| rest.get(..64)).unwrap();
    let pinned = look(&entry(&format!("sha256 = \"{line}\"")));
    assert_eq!(pinned.code, 0, "{pinned:?}");
    assert!(
        pinned.out.contains("tools calc") && pinned.out.contains("wall_ms = 1234"),
        "{pinned:?}"
    );
    let swapped = look(&entry(&format!("sha256 = \"{}\"", line.replace(&line[..2], "00"))));
    assert_eq!(swapped.code, 1, "{swapped:?}");
    assert!(swapped.out.contains(&format!("sha256 = \"{line}\"")), "{swapped:?}");
    let mistaken = look("[agnt]\nx = 1\n");
    assert_eq!(mistaken.code, 1, "{mistaken:?}");
    assert!(mistaken.out.contains("agnt"), "{mistaken:?}");
}

/// What a plugin keeps lies where the operator says, and outlives the process.
#[test]
fn stored_values_lie_where_the_operator_says() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let probe = root().join("host/app/src/doctor/probes/probe.wat");
    let call = |task: &str, file: &Path| {
        let mut command = cofferdam();
        command.args(["plugin", "call"]).arg(&probe).arg("run");
        let ran = run(command.arg(json!({"task": task}).to_string()).arg("--config").arg(file));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let entry = format!(
        "[[plugins]]\nname = \"probe\"\npath = {:?}\ngrants.kv = 1\n",
        probe.display().to_string()
    );
    for (setting, place) in
        [("", ".cofferdam/state"), ("[sandbox]\nstate_dir = \"kept\"\n", "kept")]
    {
        std::fs::write(&config, format!("{setting}{entry}")).unwrap();
        assert_eq!(call("14 0 0|", &config), "none");
        assert_eq!(call("13 77 0|", &config), "written");
        assert_eq!(call("14 0 0|", &config), "77");
        assert_eq!(call("13 2000 0|", &config), "over-quota");
        assert!(folder.path().join(place).is_dir(), "{place}");
    }
}
