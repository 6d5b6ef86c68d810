//! Each limit set to an odd value: what is at the value passes, and one more does not. There is one
//! check for each row of the table of limits, and a limit without a check does not pass.

use crate::guest::imports::{
    with_cancellation, with_clock, with_log, with_progress, with_random, with_stdio,
};
use crate::guest::{Guest, leak};
use crate::support::{
    LOOP, Prober, SANDBOX, Server, call, ended_by, grants, limits, load, load_in, receipt, source,
    text,
};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    Code, CompilerCommand, HostImport, Level, Limits, LoadError, LogLine, Plugin, Sandbox,
    SandboxConfig,
};
use futures::future::join_all;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How late a busy machine may be.
const LATE_MS: u64 = 2_000;

macro_rules! checked {
    ($($key:ident),+ $(,)?) => {
        const CHECKED: &[&str] = &[$(stringify!($key)),+];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $key() {
                check::$key().await;
            }
        )+
    };
}

checked!(
    wall_ms,
    queue_ms,
    grace_ms,
    fuel,
    memory_mib,
    tables,
    table_elements,
    instances,
    resources,
    host_alloc_mib,
    result_kib,
    spill_kib,
    progress_count,
    progress_kib,
    log_lines,
    log_kib,
    stdio_kib,
    http_requests,
    http_body_kib,
    file_write_kib,
    files_created,
    file_operations,
    random_kib,
    concurrent_calls,
    queue,
    component_mib,
    function_kib,
    compiled_mib,
    compile_seconds,
);

#[test]
fn every_limit_has_its_check() {
    assert_eq!(CHECKED, Limits::KEYS);
}

/// The failure of a call, which must be of this limit.
fn failed_by(outcome: &Outcome, ended_by: &str, key: &str) -> serde_json::Value {
    let failure = outcome.answer.as_ref().unwrap_err();
    assert_eq!(failure.ended_by, ended_by, "{failure:?}");
    assert!(failure.message.contains(key), "{failure:?}");
    let details = failure.details.clone().unwrap();
    assert_eq!(details["limit"], key, "{details}");
    details
}

fn refused_by(loaded: Result<Plugin, LoadError>, key: &str) {
    let Err(error) = loaded else { panic!("it was loaded") };
    assert!(error.to_string().contains(key), "{error}");
}

/// A guest that does something as often as a number in its arguments says, and answers.
fn times(what: &str) -> &'static str {
    leak(format!(
        "(local $n i32) (local.set $n (call $number (local.get $args) (local.get $args-size)))
         (block $done (loop $again
           (br_if $done (i32.eqz (local.get $n)))
           {what}
           (local.set $n (i32.sub (local.get $n) (i32.const 1)))
           (br $again)))
         (call $answer (local.get $args) (local.get $args-size))"
    ))
}

/// A guest that waits for so many milliseconds and answers.
fn sleeper(ms: u64) -> Guest {
    with_clock(Guest::call(leak(format!(
        "(call $block (call $after (i64.const {ms}000000))) (call $answer (local.get $args) (local.get $args-size))"
    ))))
}

/// A guest that answers with as many bytes as a number in its arguments says.
fn long_answer() -> Guest {
    Guest::call(
        "(local $n i32) (local.set $n (call $number (local.get $args) (local.get $args-size)))
         (drop (memory.grow (i32.const 100)))
         (memory.fill (i32.const 65536) (i32.const 97) (local.get $n))
         (call $answer (i32.const 65536) (local.get $n))",
    )
}

