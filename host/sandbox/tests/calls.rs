//! Calls into guests: good ones, hostile ones, aborted ones, and what is left after them.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod guest;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::Outcome;
use cofferdam_sandbox::{
    Code, Grants, Limits, LoadError, Plugin, PluginSource, Receipt, Sandbox, SandboxConfig,
};
use guest::Guest;
use guest::hostile::{self, End};
use guest::imports::{with_cancellation, with_clock};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxConfig::default()).unwrap());

const LOOP: &str = "(loop $again (br $again)) unreachable";
const SLEEP: &str = "(call $block (call $after (i64.const 100000000000))) unreachable";

fn limits(pairs: &[&str]) -> Limits {
    let mut limits = Limits::default();
    pairs.iter().for_each(|pair| limits.set_pair(pair).unwrap());
    limits
}

fn source(text: String) -> PluginSource {
    PluginSource {
        name: "guest".into(),
        code: Code::Bytes(text.into_bytes()),
        sha256: None,
        accept_text: true,
    }
}

async fn load_in(sandbox: &Sandbox, guest: &Guest, pairs: &[&str]) -> Result<Plugin, LoadError> {
    Plugin::load(sandbox, source(guest.text()), limits(pairs), Grants::default()).await
}

async fn load(guest: &Guest, pairs: &[&str]) -> Plugin {
    load_in(&SANDBOX, guest, pairs).await.unwrap()
}

async fn call(plugin: &Plugin, arguments: &str) -> Outcome {
    plugin.call_tool("run", arguments, Progress::default(), AbortSignal::new()).await
}

fn text(outcome: &Outcome) -> &str {
    match &outcome.answer.as_ref().unwrap().content[..] {
        [Content::Text(text), ..] => text,
        other => panic!("{other:?}"),
    }
}

fn receipt(outcome: &Outcome) -> &Receipt {
    outcome.receipt.as_ref().unwrap().as_any().downcast_ref().unwrap()
}

fn ended_by(outcome: &Outcome) -> &str {
    outcome.answer.as_ref().map_or_else(|failure| failure.ended_by.as_str(), |_| "answer")
}

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

/// Every hostile guest ends as its row says, and a good call works afterwards.
#[tokio::test]
async fn hostile_guests() {
    let good = load(&Guest::default(), &[]).await;
    let mut wrong = Vec::new();
    for row in hostile::all() {
        let started = Instant::now();
        let end = hostile_end(&row).await;
        eprintln!("{:20} {:>8.1} ms  {end}", row.name, started.elapsed().as_secs_f64() * 1e3);
        let fine = match row.end {
            End::Load(words) => end.starts_with("load: ") && end.contains(words),
            End::Tool(words) => end.starts_with("tool: ") && end.contains(words),
            End::Answer => end == "answer",
            End::Call(kind, words) => end.starts_with(kind) && end.contains(words),
        };
        if !fine {
            wrong.push(format!("{}: {end}, expected {:?}", row.name, row.end));
        }
        assert_eq!(text(&call(&good, "{}").await), "{}", "after {}", row.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn hostile_end(row: &hostile::Hostile) -> String {
    let plugin = match load_in(&SANDBOX, &row.guest, row.limits).await {
        Ok(plugin) => plugin,
        Err(error) => return format!("load: {error}"),
    };
    if let [refused, ..] = plugin.refused_tools() {
        return format!("tool: {}", refused.reason);
    }
    match call(&plugin, "{}").await.answer {
        Ok(_) => "answer".into(),
        Err(failure) => format!("{}: {}", failure.ended_by, failure.message),
    }
}

/// The published files are those that the tests run.
#[test]
fn hostile_files_are_up_to_date() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/hostile");
    let update = std::env::var_os("UPDATE").is_some();
    for row in hostile::all() {
        let path = folder.join(format!("{}.wat", row.name));
        let header = format!(
            ";; {}\n;; Limits: {}. Expected: {:?}.\n",
            row.does,
            if row.limits.is_empty() { "the defaults".into() } else { row.limits.join(" ") },
            row.end
        );
        let text = header + &row.guest.text();
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is old; run the tests with UPDATE=1", path.display());
    }
    let known: Vec<String> = hostile::all().iter().map(|row| format!("{}.wat", row.name)).collect();
    for file in std::fs::read_dir(&folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(
            known.contains(&name),
            "no test runs {name}: add a row to guest/hostile.rs or remove it"
        );
    }
}

#[tokio::test]
async fn a_long_answer_is_cut_on_a_character_boundary() {
    let row = hostile::all().into_iter().find(|row| row.name == "answer-long").unwrap();
    let plugin = load(&row.guest, row.limits).await;
    let outcome = call(&plugin, "{}").await;
    assert_eq!(text(&outcome).len(), 1_024);
    assert_eq!(receipt(&outcome).cuts.len(), 1);
    let odd = load(&row.guest, &["result_kib=2", "wall_ms=10000"]).await;
    assert_eq!(text(&call(&odd, "{}").await).len(), 2_048);
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
    let plugin = load(&sleeper, &["concurrent_calls=1", "wall_ms=110"]).await;
    let outcomes = futures::future::join_all((0..4).map(|_| call(&plugin, "{}"))).await;
    assert!(outcomes.iter().all(|outcome| ended_by(outcome) == "answer"));
    assert!(outcomes.iter().any(|outcome| receipt(outcome).waiting_us > 100_000));

    let hasty = load(&sleeper, &["concurrent_calls=1", "queue_ms=20"]).await;
    let outcomes = futures::future::join_all((0..3).map(|_| call(&hasty, "{}"))).await;
    assert_eq!(outcomes.iter().filter(|outcome| ended_by(outcome) == "queue-limit").count(), 2);

    let short = load(&sleeper, &["concurrent_calls=1", "queue=1"]).await;
    let outcomes = futures::future::join_all((0..4).map(|_| call(&short, "{}"))).await;
    assert_eq!(outcomes.iter().filter(|outcome| ended_by(outcome) == "queue-limit").count(), 2);
}

/// As many spinning guests as there are workers: others still run, and aborts still work.
#[tokio::test]
async fn neighbours_of_spinning_guests() {
    let sandbox = Sandbox::new(SandboxConfig { workers: 2, ..SandboxConfig::default() }).unwrap();
    let spinning = load_in(&sandbox, &Guest::call(LOOP), &[]).await.unwrap();
    let good = load_in(&sandbox, &Guest::default(), &[]).await.unwrap();
    let abort = AbortSignal::new();
    let spinners: Vec<_> = (0..4)
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
    abort.cancel();
    for spinner in spinners {
        assert_eq!(ended_by(&spinner.await.unwrap()), "aborted");
    }
}

/// A guest that is cut again and again costs nobody but itself.
#[tokio::test]
async fn a_thousand_failures_leave_nothing_behind() {
    let trap = load(&Guest::call("unreachable"), &[]).await;
    let bomb = load(&Guest::call("(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable"), &[]).await;
    let rounds = |n: usize| {
        let (trap, bomb) = (trap.clone(), bomb.clone());
        async move {
            for round in 0..n {
                assert_eq!(ended_by(&call(&trap, "{}").await), "trap");
                if round % 10 == 0 {
                    assert_eq!(ended_by(&call(&bomb, "{}").await), "memory-limit");
                }
            }
        }
    };
    rounds(300).await;
    let before = resident_kib();
    rounds(1_000).await;
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB more");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
