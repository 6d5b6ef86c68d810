//! Ten thousand calls through the agent loop, aborted at random times: each has one end and one bill,
//! and none hangs.

use crate::census::{Census, alone, resident_kib};
use crate::guest::Guest;
use crate::guest::imports::{with_cancellation, with_clock, with_exit, with_progress, with_stdio};
use crate::support::{LOOP, Prober, Server, grants, limits, load_in};
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::testing::{ScriptedModel, answer};
use cofferdam_agent::tool::{Call, Outcome, Tool};
use cofferdam_agent::toolset::{Rules, Toolset};
use cofferdam_agent::{Agent, AgentConfig, Settings};
use cofferdam_sandbox::{Receipt, Sandbox, SandboxConfig};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CALLS_OF_A_RUN: usize = 20;

/// xorshift64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// What happened to each call of one run.
#[derive(Default)]
struct Record {
    calls: Mutex<HashMap<String, Seen>>,
}

#[derive(Default)]
struct Seen {
    starts: usize,
    ends: usize,
    late_updates: usize,
    ran: bool,
    ended_by: Option<String>,
    bill: Option<Receipt>,
}

impl Observer for Record {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let mut calls = self.calls.lock().unwrap();
        match event {
            Event::ToolExecutionStart { call } => {
                calls.entry(call.id.into()).or_default().starts += 1;
            }
            Event::ToolExecutionUpdate { call, .. } => {
                let seen = calls.entry(call.id.into()).or_default();
                seen.late_updates += seen.ends;
            }
            Event::ToolExecutionEnd { call, end } => {
                let seen = calls.entry(call.id.into()).or_default();
                seen.ends += 1;
                seen.ran = !end.duration.is_zero();
                seen.ended_by = end.ended_by.clone();
                let receipt = end.receipt.as_ref();
                seen.bill =
                    receipt.map(|receipt| receipt.as_any().downcast_ref().cloned().unwrap());
            }
            _ => {}
        }
        Box::pin(std::future::ready(()))
    }
}

/// Guests of every temper, each as a tool named after it.
async fn tools(sandbox: &Sandbox, server: &Server, folder: &str) -> Vec<Arc<dyn Tool>> {
    let times = "(local $n i32) (local.set $n (i32.const 50)) (loop $again";
    let again = "(br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (call $answer (local.get $args) (local.get $args-size))";
    let leak = crate::guest::leak;
    let mut tools = Vec::new();
    for (name, guest, pairs) in [
        ("quick_", Guest::default(), &[][..]),
        ("spin_", Guest::call(LOOP), &["wall_ms=100"]),
        ("uncounted_", Guest::call(LOOP), &["wall_ms=100", "fuel=off"]),
        (
            "sleep_",
            with_clock(Guest::call(
                "(call $block (call $after (i64.const 100000000000))) unreachable",
            )),
            &["wall_ms=150"],
        ),
        (
            "nap_",
            with_clock(Guest::call(
                "(call $block (call $after (i64.const 3000000))) (call $answer (local.get $args) (local.get $args-size))",
            )),
            &[],
        ),
        ("trap_", Guest::call("unreachable"), &[]),
        ("exit_", with_exit(Guest::call("(call $exit (i32.const 1)) unreachable")), &[]),
        (
            "bomb_",
            Guest::call(
                "(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable",
            ),
            &["memory_mib=7"],
        ),
        (
            "fill_",
            Guest::call(
                "(drop (memory.grow (i32.const 200))) (loop $again (memory.fill (i32.const 65536) (i32.const 7) (i32.const 13107200)) (br $again)) unreachable",
            ),
            &["wall_ms=60"],
        ),
        (
            "tidy_",
            with_cancellation(Guest::call(
                "(loop $again (br_if $again (i32.eqz (call $is-cancelled)))) (call $answer (local.get $args) (local.get $args-size))",
            )),
            &["wall_ms=100", "grace_ms=50"],
        ),
        (
            "deaf_",
            with_cancellation(Guest::call(
                "(loop $again (drop (call $is-cancelled)) (br $again)) unreachable",
            )),
            &["wall_ms=100", "grace_ms=20"],
        ),
        (
            "chatty_",
            with_progress(Guest::call(leak(format!(
                "{times} (call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) {again}"
            )))),
            &["wall_ms=1000"],
        ),
        (
            "noisy_",
            with_stdio(Guest::call(leak(format!(
                "{times} (call $write (call $stderr) (i32.const 0) (i32.const 4096) (i32.const 1500)) {again}"
            )))),
            &[],
        ),
    ] {
        let plugin = load_in(sandbox, &guest, pairs).await.unwrap();
        tools.extend(plugin.tools(Some(name), None).unwrap());
    }
    let granted =
        grants(&[format!("files={folder}:/w:read-write"), server.grant("GET"), "kv=on".into()]);
    let prober = Prober::load(sandbox, limits(&["wall_ms=300"]), granted).await.unwrap();
    tools.extend(prober.0.tools(None, None).unwrap());
    tools
}