/// Calls in flight at the same time, as an import of the embedder's sees them.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Crowd {
    /// A sandbox with the import, and a guest that stays in it for a while.
    fn sandbox(self: &Arc<Self>, config: SandboxConfig) -> Sandbox {
        let crowd = self.clone();
        let import = HostImport::new("test:crowd/stay@1.0.0").function("stay", move |_, text| {
            let crowd = crowd.clone();
            async move {
                crowd
                    .most
                    .fetch_max(crowd.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(50)).await;
                crowd.now.fetch_sub(1, Ordering::SeqCst);
                Ok(text)
            }
        });
        Sandbox::new(SandboxConfig { imports: vec![import], ..config }).unwrap()
    }

    fn guest() -> Guest {
        Guest {
            imports: r#"(import "test:crowd/stay@1.0.0" (instance $crowd
    (export "stay" (func (param "text" string) (result (result string (error string)))))))"#,
            lowered: r#"(core func $stay (canon lower (func $crowd "stay") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "stay" (func $stay)))"#,
            core_imports: r#"(import "host" "stay" (func $stay (param i32 i32 i32)))"#,
            with: r#"(with "host" (instance $host))"#,
            ..Guest::call(
                "(call $stay (local.get $args) (local.get $args-size) (i32.const 1300))
                 (call $answer (local.get $args) (local.get $args-size))",
            )
        }
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// A guest that answers, as a component of exactly so many bytes.
fn component_of(bytes: usize) -> Code {
    let mut component = wat::parse_str(Guest::default().text()).unwrap();
    // A custom section: its number, its size in five bytes, an empty name.
    let rest = bytes - component.len() - 6;
    component.push(0);
    for shift in [0, 7, 14, 21] {
        component.push((rest >> shift) as u8 & 0x7f | 0x80);
    }
    component.push((rest >> 28) as u8);
    component.resize(bytes, 0);
    Code::Bytes(component)
}

mod check {
    use super::*;

    pub async fn wall_ms() {
        let plugin = load(&Guest::call(LOOP), &["wall_ms=137"]).await;
        let outcome = call(&plugin, "{}").await;
        assert_eq!(failed_by(&outcome, "time-limit", "wall_ms")["limit_value"], 137);
        let wall_us = receipt(&outcome).wall_us;
        assert!((137_000..137_000 + LATE_MS * 1_000).contains(&wall_us), "{wall_us}");
        let waiting = load(&sleeper(100_000), &["wall_ms=137"]).await;
        let outcome = call(&waiting, "{}").await;
        assert_eq!(failed_by(&outcome, "time-limit", "wall_ms")["limit_value"], 137);
        let quick = load(&sleeper(60), &["wall_ms=1370"]).await;
        assert_eq!(ended_by(&call(&quick, "{}").await), "answer");
    }

    pub async fn queue_ms() {
        let plugin = load(&sleeper(400), &["concurrent_calls=1", "queue_ms=53"]).await;
        let mut outcomes = join_all([call(&plugin, "{}"), call(&plugin, "{}")]).await;
        outcomes.sort_by_key(|outcome| outcome.answer.is_err());
        assert_eq!(ended_by(&outcomes[0]), "answer");
        assert_eq!(failed_by(&outcomes[1], "queue-limit", "queue_ms")["limit_value"], 53);
        let waiting_us = receipt(&outcomes[1]).waiting_us;
        assert!((53_000..53_000 + LATE_MS * 1_000).contains(&waiting_us), "{waiting_us}");
        let patient = load(&sleeper(400), &["concurrent_calls=1", "queue_ms=5300"]).await;
        let outcomes = join_all([call(&patient, "{}"), call(&patient, "{}")]).await;
        assert!(outcomes.iter().all(|outcome| ended_by(outcome) == "answer"));
    }

    pub async fn grace_ms() {
        let deaf = with_cancellation(Guest::call(
            "(loop $again (drop (call $is-cancelled)) (br $again)) unreachable",
        ));
        let plugin = load(&deaf, &["grace_ms=61"]).await;
        let abort = AbortSignal::new();
        let running = plugin.call_tool("run", "{}", Progress::default(), abort.clone());
        let aborting = async {
            tokio::time::sleep(Duration::from_millis(40)).await;
            abort.cancel();
            Instant::now()
        };
        let (outcome, aborted) = futures::join!(running, aborting);
        let grace = aborted.elapsed();
        assert_eq!(ended_by(&outcome), "aborted");
        assert!(grace >= Duration::from_millis(60), "{grace:?}");
        assert!(grace < Duration::from_millis(61 + LATE_MS), "{grace:?}");
    }

