//! The file of cases.

use super::script::Exchange;
use cofferdam_sandbox::{Grants, Limits};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// The cases, in the order in which they run.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// One call and what it must come to. It names one of `tool`, `before` and `after`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What is tested; unique.
    pub name: String,
    /// The tool that is called.
    pub tool: Option<String>,
    /// The tool before whose call the plugin's hook is asked.
    pub before: Option<String>,
    /// The tool after whose call the plugin's hook is asked.
    pub after: Option<String>,
    /// The arguments of the call.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// For `after`: what the call came to.
    #[serde(default)]
    pub result: Given,
    /// What the plugin may touch, as in the operator's file; nothing by default.
    #[serde(default)]
    pub grants: Grants,
    /// Its brakes, where they differ from the defaults; compiling gets 15 minutes at least.
    #[serde(default)]
    pub limits: Limits,
    /// What HTTP requests are answered with.
    #[serde(default)]
    pub http: Vec<Exchange>,
    /// What the call must come to.
    #[serde(default)]
    pub expect: Expect,
}

/// What a hooked call came to.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Given {
    /// The text of its result.
    pub text: String,
    /// Its details.
    pub details: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
    /// What ended it, if the tool did not answer.
    pub ended_by: Option<String>,
}

/// What a call must come to. What is not named is not checked, save that a call which is not
/// expected to fail must not.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The whole text of the result, of a block's reason, or of a question.
    pub text: Option<String>,
    /// Parts of that text.
    pub contains: Vec<String>,
    /// What that text must not hold.
    pub lacks: Vec<String>,
    /// Parts of the details: an object's other keys are not looked at.
    pub details: Option<Value>,
    /// Whether it is an error result.
    pub is_error: Option<bool>,
    /// What ended the call: `failure`, `trap`, `time-limit`, `invalid-arguments` and so on.
    pub ended_by: Option<String>,
    /// For hooks before calls: `proceed`, `rewrite`, `block` or `ask`.
    pub verdict: Option<String>,
    /// For a rewrite: the new arguments.
    pub arguments: Option<Value>,
    /// All progress, a text for each report.
    pub progress: Option<Vec<String>>,
    /// Parts of what the host refused, each of another refusal or of the same.
    pub refused: Vec<String>,
    /// The HTTP requests that were sent, in order, such as `GET https://api.example.com/v1`.
    pub requests: Option<Vec<String>>,
    /// The most that figures of the receipt may be, such as `{ fuel = 1_000_000 }`. A figure within
    /// a part of the receipt has a path: `"host_calls.http.bytes"`.
    pub at_most: BTreeMap<String, u64>,
    /// A file with all of the output. `--bless` writes it.
    pub golden: Option<PathBuf>,
}

/// A file of cases that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// It cannot be read.
    #[error("read the cases {}: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// It is no file of cases.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and what, with the line.
        problem: Box<toml::de::Error>,
    },
    /// A case makes no sense.
    #[error("{}: the case `{case}`: {problem}", path.display())]
    Meaning {
        /// The file.
        path: PathBuf,
        /// The case.
        case: String,
        /// What is wrong, and what would do.
        problem: String,
    },
}

impl Cases {
    /// Reads a file of cases; its relative paths become relative to the file's folder.
    pub fn read(path: &Path) -> Result<Self, CasesError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| CasesError::Read { path: path.into(), problem })?;
        Self::parse(&text, path)
    }

    /// Reads cases from text that came from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, CasesError> {
        let mut cases: Self = toml::from_str(text).map_err(|problem| CasesError::Format {
            path: path.into(),
            problem: Box::new(problem),
        })?;
        for (at, case) in cases.cases.iter().enumerate() {
            case.check(&cases.cases[..at]).map_err(|problem| CasesError::Meaning {
                path: path.into(),
                case: case.name.clone(),
                problem,
            })?;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for case in &mut cases.cases {
            case.grants = std::mem::take(&mut case.grants).relative_to(folder);
            case.expect.golden = case.expect.golden.take().map(|golden| folder.join(golden));
        }
        Ok(cases)
    }
}

impl Case {
    fn check(&self, earlier: &[Self]) -> Result<(), String> {
        const VERDICTS: [&str; 4] = ["proceed", "rewrite", "block", "ask"];
        let subjects = [&self.tool, &self.before, &self.after].into_iter().flatten().count();
        if subjects != 1 {
            return Err("it names one of `tool`, `before` and `after`".into());
        }
        if earlier.iter().any(|other| other.name == self.name) {
            return Err("another case has this name".into());
        }
        if let Some(verdict) = &self.expect.verdict {
            if !VERDICTS.contains(&&**verdict) {
                return Err(format!("there is no verdict `{verdict}`: {}", VERDICTS.join(", ")));
            }
            if self.before.is_none() {
                return Err("`expect.verdict` is for cases with `before`".into());
            }
        }
        self.http.iter().try_for_each(Exchange::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("[[case]]\nname = \"a\"", "one of `tool`, `before` and `after`"),
            ("[[case]]\nname = \"a\"\ntool = \"t\"\nexpect.txt = \"x\"", "unknown field `txt`"),
            (
                "[[case]]\nname = \"a\"\ntool = \"t\"\nlimits = { wall = 1 }",
                "did you mean `wall_ms`",
            ),
            (
                "[[case]]\nname = \"a\"\ntool = \"t\"\n[[case]]\nname = \"a\"\ntool = \"t\"",
                "another case",
            ),
            (
                "[[case]]\nname = \"a\"\nbefore = \"t\"\nexpect.verdict = \"stop\"",
                "proceed, rewrite, block, ask",
            ),
            (
                "[[case]]\nname = \"a\"\ntool = \"t\"\nhttp = [{ request = \"https://a\" }]",
                "METHOD URL",
            ),
        ] {
            let problem = Cases::parse(text, Path::new("cases.toml")).expect_err(part).to_string();
            assert!(problem.contains(part), "{text}\n{problem}");
        }
    }
}
