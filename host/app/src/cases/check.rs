//! What a call came to, held against what was expected.

use super::read::Expect;
use serde_json::Value;
use std::path::Path;

/// What a call came to.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub(super) text: String,
    pub(super) details: Option<Value>,
    pub(super) is_error: bool,
    pub(super) ended_by: Option<String>,
    pub(super) verdict: Option<&'static str>,
    pub(super) arguments: Option<Value>,
    pub(super) progress: Vec<String>,
    pub(super) receipt: Option<Value>,
}

/// What is not as expected, and whether the golden file was written.
pub(super) fn check(
    expect: &Expect,
    came: &Came,
    requests: &[String],
    bless: bool,
) -> (Vec<String>, bool) {
    let mut problems = Problems(Vec::new());
    problems.failure(expect, came);
    problems.text(expect, &came.text);
    problems.equal("verdict", expect.verdict.as_deref(), came.verdict.unwrap_or_default());
    if let Some(wanted) = &expect.arguments {
        problems.part("arguments", wanted, came.arguments.as_ref().unwrap_or(&Value::Null));
    }
    if let Some(wanted) = &expect.details {
        problems.part("details", wanted, came.details.as_ref().unwrap_or(&Value::Null));
    }
    problems.list("progress", expect.progress.as_deref(), &came.progress);
    problems.list("requests", expect.requests.as_deref(), requests);
    let receipt = came.receipt.as_ref().unwrap_or(&Value::Null);
    problems.refusals(&expect.refused, receipt);
    problems.figures(expect, receipt);
    let blessed = expect.golden.as_ref().is_some_and(|path| problems.golden(path, came, bless));
    (problems.0, blessed)
}

struct Problems(Vec<String>);

impl Problems {
    fn failure(&mut self, expect: &Expect, came: &Came) {
        let may_fail = expect.is_error.unwrap_or(expect.ended_by.is_some());
        if came.is_error != may_fail {
            self.0.push(match (came.is_error, &came.ended_by) {
                (true, Some(ended_by)) => format!("it failed ({ended_by}): {}", came.text),
                (true, None) => format!("it is an error result: {}", came.text),
                (false, _) => format!("it did not fail, and answered: {}", came.text),
            });
        }
        if let Some(wanted) = &expect.ended_by
            && came.is_error
        {
            self.equal("ended_by", Some(wanted), came.ended_by.as_deref().unwrap_or_default());
        }
    }

    fn text(&mut self, expect: &Expect, text: &str) {
        self.equal("text", expect.text.as_deref(), text);
        for part in expect.contains.iter().filter(|part| !text.contains(part.as_str())) {
            self.0.push(format!("the text lacks {part:?}: {text:?}"));
        }
        for part in expect.lacks.iter().filter(|part| text.contains(part.as_str())) {
            self.0.push(format!("the text holds {part:?}: {text:?}"));
        }
    }

    fn equal(&mut self, what: &str, wanted: Option<&str>, found: &str) {
        if let Some(wanted) = wanted
            && wanted != found
        {
            self.0.push(format!("{what} is {found:?}, expected {wanted:?}"));
        }
    }

    fn list(&mut self, what: &str, wanted: Option<&[String]>, found: &[String]) {
        if let Some(wanted) = wanted
            && wanted != found
        {
            self.0.push(format!("{what} are {found:?}, expected {wanted:?}"));
        }
    }

    fn part(&mut self, what: &str, wanted: &Value, found: &Value) {
        if !holds(found, wanted) {
            self.0.push(format!("{what} are {found}, expected {wanted}"));
        }
    }

    fn refusals(&mut self, wanted: &[String], receipt: &Value) {
        let list = receipt.get("refusals").and_then(Value::as_array);
        let refusals: Vec<&str> = list.into_iter().flatten().filter_map(Value::as_str).collect();
        for part in wanted {
            if !refusals.iter().any(|refusal| refusal.contains(part.as_str())) {
                self.0.push(format!("no refusal holds {part:?}: {refusals:?}"));
            }
        }
    }

    fn figures(&mut self, expect: &Expect, receipt: &Value) {
        for (path, most) in &expect.at_most {
            match receipt.pointer(&format!("/{}", path.replace('.', "/"))).and_then(Value::as_u64) {
                Some(found) if found <= *most => {}
                Some(found) => self.0.push(format!("{path} is {found}, at most {most} expected")),
                None => self.0.push(format!(
                    "the receipt has no figure `{path}`: {}",
                    paths("", receipt).join(", ")
                )),
            }
        }
    }

    /// True if the golden file was written.
    fn golden(&mut self, path: &Path, came: &Came, bless: bool) -> bool {
        let output = output(came);
        let kept = std::fs::read_to_string(path);
        if kept.as_ref().is_ok_and(|kept| *kept == output) {
            return false;
        }
        let shown = path.display();
        if !bless {
            self.0.push(match kept {
                Ok(kept) => format!(
                    "the output differs from {shown}; --bless takes it\n{}",
                    difference(&kept, &output)
                ),
                Err(problem) => format!("read {shown}: {problem}; --bless writes it"),
            });
            return false;
        }
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        match folder.and_then(|()| std::fs::write(path, output)) {
            Ok(()) => true,
            Err(problem) => {
                self.0.push(format!("write {shown}: {problem}"));
                false
            }
        }
    }
}

/// Whether a value has everything that another one has.
fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| holds(found, wanted))),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| holds(f, w))
        }
        // 2 and 2.0 are one number, and TOML tells them apart.
        (Value::Number(found), Value::Number(wanted)) => {
            found == wanted || found.as_f64() == wanted.as_f64()
        }
        (found, wanted) => found == wanted,
    }
}

/// All that a call shows, as a golden file holds it.
fn output(came: &Came) -> String {
    let mut output = String::new();
    if let Some(verdict) = came.verdict {
        output.push_str(&format!("verdict: {verdict}\n"));
    }
    match (&came.ended_by, came.is_error) {
        (Some(ended_by), _) => output.push_str(&format!("error ({ended_by}):\n")),
        (None, true) => output.push_str("error result:\n"),
        (None, false) => {}
    }
    output.push_str(&came.text);
    if !came.text.is_empty() && !came.text.ends_with('\n') {
        output.push('\n');
    }
    for (name, value) in [("arguments", &came.arguments), ("details", &came.details)] {
        if let Some(value) = value {
            // A JSON value has nothing that could fail.
            let json = serde_json::to_string_pretty(value).unwrap_or_default();
            output.push_str(&format!("\n{name}:\n{json}\n"));
        }
    }
    output
}

/// The first line that differs.
fn difference(kept: &str, output: &str) -> String {
    let (mut kept, mut output) = (kept.lines(), output.lines());
    let mut line = 1;
    loop {
        match (kept.next(), output.next()) {
            (None, None) => return "only the end of the last line differs".into(),
            (one, other) if one == other => line += 1,
            (one, other) => {
                let show = |text: Option<&str>| text.map_or("the end".into(), |t| format!("{t:?}"));
                return format!("line {line}: {} expected, {} found", show(one), show(other));
            }
        }
    }
}

/// The figures of a receipt by their paths.
fn paths(prefix: &str, receipt: &Value) -> Vec<String> {
    let Value::Object(fields) = receipt else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in fields {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Number(_) => found.push(path),
            _ => found.extend(paths(&path, value)),
        }
    }
    found
}
