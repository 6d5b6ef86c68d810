//! What the tests of the whole share: the built binary, the built plugins, a folder to work in.

#[path = "../conformance/player/mod.rs"]
pub mod conformance;

mod hostile_line;

pub use hostile_line::hostile_line;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The root of the checkout.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        root.unwrap_or_else(|| unreachable!("tests/ lies in the checkout")).to_path_buf()
    })
}

/// A sample plugin as plain cargo built it. `cargo xtask guests` builds them.
pub fn plugin(name: &str) -> PathBuf {
    existing(root().join("target/plugins").join(format!("{name}.wasm")))
}

/// A sample plugin as cargo-component built it.
pub fn plugin_by_cargo_component(name: &str) -> PathBuf {
    existing(root().join("target/plugins/cargo-component").join(format!("{name}.wasm")))
}

/// Sample plugins in JavaScript and Python: none, and a word about it, unless all of them are built.
/// Their toolchains cannot be had on every machine.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub fn optional_plugins<const N: usize>(names: [&str; N]) -> Option<[PathBuf; N]> {
    let paths = names.map(|name| root().join("target/plugins").join(format!("{name}.wasm")));
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        eprintln!(
            "LEFT OUT: {} is missing: `cargo xtask guests --lang javascript --lang python`",
            missing.display()
        );
        return None;
    }
    Some(paths)
}

fn existing(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is missing: `cargo xtask test` builds it", path.display());
    path
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|problem| panic!("{command:?}: {problem}"));
    Ran::from(output)
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Ran {
    /// Standard output as one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    /// Standard output as lines of JSON.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(line).collect()
    }
}
