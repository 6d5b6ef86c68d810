//! What the benchmarks run: guests behind the wall, and the bare engine beside it.

pub(crate) mod bare;
pub(crate) mod guests;

use crate::guest::Guest;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{Code, Grants, Limits, Plugin, PluginSource, Sandbox};
use futures::executor::block_on;
use std::path::{Path, PathBuf};

/// Arguments of the size that a model writes.
pub(crate) const ARGUMENTS: &str = r#"{"path":"src/main.rs","offset":10,"limit":200}"#;

/// A guest of these tests, loaded.
pub(crate) fn load(sandbox: &Sandbox, guest: &Guest, limits: Limits) -> Plugin {
    load_code(sandbox, Code::Bytes(guest.text().into_bytes()), limits, Grants::default())
}

/// A plugin from a file, loaded.
pub(crate) fn load_file(sandbox: &Sandbox, path: &Path, grants: Grants) -> Plugin {
    load_code(sandbox, Code::Path(path.to_owned()), Limits::default(), grants)
}

fn load_code(sandbox: &Sandbox, code: Code, limits: Limits, grants: Grants) -> Plugin {
    let source = PluginSource { name: "guest".into(), code, sha256: None, accept_text: true };
    block_on(Plugin::load(sandbox, source, limits, grants)).unwrap_or_else(|e| panic!("{e}"))
}

/// A sample plugin, if it is built.
pub(crate) fn sample(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/plugins")
        .join(format!("{name}.wasm"));
    path.exists().then_some(path)
}

/// One call on this thread, which must answer.
pub(crate) fn call_here(plugin: &Plugin, tool: &str, arguments: &str) {
    let call = plugin.call_tool_here(tool, arguments, Progress::default(), AbortSignal::new());
    assert_answer(&block_on(call));
}

/// One call on the sandbox's threads, which must answer.
pub(crate) async fn call(plugin: &Plugin, tool: &str, arguments: &str) {
    let call = plugin.call_tool(tool, arguments, Progress::default(), AbortSignal::new());
    assert_answer(&call.await);
}

fn assert_answer(outcome: &Outcome) {
    assert!(outcome.answer.is_ok(), "{:?}", outcome.answer);
}