    pub async fn fuel() {
        let guest = Guest::call(times("(drop (i32.const 1))"));
        let used = receipt(&call(&load(&guest, &[]).await, "{\"n\":777}").await).fuel.unwrap();
        let exact = load(&guest, &[&format!("fuel={used}")]).await;
        let outcome = call(&exact, "{\"n\":777}").await;
        assert_eq!((ended_by(&outcome), receipt(&outcome).fuel), ("answer", Some(used)));
        let short = load(&guest, &[&format!("fuel={}", used - 1)]).await;
        let outcome = call(&short, "{\"n\":777}").await;
        assert_eq!(failed_by(&outcome, "fuel-limit", "fuel")["limit_value"], used - 1);
        assert_eq!(receipt(&outcome).fuel, Some(used - 1));
        let off = load(&guest, &["fuel=off"]).await;
        assert_eq!(receipt(&call(&off, "{}").await).fuel, None);
    }

    pub async fn memory_mib() {
        let guest = Guest::call(
            "(if (i32.eq (i32.const -1) (memory.grow (call $number (local.get $args) (local.get $args-size))))
               (then unreachable))
             (call $answer (local.get $args) (local.get $args-size))",
        );
        let plugin = load(&guest, &["memory_mib=7"]).await;
        let outcome = call(&plugin, "{\"pages\":111}").await;
        assert_eq!(ended_by(&outcome), "answer");
        assert_eq!(receipt(&outcome).memory_peak_bytes, 7 << 20);
        let outcome = call(&plugin, "{\"pages\":112}").await;
        assert_eq!(failed_by(&outcome, "memory-limit", "memory_mib")["limit_value"], 7);
        assert_eq!(receipt(&outcome).memory_peak_bytes, 65_536);
        for (pages, fine) in [(112, true), (113, false)] {
            let loaded =
                load_in(&SANDBOX, &Guest { pages, ..Guest::default() }, &["memory_mib=7"]).await;
            assert_eq!(loaded.is_ok(), fine, "{pages} pages at the start");
        }
    }

    pub async fn tables() {
        let with = |count: usize| {
            let functions = leak("(table 1 funcref)".repeat(count));
            Guest { functions, ..Guest::default() }
        };
        load(&with(3), &["tables=3"]).await;
        refused_by(load_in(&SANDBOX, &with(4), &["tables=3"]).await, "limits.tables");
    }

    pub async fn table_elements() {
        let guest = Guest {
            functions: "(table $t 0 funcref)",
            ..Guest::call(
                "(if (i32.eq (i32.const -1) (table.grow $t (ref.null func)
                     (call $number (local.get $args) (local.get $args-size)))) (then unreachable))
                 (call $answer (local.get $args) (local.get $args-size))",
            )
        };
        let plugin = load(&guest, &["table_elements=77"]).await;
        assert_eq!(ended_by(&call(&plugin, "{\"n\":77}").await), "answer");
        let outcome = call(&plugin, "{\"n\":78}").await;
        assert_eq!(failed_by(&outcome, "memory-limit", "table_elements")["limit_value"], 77);
    }

    pub async fn instances() {
        // Two of the frame, and so many more.
        let with = |count: usize| {
            let more = "(core instance (instantiate $m))".repeat(count);
            Guest { imports: leak(format!("(core module $m) {more}")), ..Guest::default() }
        };
        load(&with(3), &["instances=5"]).await;
        refused_by(load_in(&SANDBOX, &with(4), &["instances=5"]).await, "limit instances");
    }

    pub async fn resources() {
        let opening = with_clock(Guest::call(times("(drop (call $after (i64.const 1)))")));
        let plugin = load(&opening, &["resources=9"]).await;
        assert_eq!(ended_by(&call(&plugin, "{\"n\":9}").await), "answer");
        failed_by(&call(&plugin, "{\"n\":10}").await, "memory-limit", "resources");
        // What is closed makes room.
        let closing = with_clock(Guest::call(times("(call $drop (call $after (i64.const 1)))")));
        let plugin = load(&closing, &["resources=9"]).await;
        assert_eq!(ended_by(&call(&plugin, "{\"n\":500}").await), "answer");
    }

    pub async fn host_alloc_mib() {
        let plugin = load(&long_answer(), &["host_alloc_mib=3", "result_kib=9000"]).await;
        // Besides the text, the host counts what holds it.
        let fits = (3 << 20) - 1_000;
        assert_eq!(text(&call(&plugin, &format!("[{fits}]")).await).len(), fits);
        let outcome = call(&plugin, &format!("[{}]", 3 << 20)).await;
        assert_eq!(failed_by(&outcome, "output-limit", "host_alloc_mib")["limit_value"], 3);
    }

    pub async fn result_kib() {
        let plugin = load(&long_answer(), &["result_kib=5"]).await;
        let whole = call(&plugin, "[5120]").await;
        assert_eq!((text(&whole).len(), receipt(&whole).cuts.len()), (5_120, 0));
        let cut = call(&plugin, "[5121]").await;
        assert_eq!((text(&cut).len(), receipt(&cut).cuts.len()), (5_120, 1));
    }

    pub async fn spill_kib() {
        let folder = tempfile::tempdir().unwrap();
        let spill_dir = Some(folder.path().join("spill"));
        let config = SandboxConfig { slots: 2, spill_dir, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).unwrap();
        let plugin = load_in(&sandbox, &long_answer(), &["result_kib=5", "spill_kib=7"]).await;
        let plugin = plugin.unwrap();
        for (bytes, kept, whole) in [(7_168, 7_168, true), (7_169, 7_168, false)] {
            let outcome = call(&plugin, &format!("[{bytes}]")).await;
            let spilled = receipt(&outcome).spilled.clone().unwrap();
            assert_eq!((spilled.bytes, spilled.whole), (kept, whole), "{bytes}");
            assert_eq!(std::fs::metadata(&spilled.path).unwrap().len(), kept);
        }
        assert_eq!(receipt(&call(&plugin, "[5120]").await).spilled, None);
    }

    /// Reports as many bytes of progress as its arguments say, in one report.
    fn one_report() -> Guest {
        with_progress(Guest::call(
            "(i32.store offset=4 (i32.const 1300) (i32.const 4096))
             (i32.store offset=8 (i32.const 1300) (call $number (local.get $args) (local.get $args-size)))
             (call $report-raw (i32.const 1300) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))
             (call $answer (local.get $args) (local.get $args-size))",
        ))
    }

    pub async fn progress_count() {
        let guest = with_progress(Guest::call(times(
            "(call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))",
        )));
        let plugin = load(&guest, &["progress_count=13"]).await;
        for (count, ended) in [(13, "answer"), (14, "output-limit")] {
            let outcome = watched(&plugin, &format!("[{count}]")).await;
            assert_eq!(ended_by(&outcome), ended);
            let bill = receipt(&outcome);
            assert_eq!((bill.progress.shown, bill.host_calls.progress.calls), (13, count));
            if ended == "output-limit" {
                failed_by(&outcome, ended, "progress_count");
            }
        }
    }

    pub async fn progress_kib() {
        let plugin = load(&Guest { pages: 2, ..one_report() }, &["progress_kib=3"]).await;
        let outcome = watched(&plugin, "[3072]").await;
        assert_eq!((ended_by(&outcome), receipt(&outcome).progress.shown), ("answer", 1));
        let outcome = watched(&plugin, "[3073]").await;
        failed_by(&outcome, "output-limit", "progress_kib");
        assert_eq!(receipt(&outcome).progress.shown, 0);
    }

    /// A call whose progress somebody looks at.
    async fn watched(plugin: &Plugin, arguments: &str) -> Outcome {
        let (progress, updates) = Progress::channel();
        let mut running =
            Box::pin(plugin.call_tool("run", arguments, progress, AbortSignal::new()));
        loop {
            tokio::select! {
                _ = updates.next() => {}
                outcome = &mut running => return outcome,
            }
        }
    }

    /// A sandbox that keeps log lines, and a guest that writes one of eight bytes as often as its
    /// arguments say.
    async fn logging(pairs: &[&str]) -> (Plugin, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let log = Arc::new(move |line: LogLine<'_>| {
            assert_eq!((line.plugin, line.level), ("guest", Level::Info));
            kept.lock().unwrap().push(line.message.to_owned());
        });
        let sandbox =
            Sandbox::new(SandboxConfig { slots: 2, log: Some(log), ..SandboxConfig::default() });
        let guest = with_log(Guest::call(times(
            "(call $log (i32.const 1) (i32.const 2050) (i32.const 8))",
        )));
        (load_in(&sandbox.unwrap(), &guest, pairs).await.unwrap(), lines)
    }

    pub async fn log_lines() {
        let (plugin, lines) = logging(&["log_lines=11"]).await;
        let bill = receipt(&call(&plugin, "[11]").await).log;
        assert_eq!((bill.lines, bill.lines_dropped), (11, 0));
        let bill = receipt(&call(&plugin, "[12]").await).log;
        assert_eq!((bill.lines, bill.lines_dropped, bill.bytes_dropped), (11, 1, 8));
        assert_eq!(lines.lock().unwrap().len(), 22);
    }

    pub async fn log_kib() {
        let (plugin, lines) = logging(&["log_kib=3"]).await;
        let bill = receipt(&call(&plugin, "[384]").await).log;
        assert_eq!((bill.lines, bill.bytes, bill.lines_dropped), (384, 3_072, 0));
        let bill = receipt(&call(&plugin, "[385]").await).log;
        assert_eq!((bill.lines, bill.bytes, bill.bytes_dropped), (384, 3_072, 8));
        assert_eq!(lines.lock().unwrap().len(), 768);
    }

    pub async fn stdio_kib() {
        let guest = with_stdio(Guest::call(
            "(local $s i32) (local.set $s (call $stderr))
             (call $write (local.get $s) (i32.const 0) (i32.const 4096) (i32.const 1500))
             (call $write (local.get $s) (i32.const 0) (call $number (local.get $args) (local.get $args-size)) (i32.const 1500))
             (call $answer (local.get $args) (local.get $args-size))",
        ));
        let plugin = load(&guest, &["stdio_kib=5"]).await;
        for (more, kept, dropped) in [(1_024, 5_120, 0), (1_025, 5_120, 1)] {
            let bill = receipt(&call(&plugin, &format!("[{more}]")).await).stderr;
            assert_eq!((bill.bytes, bill.bytes_dropped), (kept, dropped));
        }
    }

    pub async fn http_requests() {
        let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        let prober = Prober::with(&["http_requests=3"], &[server.grant("GET")]).await;
        let (outcomes, receipt) = prober.try_steps(json!(vec![server.get("/"); 4])).await;
        assert!(outcomes[..3].iter().all(|outcome| outcome["ok"]["body"] == "ok"), "{outcomes:?}");
        assert_eq!(outcomes[3]["err"], "ErrorCode::HttpRequestDenied");
        assert_eq!(receipt.http_requests, 3);
        assert!(receipt.refusals[0].contains("limit http_requests"), "{:?}", receipt.refusals);
    }

    pub async fn http_body_kib() {
        for (bytes, fine) in [(2_048, true), (2_049, false)] {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            let server = Server::answering(head + &"x".repeat(bytes));
            let prober = Prober::with(&["http_body_kib=2"], &[server.grant("GET")]).await;
            let (outcomes, receipt) = prober.try_steps(json!([server.get("/")])).await;
            assert_eq!(outcomes[0]["ok"]["status"] == 200, fine, "{outcomes:?}");
            let refused = receipt.refusals.iter().any(|r| r.contains("limit http_body_kib"));
            assert_eq!(refused, !fine, "{:?}", receipt.refusals);
        }
        // What is sent counts as well.
        let server = Server::answering(
            "HTTP/1.1 200 OK\r\ncontent-length: 48\r\n\r\n".to_owned() + &"x".repeat(48),
        );
        let prober = Prober::with(&["http_body_kib=2"], &[server.grant("POST")]).await;
        for (bytes, fine) in [(2_000, true), (2_001, false)] {
            let mut step = server.get("/");
            step["method"] = "POST".into();
            step["body"] = "x".repeat(bytes).into();
            let (outcomes, _) = prober.try_steps(json!([step])).await;
            assert_eq!(outcomes[0]["ok"]["status"] == 200, fine, "{outcomes:?}");
        }
    }

    pub async fn file_write_kib() {
        let folder = tempfile::tempdir().unwrap();
        let grant = format!("files={}:/w:read-write", folder.path().display());
        let prober = Prober::with(&["file_write_kib=3"], &[&grant]).await;
        let step = |path: &str, how: &str, bytes: u64| json!({"do": "open", "dir": "/w", "path": path, "create": true, "write": true, how: bytes});
        for how in ["fill", "size"] {
            let (outcomes, receipt) =
                prober.try_steps(json!([step(how, how, 3_072), step("more", how, 1)])).await;
            assert!(outcomes[0]["err"].is_null(), "{outcomes:?}");
            assert!(!outcomes[1]["err"].is_null(), "{outcomes:?}");
            assert!(receipt.refusals[0].contains("limit file_write_kib"), "{receipt:?}");
            assert_eq!(std::fs::metadata(folder.path().join(how)).unwrap().len(), 3_072);
            assert_eq!(std::fs::metadata(folder.path().join("more")).unwrap().len(), 0);
        }
        // What is left out counts as if it had been written.
        for (how, what) in [("put", json!("x")), ("zeroes", json!(1))] {
            for (at, fine) in [(3_071, true), (3_072, false), (10_000_000_000_u64, false)] {
                let path = format!("{how}-{at}");
                let step = json!({"do": "open", "dir": "/w", "path": path, "create": true, "write": true, how: what, "at": at});
                let (outcomes, receipt) = prober.try_steps(json!([step])).await;
                assert_eq!(outcomes[0]["err"].is_null(), fine, "{how} {at}: {outcomes:?}");
                assert_eq!(receipt.refusals.is_empty(), fine, "{how} {at}: {receipt:?}");
                let len = std::fs::metadata(folder.path().join(path)).unwrap().len();
                assert_eq!(len, if fine { 3_072 } else { 0 }, "{how} {at}");
            }
        }
    }

    pub async fn files_created() {
        let folder = tempfile::tempdir().unwrap();
        let grant = format!("files={}:/w:read-write", folder.path().display());
        let prober = Prober::with(&["files_created=3"], &[&grant]).await;
        let create = |path: &str| json!({"do": "open", "dir": "/w", "path": path, "create": true, "write": true});
        let (outcomes, receipt) = prober
            .try_steps(json!([
                create("a"),
                {"do": "mkdir", "dir": "/w", "path": "d"},
                {"do": "symlink", "dir": "/w", "path": "l", "target": "a"},
                create("a"),
                create("b"),
                {"do": "mkdir", "dir": "/w", "path": "e"},
                {"do": "symlink", "dir": "/w", "path": "m", "target": "a"},
                create("a"),
            ]))
            .await;
        let fine: Vec<bool> = outcomes.iter().map(|outcome| outcome["err"].is_null()).collect();
        assert_eq!(fine, [true, true, true, true, false, false, false, true], "{outcomes:?}");
        assert!(receipt.refusals[0].contains("limit files_created"), "{:?}", receipt.refusals);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    pub async fn file_operations() {
        let folder = tempfile::tempdir().unwrap();
        let grant = format!("files={}:/w:read-only", folder.path().display());
        let prober = Prober::with(&["file_operations=3", "wall_ms=300"], &[&grant]).await;
        // Operations that the system never finishes: all three places are taken, and one more waits
        // for as long as its call does.
        let taken = prober.0.occupy_file_operations().await;
        let outcome = prober.call(json!([{"do": "list", "dir": "/w"}])).await;
        failed_by(&outcome, "time-limit", "wall_ms");
        drop(taken);
        let (outcomes, _) = prober.try_steps(json!([{"do": "list", "dir": "/w"}])).await;
        assert_eq!(outcomes[0]["ok"], json!([]));
    }

    pub async fn random_kib() {
        let guest = with_random(Guest::call(
            "(call $random (i64.extend_i32_u (call $number (local.get $args) (local.get $args-size))) (i32.const 1500))
             (call $answer (local.get $args) (local.get $args-size))",
        ));
        let plugin = load(&guest, &["random_kib=3"]).await;
        let outcome = call(&plugin, "[3072]").await;
        assert_eq!(
            (ended_by(&outcome), receipt(&outcome).host_calls.random.bytes),
            ("answer", 3_072)
        );
        failed_by(&call(&plugin, "[3073]").await, "output-limit", "random_kib");
    }

    pub async fn concurrent_calls() {
        let crowd = Arc::new(Crowd::default());
        let sandbox = crowd.sandbox(SandboxConfig::default());
        let plugin = load_in(&sandbox, &Crowd::guest(), &["concurrent_calls=3"]).await.unwrap();
        let outcomes = join_all((0..10).map(|_| call(&plugin, "{}"))).await;
        assert!(outcomes.iter().all(|outcome| ended_by(outcome) == "answer"));
        assert_eq!(crowd.most(), 3);
    }

    pub async fn queue() {
        let plugin = load(&sleeper(200), &["concurrent_calls=1", "queue=2"]).await;
        let outcomes = join_all((0..4).map(|_| call(&plugin, "{}"))).await;
        let (answered, refused): (Vec<_>, Vec<_>) =
            outcomes.iter().partition(|outcome| ended_by(outcome) == "answer");
        assert_eq!((answered.len(), refused.len()), (3, 1));
        assert_eq!(failed_by(refused[0], "queue-limit", "queue")["limit_value"], 2);
        assert!(receipt(refused[0]).waiting_us < 100_000, "at once");
    }

    pub async fn component_mib() {
        let load = async |bytes| {
            let code = source(component_of(bytes));
            Plugin::load(&SANDBOX, code, limits(&["component_mib=1"]), grants::<&str>(&[])).await
        };
        assert!(load(1 << 20).await.is_ok());
        refused_by(load((1 << 20) + 1).await, "limits.component_mib");
    }

    pub async fn function_kib() {
        let largest = async |nops: usize| {
            let functions = leak(format!("(func {})", "nop ".repeat(nops)));
            load_in(&SANDBOX, &Guest { functions, ..Guest::default() }, &["function_kib=3"]).await
        };
        // Locals and the end of the function are two bytes besides.
        let plugin = largest(3_070).await.unwrap();
        assert_eq!(plugin.inspection().code.largest_function_bytes, 3_072);
        refused_by(largest(3_071).await, "limits.function_kib");
    }

    pub async fn compiled_mib() {
        // The compiled code is larger than the component; how much, the compiler knows.
        let code = format!(
            "(func (param i32 i32) (result i32) {})",
            "(i32.mul (local.get 0) (local.get 1)) ".to_owned()
                + &"(local.get 1) (i32.rotl) (local.get 0) (i32.add) ".repeat(2_000)
        );
        let guest = Guest { functions: leak(code.repeat(120)), ..Guest::default() };
        refused_by(load_in(&SANDBOX, &guest, &["compiled_mib=1"]).await, "limits.compiled_mib");
        load(&guest, &["compiled_mib=17"]).await;
    }

    pub async fn compile_seconds() {
        // A compiler that takes a second and a half, and makes nothing.
        let slow = CompilerCommand { program: "/bin/sleep".into(), args: vec!["1.5".into()] };
        let config = SandboxConfig { slots: 2, compiler: Some(slow), ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).unwrap();
        let started = Instant::now();
        let loaded = load_in(&sandbox, &Guest::default(), &["compile_seconds=1"]).await;
        assert!(started.elapsed() >= Duration::from_secs(1));
        refused_by(loaded, "longer than 1 s (`limits.compile_seconds`)");
        let loaded = load_in(&sandbox, &Guest::default(), &["compile_seconds=30"]).await;
        refused_by(loaded, "compiled code");
    }
}

