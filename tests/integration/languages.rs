//! Plugins in JavaScript and Python: the same contract, the same wall.
//!
//! They are built where their toolchains can be had; where not, these tests say so and pass.

use crate::runs::{Setup, calls, end, entry, entry_of, says, text};
use cofferdam_tests::optional_plugins;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn tools_hooks_progress_and_limits_are_those_of_any_plugin() {
    let Some([words, stats]) = optional_plugins(["words", "stats"]) else { return };
    let config = [
        entry("files", "grants.files = [{ host = \".\", guest = \"/w\" }]"),
        entry_of("words", &words, "grants.config = { blank_lines = 0 }\nlimits = { progress_count = 3, compile_seconds = 900 }"),
        entry_of(
            "stats",
            &stats,
            "grants.config = { max_calls = 3 }\ngrants.kv = \"on\"\nlimits = { fuel = 500_000_000, compile_seconds = 900 }",
        ),
        "[[hooks]]\nplugin = \"words\"\non = [\"after\"]\ntools = [\"read_file\"]\n".to_owned(),
        "[[hooks]]\nplugin = \"stats\"\non = [\"before\"]\ntools = [\"count_words\"]\n".to_owned(),
    ]
    .concat();
    let numbers = json!([2, 4, 4, 4, 5, 5, 7, 9]);
    let script = json!([
        calls(&[
            ("count", "count_words", json!({"text": "a word is a word", "top": 1})),
            ("long", "count_words", json!({"text": "word ".repeat(30_000)})),
            ("flood", "count_words", json!({"text": "word ".repeat(80_000)})),
            ("over", "count_words", json!({"text": "one call too many"})),
            ("facts", "describe_numbers", json!({"numbers": numbers, "confidence": 0.9})),
            ("repaired", "describe_numbers", json!({"numbers": "1, 2; 3"})),
            ("nonsense", "describe_numbers", json!({"numbers": "one, two"})),
            ("rejected", "describe_numbers", json!({"numbers": [1e308, 1e308]})),
            (
                "burn",
                "describe_numbers",
                json!({"numbers": numbers, "confidence": 0.9, "resamples": 100_000})
            ),
            ("tidied", "read_file", json!({"path": "log.txt", "raw": true})),
        ]),
        calls(&[("after", "describe_numbers", json!({"numbers": [1, 2]}))]),
        says("done")
    ]);
    let setup = Setup::new(&config, &script);
    std::fs::write(setup.path("log.txt"), "10 %\r100 %\n\n\n\n\x1b[31mfailed\x1b[0m  \n").unwrap();
    let events = setup.events();
    let of = |id: &str| end(&events, id);

    let counted = of("count");
    assert_eq!(counted["result"]["details"]["words"], 5, "{counted}");
    assert!(text(counted).contains("most frequent: a 2"), "{counted}");
    assert!(counted["receipt"]["fuel"].as_u64().unwrap() > 100_000, "{counted}");
    assert!(counted["receipt"]["memory_peak_bytes"].as_u64().unwrap() > 1 << 20, "{counted}");
    assert_eq!(
        updates(&events, "long"),
        ["counted 65539 of 150000 characters", "counted 131079 of 150000 characters"]
    );
    assert_eq!(of("long")["result"]["details"]["words"], 30_000);
    assert_eq!(of("flood")["ended_by"], "output-limit", "{}", of("flood"));
    assert_eq!(updates(&events, "flood").len(), 3);
    assert_eq!(of("over")["hooks"][0]["action"], "blocked", "{}", of("over"));
    assert!(text(of("over")).contains("may be called 3 times"), "{}", of("over"));

    let facts = &of("facts")["result"]["details"];
    assert_eq!((&facts["mean"], &facts["median"]), (&json!(5.0), &json!(4.5)), "{facts}");
    assert!(facts["mean_from"].as_f64() < Some(5.0) && facts["mean_to"].as_f64() > Some(5.0));
    assert_eq!(of("repaired")["result"]["details"]["sum"], 6.0);
    assert!(text(of("nonsense")).contains("numbers"), "{}", of("nonsense"));
    assert!(of("nonsense")["receipt"].is_null(), "validation comes before the call");
    assert_eq!(of("rejected")["ended_by"], "failure", "{}", of("rejected"));
    assert!(text(of("rejected")).contains("too large"), "{}", of("rejected"));
    assert_eq!(of("burn")["ended_by"], "fuel-limit", "{}", of("burn"));
    assert_eq!(of("after")["is_error"], false, "{}", of("after"));

    assert_eq!(of("tidied")["hooks"][0]["action"], "amended", "{}", of("tidied"));
    assert_eq!(text(of("tidied")).trim_end(), "100 %\nfailed", "{}", of("tidied"));
}

/// The texts of a call's progress.
fn updates<'a>(events: &'a [Value], id: &str) -> Vec<&'a str> {
    events
        .iter()
        .filter(|e| e["type"] == "tool_execution_update" && e["tool_call_id"] == id)
        .map(|e| e["partial_result"]["content"][0]["text"].as_str().unwrap())
        .collect()
}

#[test]
fn an_abort_gives_a_guest_that_asks_the_time_to_end_tidily() {
    let Some([stats]) = optional_plugins(["stats"]) else { return };
    let numbers: Vec<u32> = (0..20_000).collect();
    let arguments = json!({"numbers": numbers, "confidence": 0.9, "resamples": 100_000});
    let setup = Setup::new(
        &entry_of("stats", &stats, "limits = { grace_ms = 60_000, compile_seconds = 900 }"),
        &json!([calls(&[("long", "describe_numbers", arguments)]), says("done")]),
    );
    let mut child = setup
        .command(&["--json", "--allow-unpinned"])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let first = events.iter().all(|e: &Value| e["type"] != "tool_execution_update");
        if first && event["type"] == "tool_execution_update" {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        events.push(event);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let end = end(&events, "long");
    assert!(text(end).ends_with("Cancelled before the interval was known."), "{end}");
    assert_eq!(end["result"]["details"]["count"], 20_000, "{end}");
}
