//! Every call leaves its bill, however it ends.

use crate::guest::Guest;
use crate::guest::imports::{
    with_cancellation, with_clock, with_exit, with_http, with_key_value, with_log, with_progress,
    with_random, with_stdio,
};
use crate::support::{LOOP, Prober, Server, call, ended_by, load, receipt};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::HookedCall;
use cofferdam_agent::message::AssistantMessage;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, ToolResult};
use cofferdam_sandbox::{Plugin, Receipt};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// Work that every guest here does before it ends in its way: it grows its memory by two pages and
/// counts to ten thousand. In a function of its own, because compiled code writes its fuel down where
/// functions end and forgets the rest in a crash (wasmtime issue 13802).
const WORK: &str = "(func $work (local $n i32)
    (drop (memory.grow (i32.const 2)))
    (loop $again (br_if $again (i32.lt_u
      (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 10000)))))";

/// A guest that works and then ends like this.
fn ending(how: &str) -> Guest {
    let call = crate::guest::leak(format!("(call $work) {how}"));
    Guest { functions: WORK, ..Guest::call(call) }
}

fn is_of_work(bill: &Receipt, what: &str) {
    assert!(bill.fuel.unwrap() > 40_000, "{what}: {bill:?}");
    assert_eq!(bill.memory_peak_bytes, 3 << 16, "{what}: {bill:?}");
    assert!(bill.wall_us > 0, "{what}: {bill:?}");
    assert_eq!(&*bill.plugin, "guest", "{what}");
}

#[tokio::test]
async fn every_ending_is_billed() {
    let answer = "(call $answer (local.get $args) (local.get $args-size))";
    let sleep = "(call $block (call $after (i64.const 100000000000))) unreachable";
    for (expected, guest, pairs) in [
        ("answer", ending(answer), &[][..]),
        ("failure", ending("(call $fail (local.get $args) (local.get $args-size))"), &[]),
        ("trap", ending("unreachable"), &[]),
        ("trap", ending("(i32.load (i32.const -8))"), &[]),
        ("trap", ending("(call $answer (i32.const -16) (i32.const 99))"), &[]),
        ("exit", with_exit(ending("(call $exit (i32.const 1)) unreachable")), &[]),
        ("time-limit", with_clock(ending(sleep)), &["wall_ms=200"]),
        ("fuel-limit", ending(LOOP), &["fuel=1000000"]),
        (
            "memory-limit",
            ending(
                "(if (i32.eq (i32.const -1) (memory.grow (i32.const 20))) (then unreachable)) (i32.const 0)",
            ),
            &["memory_mib=1"],
        ),
        (
            "output-limit",
            with_random(ending("(call $random (i64.const 2000000) (i32.const 1500)) unreachable")),
            &[],
        ),
    ] {
        let outcome = call(&load(&guest, pairs).await, "{}").await;
        assert_eq!(ended_by(&outcome), expected);
        let bill = receipt(&outcome);
        is_of_work(bill, expected);
        let ended = (expected != "answer").then_some(expected);
        assert_eq!(bill.ended_by, ended);
    }
}

#[tokio::test]
async fn an_abort_is_billed() {
    let sleep = "(call $block (call $after (i64.const 100000000000))) unreachable";
    for guest in [with_clock(ending(sleep)), ending(LOOP)] {
        let plugin = load(&guest, &[]).await;
        let abort = AbortSignal::new();
        let running = plugin.call_tool("run", "{}", Progress::default(), abort.clone());
        let aborting = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            abort.cancel();
        };
        let (outcome, ()) = futures::join!(running, aborting);
        assert_eq!(receipt(&outcome).ended_by, Some("aborted"));
        is_of_work(receipt(&outcome), "aborted");
    }
}

/// Waiting is not running: each is on the bill by itself.
#[tokio::test]
async fn waiting_has_a_line_of_its_own() {
    let nap = with_clock(Guest::call(
        "(call $block (call $after (i64.const 100000000))) (call $answer (local.get $args) (local.get $args-size))",
    ));
    let plugin = load(&nap, &["concurrent_calls=1"]).await;
    let outcomes = futures::future::join_all((0..3).map(|_| call(&plugin, "{}"))).await;
    let mut waited: Vec<u64> = outcomes.iter().map(|o| receipt(o).waiting_us / 1_000).collect();
    waited.sort_unstable();
    assert!(waited[0] < 90 && waited[1] >= 95 && waited[2] >= 195, "{waited:?}");
    assert!(outcomes.iter().all(|outcome| receipt(outcome).wall_us >= 99_000));
    // One that never got its slot has waited and nothing else.
    let hasty = load(&nap, &["concurrent_calls=1", "queue_ms=20"]).await;
    let outcomes = futures::future::join_all((0..2).map(|_| call(&hasty, "{}"))).await;
    let refused = outcomes.iter().find(|outcome| outcome.answer.is_err()).unwrap();
    let bill = receipt(refused);
    assert_eq!((bill.ended_by, bill.wall_us, bill.fuel), (Some("queue-limit"), 0, None));
    assert!(bill.waiting_us >= 20_000, "{bill:?}");
}

