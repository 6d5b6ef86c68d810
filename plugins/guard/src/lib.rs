//! Keeps writes inside a pattern: what is allowed goes on, what is to be asked goes to a person,
//! the rest is blocked with a reason that says what would work.
//!
//! `path` reads a path as the file system will, `policy` decides on it, and this file finds the
//! paths in the arguments.

mod path;
mod policy;

use cofferdam_plugin::{HookedCall, Result, Value, Verdict, config, export};

use policy::{Policy, Ruling};

/// Arguments that hold a path, unless `path_fields` says otherwise.
const PATH_FIELDS: [&str; 6] = ["path", "file", "file_path", "filename", "destination", "target"];

fn guard(call: &HookedCall) -> Result<Verdict> {
    let fields = config::list("path_fields").unwrap_or(PATH_FIELDS.map(str::to_owned).to_vec());
    let policy = Policy::configured()?;
    let mut paths = Vec::new();
    collect(&call.arguments, &fields, &mut paths);
    if paths.is_empty() {
        let message = format!(
            "None of the arguments is known to be a path ({}), so no rule applies.",
            fields.join(", ")
        );
        return Ok(Verdict::ask(format!("Allow {}?", call.tool), message));
    }
    let mut asked = Vec::new();
    for path in &paths {
        match policy.rule(path) {
            Ruling::Allowed => {}
            Ruling::Asked(path) => asked.push(path),
            Ruling::Blocked(reason) => return Ok(Verdict::block(reason)),
        }
    }
    if asked.is_empty() {
        return Ok(Verdict::Proceed);
    }
    let list = asked.join(", ");
    Ok(Verdict::ask(format!("Let {} change {list}?", call.tool), format!("The call names {list}.")))
}

/// The texts of all path fields, however deep: some tools take a list of edits.
fn collect(value: &Value, fields: &[String], paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::String(path) if fields.contains(name) => paths.push(path.clone()),
                    Value::Array(items) if fields.contains(name) => {
                        paths.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                        collect(value, fields, paths);
                    }
                    value => collect(value, fields, paths),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, fields, paths)),
        _ => {}
    }
}

export! { before: guard }

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_plugin::{json, testing};

    fn check(settings: &[(&str, &str)], arguments: Value, expected: &str) {
        let mut host = testing::host();
        for (key, value) in settings {
            host = host.config(*key, *value);
        }
        let verdict = guard(&HookedCall::new("write_file", arguments));
        let text = match verdict {
            Ok(Verdict::Proceed) => "proceed".to_owned(),
            Ok(Verdict::Ask { title, .. }) => title,
            Ok(Verdict::Block { reason, .. }) => reason,
            other => format!("{other:?}"),
        };
        assert_eq!(text, expected);
    }

    const RULES: [(&str, &str); 2] = [("allow", "notes/**, *.md"), ("ask", "src/**")];

    #[test]
    fn the_three_verdicts() {
        check(&RULES, json!({ "path": "notes/a/b.txt" }), "proceed");
        check(&RULES, json!({ "path": "/workspace/README.md" }), "proceed");
        check(&RULES, json!({ "path": "src/lib.rs" }), "Let write_file change src/lib.rs?");
        check(
            &RULES,
            json!({ "path": "Cargo.toml" }),
            "`Cargo.toml` may not be changed. Allowed: notes/**, *.md. A person is asked for: src/**.",
        );
    }

    #[test]
    fn the_strictest_path_counts() {
        let edits = json!({ "edits": [{ "path": "notes/a" }, { "path": "../b" }] });
        check(&RULES, edits, "`../b` leads out of the directory; write a path below it.");
        check(&RULES, json!({ "path": ["notes/a", "src/b"] }), "Let write_file change src/b?");
    }

    #[test]
    fn without_rules_everything_is_asked() {
        check(&[], json!({ "path": "a" }), "Let write_file change a?");
        check(&[], json!({ "count": 3 }), "Allow write_file?");
        check(
            &[("path_fields", "where")],
            json!({ "where": "../a" }),
            "`../a` leads out of the directory; write a path below it.",
        );
    }

    #[test]
    fn a_bad_pattern_fails_the_hook() {
        let _host = testing::host().config("allow", "a[");
        let failure = guard(&HookedCall::new("write_file", json!({ "path": "a" }))).unwrap_err();
        assert!(failure.message.starts_with("pattern `a[` in `allow`"), "{failure}");
    }
}
