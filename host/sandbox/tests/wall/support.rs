//! What these tests share: one sandbox, guests loaded into it, what a call came to.

use crate::guest::Guest;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    Code, Grants, Limits, LoadError, Plugin, PluginSource, Receipt, Sandbox, SandboxConfig,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The sandbox of the tests that need none of their own.
pub static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxConfig::default()).unwrap());

/// Instructions that never end.
pub const LOOP: &str = "(loop $again (br $again)) unreachable";

/// The checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn limits(pairs: &[&str]) -> Limits {
    let mut limits = Limits::default();
    pairs.iter().for_each(|pair| limits.set_pair(pair).unwrap());
    limits
}

pub fn grants<S: AsRef<str>>(pairs: &[S]) -> Grants {
    let mut grants = Grants::default();
    pairs.iter().for_each(|pair| grants.add_pair(pair.as_ref()).unwrap());
    grants
}

pub fn source(code: Code) -> PluginSource {
    PluginSource { name: "guest".into(), code, sha256: None, accept_text: true }
}

pub async fn load_in(
    sandbox: &Sandbox,
    guest: &Guest,
    pairs: &[&str],
) -> Result<Plugin, LoadError> {
    let source = source(Code::Bytes(guest.text().into_bytes()));
    Plugin::load(sandbox, source, limits(pairs), Grants::default()).await
}

pub async fn load(guest: &Guest, pairs: &[&str]) -> Plugin {
    load_in(&SANDBOX, guest, pairs).await.unwrap()
}

pub async fn call(plugin: &Plugin, arguments: &str) -> Outcome {
    plugin.call_tool("run", arguments, Progress::default(), AbortSignal::new()).await
}

pub fn text(outcome: &Outcome) -> &str {
    match &outcome.answer.as_ref().unwrap().content[..] {
        [Content::Text(text), ..] => text,
        other => panic!("{other:?}"),
    }
}

pub fn receipt(outcome: &Outcome) -> &Receipt {
    outcome.receipt.as_ref().unwrap().as_any().downcast_ref().unwrap()
}

pub fn ended_by(outcome: &Outcome) -> &str {
    outcome.answer.as_ref().map_or_else(|failure| failure.ended_by.as_str(), |_| "answer")
}

/// The prober of `tests/guests`, under limits and grants of the test.
pub struct Prober(pub Plugin);

impl Prober {
    pub async fn with<S: AsRef<str>>(pairs: &[&str], granted: &[S]) -> Self {
        Self::load(&SANDBOX, limits(pairs), grants(granted)).await.unwrap()
    }

    pub async fn load(
        sandbox: &Sandbox,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, LoadError> {
        let path = root().join("target/plugins/prober.wasm");
        assert!(path.exists(), "{} is missing: `cargo xtask guests` builds it", path.display());
        let source = PluginSource { name: "prober".into(), ..source(Code::Path(path)) };
        Ok(Self(Plugin::load(sandbox, source, limits, grants).await?))
    }

    /// One call that tries these steps.
    pub async fn call(&self, steps: Value) -> Outcome {
        let arguments = json!({ "steps": steps }).to_string();
        self.0.call_tool("probe", &arguments, Progress::default(), AbortSignal::new()).await
    }

    /// What the steps of one call came to, each `{"ok": …}` or `{"err": …}`, and its receipt.
    pub async fn try_steps(&self, steps: Value) -> (Vec<Value>, Receipt) {
        let outcome = self.call(steps).await;
        let outcomes = match &outcome.answer {
            Ok(_) => serde_json::from_str(text(&outcome)).unwrap(),
            Err(failure) => panic!("{failure:?}"),
        };
        (outcomes, receipt(&outcome).clone())
    }
}
