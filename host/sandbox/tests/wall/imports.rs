//! What an embedder offers beside the contract: who may import it, who calls it, what ends it.

use crate::guest::Guest;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    Code, Grants, HostImport, Limits, LoadError, Plugin, PluginSource, Receipt, Sandbox,
    SandboxConfig, SandboxError, Tally, inspect,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const FORECAST: &str = "acme:weather/forecast@1.0.0";

/// A guest whose tool passes its arguments on to the import and answers with its answer.
fn asking() -> Guest {
    Guest {
        imports: r#"(import "acme:weather/forecast@1.0.0" (instance $forecast
    (export "read" (func (param "text" string) (result (result string (error string)))))))"#,
        lowered: r#"(core func $read (canon lower (func $forecast "read") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "read" (func $read)))"#,
        core_imports: r#"(import "host" "read" (func $read (param i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..Guest::call(
            "(call $read (local.get $args) (local.get $args-size) (i32.const 1300))
             (if (result i32) (i32.load8_u (i32.const 1300))
               (then (call $fail (i32.load (i32.const 1304)) (i32.load (i32.const 1308))))
               (else (call $answer (i32.load (i32.const 1304)) (i32.load (i32.const 1308)))))",
        )
    }
}

fn sandbox(imports: Vec<HostImport>) -> Result<Sandbox, SandboxError> {
    Sandbox::new(SandboxConfig { imports, ..SandboxConfig::default() })
}

async fn load(sandbox: &Sandbox, wall_ms: u64, fuel: Option<u64>) -> Result<Plugin, LoadError> {
    let source = PluginSource {
        name: "asking".into(),
        code: Code::Bytes(asking().text().into_bytes()),
        sha256: None,
        accept_text: true,
    };
    let limits = Limits { wall_ms, fuel, ..Limits::default() };
    Plugin::load(sandbox, source, limits, Grants::default()).await
}

async fn call(plugin: &Plugin, arguments: &str, abort: AbortSignal) -> Outcome {
    plugin.call_tool("run", arguments, Progress::default(), abort).await
}

fn embedder_calls(outcome: &Outcome) -> Tally {
    let receipt = outcome.receipt.as_ref().unwrap().as_any().downcast_ref::<Receipt>().unwrap();
    receipt.host_calls.embedder
}

#[tokio::test]
async fn a_plugin_asks_the_embedder() {
    let forecast = HostImport::new(FORECAST).function("read", |caller, text| async move {
        let caller = format!("{} in {:?}", caller.plugin, caller.call_id.as_deref());
        if text == "{}" { Err(caller) } else { Ok(format!("{caller}: {text}")) }
    });
    let sandbox = sandbox(vec![forecast]).unwrap();
    for fuel in [Some(1_000_000), None] {
        let plugin = load(&sandbox, 1_000, fuel).await.unwrap();
        let answered = call(&plugin, "[1]", AbortSignal::new()).await;
        let expected = "asking in Some(\"call\"): [1]";
        let content = &answered.answer.as_ref().unwrap().content;
        assert_eq!(content, &[Content::Text(expected.into())]);
        let bytes = (3 + expected.len()) as u64;
        assert_eq!(embedder_calls(&answered), Tally { calls: 1, bytes });
        let other = plugin.under_name("other").await.unwrap();
        let refused = call(&other, "{}", AbortSignal::new()).await;
        assert_eq!(refused.answer.unwrap_err().message, "other in Some(\"call\")");
    }
}

/// Counts the futures that are alive.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_import_that_waits_is_dropped_with_its_call() {
    let alive = Arc::new(AtomicUsize::new(0));
    let count = alive.clone();
    let forecast = HostImport::new(FORECAST).function("read", move |_, _| {
        let alive = Alive::new(&count);
        async move {
            std::future::pending::<()>().await;
            drop(alive);
            Ok(String::new())
        }
    });
    let sandbox = sandbox(vec![forecast]).unwrap();

    let plugin = load(&sandbox, 100, None).await.unwrap();
    let late = call(&plugin, "{}", AbortSignal::new()).await;
    assert_eq!(late.answer.as_ref().unwrap_err().ended_by, "time-limit");
    assert_eq!(embedder_calls(&late), Tally { calls: 1, bytes: 2 });
    assert_eq!(alive.load(Ordering::SeqCst), 0);

    let plugin = load(&sandbox, 60_000, None).await.unwrap();
    let abort = AbortSignal::new();
    let (running, signal) = (plugin.clone(), abort.clone());
    let task = tokio::spawn(async move { call(&running, "{}", signal).await });
    while alive.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = Instant::now();
    abort.cancel();
    let aborted = task.await.unwrap();
    assert!(asked.elapsed() < Duration::from_millis(500), "{:?}", asked.elapsed());
    assert_eq!(aborted.answer.unwrap_err().ended_by, "aborted");
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn only_a_sandbox_that_offers_an_import_loads_its_plugins() {
    let refused = load(&sandbox(Vec::new()).unwrap(), 1_000, None).await.err().unwrap();
    assert!(refused.to_string().contains(FORECAST), "{refused}");
    let bytes = wat::parse_str(asking().text()).unwrap();
    assert!(inspect(&bytes).unwrap_err().to_string().contains(FORECAST));
    // The interface without the function.
    let empty = sandbox(vec![HostImport::new(FORECAST)]).unwrap();
    assert!(matches!(load(&empty, 1_000, None).await, Err(LoadError::Link(_))));
}

#[test]
fn interfaces_that_cannot_be_offered() {
    for (name, why) in [
        ("weather", "not of the form"),
        ("wasi:cli/environment@0.2.0", "the host's own"),
        ("cofferdam:plugin/log@0.1.0", "the host's own"),
    ] {
        let refused = sandbox(vec![HostImport::new(name)]).unwrap_err().to_string();
        assert!(refused.contains(why) && refused.contains(name), "{refused}");
    }
    let read = HostImport::new(FORECAST).function("read", async |_, text| Ok(text));
    let refused = sandbox(vec![read.clone(), read]).unwrap_err().to_string();
    assert!(refused.contains(FORECAST), "{refused}");
}
