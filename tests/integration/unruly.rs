//! A plugin that misbehaves costs its one call, and the error result says what happened.

use crate::cofferdam;
use cofferdam_tests::{plugin, run};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn unruly(tool: &str, arguments: &Value, limits: &[&str]) -> Value {
    let mut command = cofferdam();
    command.args(["plugin", "call"]).arg(plugin("unruly"));
    command.args([tool, &arguments.to_string(), "--json"]);
    for limit in limits {
        command.args(["--limit", limit]);
    }
    let ran = run(&mut command);
    assert_eq!(ran.code, 1, "{ran:?}");
    let said = ran.json();
    assert_eq!(said["is_error"], true, "{said}");
    said
}

#[test]
fn each_ends_as_an_error_result_that_names_its_end() {
    for (tool, arguments, limits, kind, says) in [
        ("crash", json!({"message": "on purpose"}), vec![], "trap", "on purpose"),
        ("spin", json!({}), vec!["wall_ms=300"], "time-limit", "wall_ms"),
        ("spin", json!({}), vec!["fuel=20_000_000"], "fuel-limit", "fuel"),
        ("spin", json!({}), vec!["fuel=off", "wall_ms=300"], "time-limit", "wall_ms"),
        ("hoard", json!({}), vec!["memory_mib=8"], "memory-limit", "8 MiB"),
        ("nap", json!({"ms": 100_000}), vec!["wall_ms=300"], "time-limit", "wall_ms"),
        ("chatter", json!({}), vec!["progress_count=10"], "output-limit", "progress"),
    ] {
        let began = Instant::now();
        let said = unruly(tool, &arguments, &limits);
        assert_eq!(said["failure"]["kind"], kind, "{tool} {limits:?}: {said}");
        let text = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(says), "{tool} {limits:?}: {text}");
        assert!(said["receipt"]["wall_us"].is_number(), "{said}");
        // Far below what the guest wanted; far above what any machine needs to stop it.
        assert!(began.elapsed() < Duration::from_secs(60), "{tool} took {:?}", began.elapsed());
    }
}

#[test]
fn a_limit_of_nothing_sensible_is_refused_with_the_nearest_one() {
    let mut command = cofferdam();
    command.args(["plugin", "call"]).arg(plugin("unruly")).args(["spin", "--limit", "wall=3"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("did you mean `wall_ms`?"), "{}", ran.err);
}