/// The settings of a whole sandbox are limits too.
mod settings {
    use super::*;

    #[tokio::test]
    async fn slots() {
        let crowd = Arc::new(Crowd::default());
        let sandbox = crowd.sandbox(SandboxConfig { slots: 2, ..SandboxConfig::default() });
        let one = load_in(&sandbox, &Crowd::guest(), &[]).await.unwrap();
        let other = one.under_name("other").await.unwrap();
        let calls = (0..8).map(|n| call(if n % 2 == 0 { &one } else { &other }, "{}"));
        let outcomes = join_all(calls).await;
        assert!(outcomes.iter().all(|outcome| ended_by(outcome) == "answer"));
        assert_eq!(crowd.most(), 2);
    }

    #[tokio::test]
    async fn memory_total_mib() {
        let config = SandboxConfig { slots: 4, memory_total_mib: 3, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).unwrap();
        let guest = with_clock(Guest::call(
            "(if (i32.eq (i32.const -1) (memory.grow (call $number (local.get $args) (local.get $args-size))))
               (then unreachable))
             (call $block (call $after (i64.const 100000000)))
             (call $answer (local.get $args) (local.get $args-size))",
        ));
        let plugin = load_in(&sandbox, &guest, &[]).await.unwrap();
        for (pages, ended) in [(47, "answer"), (48, "memory-limit")] {
            assert_eq!(ended_by(&call(&plugin, &format!("[{pages}]")).await), ended, "{pages}");
        }
        // Together they would have more than there is; one after the other they have not.
        let outcomes = join_all([call(&plugin, "[30]"), call(&plugin, "[30]")]).await;
        let failed = outcomes.iter().find(|outcome| ended_by(outcome) != "answer").unwrap();
        let message = &failed.answer.as_ref().unwrap_err().message;
        assert!(message.contains("memory_total_mib"), "{message}");
        assert_eq!(ended_by(&call(&plugin, "[30]").await), "answer");
    }

    #[tokio::test]
    async fn stack_kib() {
        let guest = Guest {
            functions: "(func $deeper (param i32) (result i32)
              (if (result i32) (local.get 0)
                (then (i32.add (i32.const 1) (call $deeper (i32.sub (local.get 0) (i32.const 1)))))
                (else (i32.const 0))))",
            ..Guest::call(
                "(drop (call $deeper (call $number (local.get $args) (local.get $args-size))))
                 (call $answer (local.get $args) (local.get $args-size))",
            )
        };
        let mut depths = Vec::new();
        for stack_kib in [64, 192] {
            let config = SandboxConfig { slots: 2, stack_kib, ..SandboxConfig::default() };
            let plugin = load_in(&Sandbox::new(config).unwrap(), &guest, &[]).await.unwrap();
            let (mut fits, mut fails) = (0, 1 << 20);
            while fails - fits > 1 {
                let middle = (fits + fails) / 2;
                match ended_by(&call(&plugin, &format!("[{middle}]")).await) {
                    "answer" => fits = middle,
                    _ => fails = middle,
                }
            }
            depths.push(f64::from(fits));
        }
        // Each level of the recursion takes the same.
        let ratio = depths[1] / depths[0];
        assert!((2.9..3.1).contains(&ratio), "{depths:?}");
    }
}
