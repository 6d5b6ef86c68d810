//! Guests beside each other: what one does, and what is done to it, is nothing to the others.

use crate::guest::Guest;
use crate::guest::imports::with_clock;
use crate::support::{LOOP, call, ended_by, load_in, receipt, text};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Sandbox, SandboxConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn sandbox(workers: usize) -> Sandbox {
    Sandbox::new(SandboxConfig { workers, ..SandboxConfig::default() }).unwrap()
}

/// A thousand cuts of one guest, and another that computes all the while: its answers and its bills
/// are those that it gives alone. `CUT_MS` says after how many milliseconds it is cut.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_cut_a_thousand_times_and_the_other_never_notices() {
    let cut_ms: u64 = std::env::var("CUT_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(3);
    let sandbox = sandbox(2);
    // It is asked for its tools under the same limit, which a busy machine may use up.
    let mut spinning = load_in(&sandbox, &Guest::call(LOOP), &[&format!("wall_ms={cut_ms}")]).await;
    while spinning.is_err() {
        spinning = load_in(&sandbox, &Guest::call(LOOP), &[&format!("wall_ms={cut_ms}")]).await;
    }
    let spinning = spinning.unwrap();
    let steady = load_in(
        &sandbox,
        &Guest::call(
            "(local $n i32) (loop $again
               (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 200000))))
             (call $answer (local.get $args) (local.get $args-size))",
        ),
        &[],
    )
    .await
    .unwrap();
    let alone = receipt(&call(&steady, "{}").await).fuel;
    let done = Arc::new(AtomicBool::new(false));
    let cutting = tokio::spawn({
        let done = done.clone();
        async move {
            for _ in 0..1_000 {
                assert_eq!(ended_by(&call(&spinning, "{}").await), "time-limit");
            }
            done.store(true, Ordering::SeqCst);
        }
    });
    let mut answers = 0;
    while !done.load(Ordering::SeqCst) {
        let outcome = call(&steady, "{\"n\":1}").await;
        assert_eq!(text(&outcome), "{\"n\":1}");
        let bill = receipt(&outcome);
        assert_eq!(bill.fuel, alone, "the same call costs the same");
        assert_eq!((bill.ended_by, bill.refusals.len(), bill.cuts.len()), (None, 0, 0));
        answers += 1;
    }
    cutting.await.unwrap();
    assert!(answers > 100, "{answers}");
}

/// As many guests that spin as there are threads for guests: everybody else's timers fire, a call
/// beside them ends, and an abort reaches all of them.
#[tokio::test]
async fn every_worker_spins() {
    let sandbox = sandbox(2);
    let spinning = load_in(&sandbox, &Guest::call(LOOP), &[]).await.unwrap();
    let good = load_in(&sandbox, &Guest::default(), &[]).await.unwrap();
    let napping =
        load_in(&sandbox, &with_clock(Guest::call(
            "(call $block (call $after (i64.const 5000000))) (call $answer (local.get $args) (local.get $args-size))",
        )), &[])
        .await
        .unwrap();
    let abort = AbortSignal::new();
    let spinners: Vec<_> = (0..6)
        .map(|_| {
            let (plugin, abort) = (spinning.clone(), abort.clone());
            tokio::spawn(
                async move { plugin.call_tool("run", "{}", Progress::default(), abort).await },
            )
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    for _ in 0..50 {
        assert_eq!(ended_by(&call(&good, "{}").await), "answer");
    }
    // Timers of guests, which live on the same threads, and those of the embedder, which do not.
    for _ in 0..5 {
        assert_eq!(ended_by(&call(&napping, "{}").await), "answer");
    }
    let asked = Instant::now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    // A limit on time is a timer too.
    let cut = load_in(&sandbox, &Guest::call(LOOP), &["wall_ms=200"]).await.unwrap();
    let outcome = call(&cut, "{}").await;
    assert_eq!(ended_by(&outcome), "time-limit");
    assert!(receipt(&outcome).wall_us < 2_000_000, "{:?}", receipt(&outcome));
    let asked = Instant::now();
    abort.cancel();
    for spinner in spinners {
        assert_eq!(ended_by(&spinner.await.unwrap()), "aborted");
    }
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
}