/// Each call into the host is on its line, with its bytes.
#[tokio::test]
async fn calls_into_the_host() {
    let answer = "(call $answer (local.get $args) (local.get $args-size))";
    let with = |body: &str| Guest::call(crate::guest::leak(format!("{body} {answer}")));
    let bill = async |guest: Guest| receipt(&call(&load(&guest, &[]).await, "{}").await).clone();
    let progress = bill(with_progress(with(
        "(i32.store offset=4 (i32.const 1300) (i32.const 2048)) (i32.store offset=8 (i32.const 1300) (i32.const 5))
         (call $report-raw (i32.const 1300) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0))",
    )))
    .await;
    assert_eq!((progress.host_calls.progress.calls, progress.host_calls.progress.bytes), (1, 5));
    let log =
        bill(with_log(with("(call $log (i32.const 1) (i32.const 2048) (i32.const 7))"))).await;
    assert_eq!((log.host_calls.log.calls, log.log.bytes), (1, 7));
    let asked =
        bill(with_cancellation(with("(drop (call $is-cancelled)) (drop (call $remaining-ms))")))
            .await;
    assert_eq!(asked.host_calls.cancellation.calls, 2);
    let random = bill(with_random(with("(call $random (i64.const 9) (i32.const 1500))"))).await;
    assert_eq!((random.host_calls.random.calls, random.host_calls.random.bytes), (1, 9));
    let denied = bill(with_key_value(with(
        "(call $kv-write (i32.const 2048) (i32.const 3) (i32.const 0) (i32.const 9) (i32.const 1500))",
    )))
    .await;
    assert_eq!(denied.refusals.len(), 1);
    assert!(denied.refusals[0].contains("grants.kv = true"), "{:?}", denied.refusals);
    let said = bill(with_stdio(with(
        "(call $write (call $stdout) (i32.const 0) (i32.const 11) (i32.const 1500))
         (call $write (call $stderr) (i32.const 0) (i32.const 13) (i32.const 1500))",
    )))
    .await;
    assert_eq!((said.stdout.bytes, said.stderr.bytes), (11, 13));
    // An import that is not used costs nothing.
    assert_eq!(bill(with_http(with(""))).await.host_calls.http.calls, 0);
}

#[tokio::test]
async fn files_requests_and_values() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "12345").unwrap();
    let server = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc");
    let granted = [
        format!("files={}:/w:read-write", folder.path().display()),
        server.grant("GET"),
        "kv=on".into(),
        "config.color=green".into(),
    ];
    let prober = Prober::with(&[], &granted).await;
    let (outcomes, bill) = prober
        .try_steps(json!([
            {"do": "open", "dir": "/w", "path": "a", "get": 100},
            {"do": "open", "dir": "/w", "path": "b", "create": true, "write": true, "put": "1234567"},
            server.get("/"),
            {"do": "http", "authority": "evil.example.com", "path": "/"},
            {"do": "kv_write", "key": "k", "value": "1234"},
            {"do": "kv_read", "key": "k"},
            {"do": "config", "key": "color"},
            {"do": "config", "key": "size"},
        ]))
        .await;
    assert_eq!((&outcomes[6]["ok"], &outcomes[7]["ok"]), (&json!("green"), &json!(null)));
    assert_eq!(bill.host_calls.files.bytes, 12);
    assert!(bill.host_calls.files.calls >= 4, "{bill:?}");
    assert_eq!(
        (bill.host_calls.http.calls, bill.host_calls.http.bytes, bill.http_requests),
        (1, 3, 1)
    );
    assert_eq!((bill.host_calls.key_value.calls, bill.host_calls.key_value.bytes), (2, 8));
    assert_eq!((bill.host_calls.config.calls, bill.host_calls.config.bytes), (2, 5));
    assert_eq!(bill.refusals.len(), 1, "{:?}", bill.refusals);
}

/// A report after the fence is shut is late, and counted.
#[tokio::test]
async fn late_progress_is_counted() {
    let guest = with_progress(Guest::call(
        "(call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
         (call $answer (local.get $args) (local.get $args-size))",
    ));
    let plugin: Plugin = load(&guest, &[]).await;
    // Nobody listens: the fence of such a progress is shut.
    let outcome = call(&plugin, "{}").await;
    assert_eq!((receipt(&outcome).progress.shown, receipt(&outcome).progress.late), (0, 1));
}

/// Hooks have bills too, and what they report is dropped and counted.
#[tokio::test]
async fn hooks_are_billed() {
    let prober = Prober::with::<&str>(&[], &[]).await;
    let arguments = json!({
        "before": {"steps": [{"do": "progress", "text": "hello"}], "block": "no"},
        "after": {"steps": [{"do": "progress", "text": "hello"}, {"do": "panic", "text": "on purpose"}]},
    });
    let call = Call {
        id: "call".into(),
        name: "any".into(),
        arguments: Arc::new(arguments.as_object().cloned().unwrap()),
    };
    let assistant = Arc::new(AssistantMessage::pending());
    let hooked = HookedCall { call: &call, plugin: "any", assistant: &assistant };
    let abort = AbortSignal::new();
    let before = prober.0.before_hook().unwrap().before(hooked, &abort).await;
    let bill = before.receipt.unwrap();
    let bill: &Receipt = bill.as_any().downcast_ref().unwrap();
    assert_eq!((bill.progress.dropped, bill.progress.shown, bill.ended_by), (1, 0, None));
    assert!(bill.fuel.unwrap() > 1_000);
    let result = ToolResult::text("plain");
    let duration = Duration::ZERO;
    let ran =
        cofferdam_agent::hook::Ran { result: &result, is_error: false, ended_by: None, duration };
    let after = prober.0.after_hook().unwrap().after(hooked, ran, &abort).await;
    assert!(after.answer.unwrap_err().contains("on purpose"));
    let bill = after.receipt.unwrap();
    let bill: &Receipt = bill.as_any().downcast_ref().unwrap();
    assert_eq!((bill.progress.dropped, bill.ended_by), (1, Some("trap")));
    assert!(bill.stderr.bytes > 0 && bill.memory_peak_bytes > 1 << 16);
}
