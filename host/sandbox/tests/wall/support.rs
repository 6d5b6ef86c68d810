//! What these tests share: one sandbox, guests loaded into it, what a call came to.

use crate::guest::Guest;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    CacheConfig, Code, Grants, Limits, LoadError, Plugin, PluginSource, Receipt, Sandbox,
    SandboxConfig,
};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

/// The sandbox of the tests that need none of their own. It keeps compiled code: most of them load
/// the prober.
pub static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wall");
    let cache = Some(CacheConfig { dir, size_mib: 256 });
    Sandbox::new(SandboxConfig { cache, ..SandboxConfig::default() }).unwrap()
});

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

/// A server on loopback, until the end of the test. Each connection is one exchange.
pub struct Server {
    pub port: u16,
    /// The heads of the requests that it got, and what came with them.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers every request with these bytes.
    pub fn answering(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::new(move |stream, _| drop(stream.write_all(&answer)))
    }

    /// Does this with each connection, once the head of the request is there.
    pub fn new(serve: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, serve) = (seen.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, kept, serve) = (stream.unwrap(), kept.clone(), serve.clone());
                std::thread::spawn(move || {
                    let request = read_request(&mut stream);
                    kept.lock().unwrap().push(request.clone());
                    serve(&mut stream, &request);
                });
            }
        });
        Self { port, seen }
    }

    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The grant of these methods, as `KEY=VALUE`.
    pub fn grant(&self, methods: &str) -> String {
        format!("http={methods} http://{}", self.authority())
    }

    /// A step of the prober that asks it for a path.
    pub fn get(&self, path: &str) -> Value {
        json!({"do": "http", "authority": self.authority(), "path": path})
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// A request as far as its head says that it goes.
fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let wanted = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            let chunked = head.contains("transfer-encoding: chunked");
            if body.len() >= wanted && (!chunked || body.ends_with("0\r\n\r\n")) {
                return text;
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