/// A call of some tool, with arguments that fit it.
fn some_call(dice: &mut Dice, names: &[String], server: &Server) -> (String, Value) {
    let name = names[dice.below(names.len() as u64) as usize].clone();
    let arguments = match name.as_str() {
        "probe" => match dice.below(4) {
            0 => json!({"steps": [
                {"do": "open", "dir": "/w", "path": format!("f{}", dice.below(5)), "create": true, "write": true, "fill": 9_000},
                {"do": "list", "dir": "/w"},
            ]}),
            1 => json!({"steps": [
                {"do": "kv_write", "key": format!("k{}", dice.below(5)), "value": "v", "times": 1_000},
                {"do": "kv_keys"},
            ]}),
            2 => json!({"steps": [server.get("/silent")]}),
            _ => json!({"steps": [server.get("/quick"), {"do": "sleep", "ms": 2}]}),
        },
        _ => json!({}),
    };
    (name, arguments)
}

/// One run with its calls; aborted after so many microseconds.
async fn run(
    number: usize,
    toolset: Arc<Toolset>,
    calls: Vec<(String, Value)>,
    abort_after: Option<Duration>,
) -> Arc<Record> {
    let ids: Vec<String> = (0..calls.len()).map(|n| format!("{number}-{n}")).collect();
    let asked = ids
        .iter()
        .zip(&calls)
        .map(|(id, (name, arguments))| (id.as_str(), name.as_str(), arguments.clone()));
    let model = ScriptedModel::new([answer::calls(asked)]);
    let settings = Settings::new(Arc::new(model)).with_toolset(toolset);
    let agent = Agent::new(AgentConfig::new(settings));
    let record = Arc::new(Record::default());
    let subscription = agent.subscribe(record.clone());
    let aborting = async {
        if let Some(after) = abort_after {
            tokio::time::sleep(after).await;
            agent.abort();
        }
    };
    let both = async { tokio::join!(agent.prompt("go"), aborting).0 };
    let ended = tokio::time::timeout(Duration::from_secs(60), both).await;
    ended.unwrap_or_else(|_| panic!("run {number} hangs: {calls:?}")).unwrap();
    drop(subscription);
    for id in &ids {
        let calls = record.calls.lock().unwrap();
        let seen = calls.get(id).unwrap_or_else(|| panic!("{id} has no event"));
        assert_eq!((seen.starts, seen.ends, seen.late_updates), (1, 1, 0), "{id}");
        // One that the loop never started has no bill; every other has one that agrees with its end.
        assert_eq!(seen.ran, seen.bill.is_some(), "{id}: {:?}", seen.ended_by);
        if let Some(bill) = &seen.bill {
            assert_eq!(bill.ended_by, seen.ended_by.as_deref(), "{id}");
        } else {
            assert_eq!(seen.ended_by.as_deref(), Some("aborted"), "{id}");
        }
    }
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_with_random_aborts() {
    let _alone = alone();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0000_0000_0001);
    let calls: usize = std::env::var("CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    eprintln!("SEED={seed} CALLS={calls}");
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|stream, request| {
        if !request.contains("/silent") {
            let _ = std::io::Write::write_all(
                stream,
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            );
        }
        let _ = std::io::Read::read(stream, &mut [0; 64]);
    });
    let sandbox = Sandbox::new(SandboxConfig {
        slots: SLOTS,
        state_dir: Some(folder.path().join("state")),
        ..SandboxConfig::default()
    })
    .unwrap();
    std::fs::create_dir(folder.path().join("w")).unwrap();
    let granted = folder.path().join("w").display().to_string();
    let tools = tools(&sandbox, &server, &granted).await;
    let names: Vec<String> = tools.iter().map(|tool| tool.declaration().name.clone()).collect();
    let toolset = Arc::new(Toolset::new(tools, Rules::Portable));
    // Every slot keeps what a guest has touched, up to a bound: all of them do from the beginning.
    let touched = at_once(&toolset, "fill_run").await;
    assert!(touched.iter().all(|outcome| outcome.answer.is_err()));
    let mut dice = Dice(seed);
    let mut ends: HashMap<String, usize> = HashMap::new();
    let batch = async |dice: &mut Dice, numbers: std::ops::Range<usize>| {
        let runs = numbers.map(|number| {
            let calls = (0..CALLS_OF_A_RUN).map(|_| some_call(dice, &names, &server)).collect();
            // Some at once, some while they wait, some while they run, some never.
            let abort_after = match dice.below(10) {
                0 => None,
                1 => Some(Duration::ZERO),
                2..=5 => Some(Duration::from_micros(dice.below(5_000))),
                _ => Some(Duration::from_micros(dice.below(300_000))),
            };
            tokio::spawn(run(number, toolset.clone(), calls, abort_after))
        });
        futures::future::join_all(runs.collect::<Vec<_>>()).await
    };
    let runs = calls / CALLS_OF_A_RUN;
    let mut storm = async |runs: usize, ends: &mut HashMap<String, usize>| {
        for first in (0..runs).step_by(8) {
            for record in batch(&mut dice, first..(first + 8).min(runs)).await {
                for seen in record.unwrap().calls.lock().unwrap().values() {
                    let end = seen.ended_by.clone().unwrap_or_else(|| "answer".into());
                    let end = if seen.ran { end } else { "never started".into() };
                    *ends.entry(end).or_default() += 1;
                }
            }
        }
    };
    storm(runs / 2, &mut ends).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let census = Census::take();
    let mut resident = resident_kib();
    storm(runs - runs / 2, &mut ends).await;
    eprintln!("{ends:?}");
    assert_eq!(ends.values().sum::<usize>(), runs * CALLS_OF_A_RUN);
    for end in ["answer", "aborted", "time-limit", "trap", "exit", "memory-limit"] {
        assert!(ends.contains_key(end), "no call ended by {end}: {ends:?}");
    }
    census.wait_until_as_before("the storm");
    // What leaks grows in every round; what the allocator keeps does so in one, if at all.
    let mut rounds = vec![resident];
    for _ in 0..3 {
        let after = resident_kib();
        rounds.push(after);
        if after * 100 <= resident * 105 {
            break;
        }
        resident = after;
        storm(runs / 4, &mut ends).await;
    }
    eprintln!("{rounds:?} KiB");
    assert!(rounds.len() < 4 || rounds[3] * 100 <= rounds[2] * 105, "{rounds:?} KiB");
    // Every slot is free again, and no memory is held.
    let outcomes = at_once(&toolset, "quick_run").await;
    assert!(outcomes.iter().all(|outcome| outcome.answer.is_ok()));
}

const SLOTS: u32 = 32;

/// As many calls of one tool as there are slots.
async fn at_once(toolset: &Toolset, name: &str) -> Vec<Outcome> {
    let tool = toolset.get(name).unwrap();
    let calls = (0..SLOTS).map(|_| {
        let call = Call { id: "slot".into(), name: name.into(), arguments: Arc::default() };
        tool.call(call, Default::default(), Default::default())
    });
    futures::future::join_all(calls).await
}
