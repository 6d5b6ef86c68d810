//! Calls into guests: good ones, hostile ones, aborted ones, and what is left after them.

use crate::guest::Guest;
use crate::guest::imports::{with_cancellation, with_clock};
use crate::support::{LOOP, call, ended_by, load, load_in, receipt, text};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Sandbox, SandboxConfig};
use std::time::{Duration, Instant};

const SLEEP: &str = "(call $block (call $after (i64.const 100000000000))) unreachable";

#[tokio::test]
async fn an_answer_with_its_bill() {
    let plugin = load(&Guest::default(), &[]).await;
    assert_eq!(plugin.tool_specs().len(), 1, "{:?}", plugin.refused_tools());
    let outcome = call(&plugin, r#"{"a":"é"}"#).await;
    assert_eq!(text(&outcome), r#"{"a":"é"}"#);
    let bill = receipt(&outcome);
    assert!((10..1_000).contains(&bill.fuel.unwrap()), "{bill:?}");
    assert_eq!(bill.memory_peak_bytes, 65_536);
    assert_eq!(
        bill.fuel,
        receipt(&call(&plugin, r#"{"a":"é"}"#).await).fuel,
        "fuel is deterministic"
    );
    let here = plugin.call_tool_here("run", "{}", Progress::default(), AbortSignal::new()).await;
    assert_eq!(text(&here), "{}");
    let uncounted = load(&Guest::default(), &["fuel=off"]).await;
    assert_eq!(receipt(&call(&uncounted, "{}").await).fuel, None);
}

#[tokio::test]
async fn a_tool_that_is_not_there() {
    let plugin = load(&Guest::default(), &[]).await;
    let outcome = plugin.call_tool("rum", "{}", Progress::default(), AbortSignal::new()).await;
    assert!(outcome.answer.unwrap_err().message.contains("did you mean `run`"));
    assert!(plugin.tools(None, Some(&["walk".into()])).is_err());
    assert!(plugin.tools(Some("9"), None).is_err());
    assert_eq!(plugin.tools(Some("x_"), None).unwrap()[0].declaration().name, "x_run");
}

#[tokio::test]
async fn aborts_end_spinning_and_sleeping_guests_in_milliseconds() {
    for (name, guest) in [("loop", Guest::call(LOOP)), ("sleep", with_clock(Guest::call(SLEEP)))] {
        let plugin = load(&guest, &[]).await;
        for here in [false, true] {
            let abort = AbortSignal::new();
            let (running, signal) = (plugin.clone(), abort.clone());
            let task = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let outcome = runtime.block_on(async {
                    match here {
                        true => {
                            running.call_tool_here("run", "{}", Progress::default(), signal).await
                        }
                        false => running.call_tool("run", "{}", Progress::default(), signal).await,
                    }
                });
                (outcome, Instant::now())
            });
            tokio::time::sleep(Duration::from_millis(30)).await;
            let asked = Instant::now();
            abort.cancel();
            let (outcome, ended) = task.join().unwrap();
            assert_eq!(ended_by(&outcome), "aborted");
            assert!(ended - asked < Duration::from_millis(100), "{name}: {:?}", ended - asked);
        }
    }
}

/// The engine forgets what a loop used that it is stopped in (wasmtime issue 13802): the bill must not.
#[tokio::test]
async fn a_loop_that_is_stopped_is_billed_for_its_fuel() {
    let plugin = load(&Guest::call(LOOP), &["wall_ms=50"]).await;
    let outcome = call(&plugin, "{}").await;
    assert_eq!(ended_by(&outcome), "time-limit");
    assert!(receipt(&outcome).fuel.unwrap() >= 1_000_000, "{:?}", receipt(&outcome));
}

#[tokio::test]
async fn an_abort_before_the_start_runs_nothing_for_long() {
    let plugin = load(&Guest::call(LOOP), &[]).await;
    let abort = AbortSignal::new();
    abort.cancel();
    let outcome = plugin.call_tool("run", "{}", Progress::default(), abort).await;
    assert_eq!(ended_by(&outcome), "aborted");
}

#[tokio::test]
async fn a_guest_that_looks_for_cancellation_gets_its_grace() {
    let tidy = with_cancellation(Guest::call(
        "(loop $again (br_if $again (i32.eqz (call $is-cancelled))))
         (call $answer (local.get $args) (local.get $args-size))",
    ));
    let deaf = with_cancellation(Guest::call(
        "(loop $again (drop (call $is-cancelled)) (br $again)) unreachable",
    ));
    for (guest, pairs, end) in [
        (&tidy, &["grace_ms=5000"][..], "answer"),
        (&deaf, &["grace_ms=50"], "aborted"),
        (&tidy, &["grace_ms=0"], "aborted"),
    ] {
        let plugin = load(guest, pairs).await;
        let abort = AbortSignal::new();
        let signal = abort.clone();
        let task = tokio::spawn(async move {
            plugin.call_tool("run", "{}", Progress::default(), signal).await
        });
        tokio::time::sleep(Duration::from_millis(30)).await;
        abort.cancel();
        assert_eq!(ended_by(&task.await.unwrap()), end, "{pairs:?}");
    }
}

#[tokio::test]
async fn dropping_the_future_stops_the_guest() {
    let sandbox =
        Sandbox::new(SandboxConfig { slots: 1, workers: 1, ..SandboxConfig::default() }).unwrap();
    let good = load_in(&sandbox, &Guest::default(), &[]).await.unwrap();
    for guest in [Guest::call(LOOP), with_clock(Guest::call(SLEEP))] {
        let plugin = load_in(&sandbox, &guest, &[]).await.unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(20), call(&plugin, "{}")).await;
        assert!(waited.is_err());
        let started = Instant::now();
        assert_eq!(ended_by(&call(&good, "{}").await), "answer");
        assert!(started.elapsed() < Duration::from_millis(200), "the only slot is free again");
    }
}

#[tokio::test]
async fn waiting_for_a_slot_is_not_wall_time_and_has_its_own_bound() {
    let sleeper = with_clock(Guest::call(
        "(call $block (call $after (i64.const 60000000))) (call $answer (local.get $args) (local.get $args-size))",
    ));
    // The last one waits longer than its wall time, and each has a machine's moods to spare.
    let plugin = load(&sleeper, &["concurrent_calls=1", "wall_ms=400"]).await;
    let outcomes = futures::future::join_all((0..9).map(|_| call(&plugin, "{}"))).await;
    assert!(outcomes.iter().all(|outcome| ended_by(outcome) == "answer"));
    assert!(outcomes.iter().any(|outcome| receipt(outcome).waiting_us > 400_000));

    let hasty = load(&sleeper, &["concurrent_calls=1", "queue_ms=20"]).await;
    let outcomes = futures::future::join_all((0..3).map(|_| call(&hasty, "{}"))).await;
    assert_eq!(outcomes.iter().filter(|outcome| ended_by(outcome) == "queue-limit").count(), 2);

    let short = load(&sleeper, &["concurrent_calls=1", "queue=1"]).await;
    let outcomes = futures::future::join_all((0..4).map(|_| call(&short, "{}"))).await;
    assert_eq!(outcomes.iter().filter(|outcome| ended_by(outcome) == "queue-limit").count(), 2);
}
