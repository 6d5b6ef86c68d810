//! The hostile guests: one bad behaviour each. `tests/guests/hostile` is made from these lists and
//! can be run by any host of the contract.

mod answers;
mod compute;
mod declarations;
mod hooks;
mod host;
mod memory;
mod odd;

use super::Guest;
use serde_json::{Value, json};

/// A hostile file and what becomes of it.
pub(crate) struct Hostile {
    /// The name of its file.
    pub(crate) file: String,
    /// What it does, in a sentence.
    pub(crate) does: &'static str,
    /// The file, without the header.
    pub(crate) bytes: Vec<u8>,
    /// Limits in force, as `KEY=VALUE`.
    pub(crate) limits: &'static [&'static str],
    /// Grants in force, as `KEY=VALUE`.
    pub(crate) grants: &'static [&'static str],
    /// The tool that is called.
    pub(crate) tool: &'static str,
    /// The arguments of the call.
    pub(crate) arguments: &'static str,
    /// How it ends.
    pub(crate) end: End,
}

/// How a hostile file ends. The words are a part of what is said about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It is not loaded.
    Load(&'static str),
    /// Its tool is refused.
    Tool(&'static str),
    /// Its call fails: what ended it, and words.
    Call(&'static str, &'static str),
    /// Its call answers.
    Answer(&'static str),
    /// Its hook before a call does this: `proceed`, `rewrite`, `block`, `ask` or `failure`.
    Before(&'static str, &'static str),
    /// Its hook after a call does this: `amend` or `failure`.
    After(&'static str, &'static str),
}

/// Time enough to begin on a busy machine, and little enough to wait for.
const FAST: &[&str] = &["wall_ms=300"];
const TIME: End = End::Call("time-limit", "stopped after 300 ms (limit wall_ms)");
const LOOP: &str = "(loop $again (br $again)) unreachable";

/// All of them.
pub(crate) fn all() -> Vec<Hostile> {
    let mut rows = Vec::new();
    rows.extend(compute::rows());
    rows.extend(memory::rows());
    rows.extend(answers::rows());
    rows.extend(declarations::rows());
    rows.extend(host::rows());
    rows.extend(hooks::rows());
    rows.extend(odd::rows());
    rows
}

/// A row with a guest that is a tool.
fn hostile(name: &'static str, does: &'static str, guest: Guest, end: End) -> Hostile {
    hostile_text(name, does, guest.text(), end)
}

/// A row with a guest of another shape.
fn hostile_text(name: &'static str, does: &'static str, text: String, end: End) -> Hostile {
    hostile_file(format!("{name}.wat"), does, text.into_bytes(), end)
}

fn hostile_file(file: String, does: &'static str, bytes: Vec<u8>, end: End) -> Hostile {
    Hostile { file, does, bytes, limits: &[], grants: &[], tool: "run", arguments: "{}", end }
}

impl Hostile {
    fn limits(self, limits: &'static [&'static str]) -> Self {
        Self { limits, ..self }
    }

    fn grants(self, grants: &'static [&'static str]) -> Self {
        Self { grants, ..self }
    }

    fn tool(self, tool: &'static str) -> Self {
        Self { tool, ..self }
    }

    fn arguments(self, arguments: &'static str) -> Self {
        Self { arguments, ..self }
    }

    /// The file as it is published: WebAssembly text says what it is about.
    pub(crate) fn published(&self) -> Vec<u8> {
        let mut file = Vec::new();
        if self.file.ends_with(".wat") {
            file.extend(format!(";; {}\n", self.does).into_bytes());
        }
        file.extend(&self.bytes);
        file
    }

    /// The row of `kit.json`.
    pub(crate) fn to_json(&self) -> Value {
        let (at, ended_by, says) = match self.end {
            End::Load(says) => ("load", None, says),
            End::Tool(says) => ("tool", None, says),
            End::Call(ended_by, says) => ("call", Some(ended_by), says),
            End::Answer(says) => ("answer", None, says),
            End::Before(action, says) => ("before", Some(action), says),
            End::After(action, says) => ("after", Some(action), says),
        };
        json!({
            "file": self.file,
            "does": self.does,
            "limits": self.limits,
            "grants": self.grants,
            "tool": self.tool,
            "arguments": self.arguments,
            "expected": { "at": at, "ended_by": ended_by, "says": says },
        })
    }
}
