//! What do 10,000 calls cost that all wait in the host at the same time, and what is left of it
//! afterwards?

use crate::Effort;
use crate::scene::{ARGUMENTS, call, guests, load};
use crate::table::Quantity::{Count, KiB, Micros, Percent};
use crate::table::Row;
use cofferdam_sandbox::{HostImport, Limits, Plugin, Sandbox, SandboxConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CALLS: u32 = 10_000;

/// Where calls wait until all of them are there.
struct Gate {
    arrived: AtomicUsize,
    open: Semaphore,
}

pub(crate) fn ask(_: Effort) -> Vec<Row> {
    let gate = Arc::new(Gate { arrived: AtomicUsize::new(0), open: Semaphore::new(0) });
    let wait = gate.clone();
    let import = HostImport::new(guests::GATE).function("wait", move |_, text| {
        let gate = wait.clone();
        async move {
            gate.arrived.fetch_add(1, Ordering::SeqCst);
            gate.open.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok(text)
        }
    });
    let config = SandboxConfig { slots: CALLS, imports: vec![import], ..SandboxConfig::default() };
    let sandbox = Sandbox::new(config).unwrap();
    let limits = Limits { concurrent_calls: CALLS.into(), wall_ms: 600_000, ..Limits::default() };
    let plugin = load(&sandbox, &guests::waiting(), limits);
    let runtime = Runtime::new().unwrap();
    // What is made once for all calls is not theirs.
    all_at_once(&runtime, &plugin, &gate, 10);

    let before = Process::now();
    let first = all_at_once(&runtime, &plugin, &gate, CALLS as usize);
    let second = all_at_once(&runtime, &plugin, &gate, CALLS as usize);
    let after = Process::now();
    let each = |kib: f64| KiB(kib / f64::from(CALLS));
    vec![
        Row::new(
            "10,000 calls that wait in the host: resident, each",
            each(first.during.resident_kib - before.resident_kib),
        )
        .at_most(KiB(30.0)),
        Row::new("  all of them started in", Micros(first.started.as_secs_f64() * 1e6)),
        Row::new("  while they wait: of one processor", Percent(first.busy_percent)),
        Row::new(
            "  afterwards: resident in slots kept warm, each",
            each(first.after.resident_kib - before.resident_kib),
        ),
        Row::new(
            "  a second time: resident beyond the first, each",
            each(second.during.resident_kib - first.during.resident_kib),
        )
        .at_most(KiB(1.0)),
        Row::new("  afterwards: threads and files", Count(after.handles as f64))
            .at_most(Count(before.handles as f64)),
    ]
}

/// What a round of calls showed.
struct Round {
    started: Duration,
    during: Process,
    busy_percent: f64,
    after: Process,
}

fn all_at_once(runtime: &Runtime, plugin: &Plugin, gate: &Gate, calls: usize) -> Round {
    let began = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..calls {
        let plugin = plugin.clone();
        running.spawn_on(async move { call(&plugin, "run", ARGUMENTS).await }, runtime.handle());
    }
    while gate.arrived.load(Ordering::SeqCst) < calls {
        std::thread::sleep(Duration::from_millis(1));
    }
    let started = began.elapsed();
    let during = Process::now();
    let watched = Duration::from_millis(500);
    std::thread::sleep(watched);
    let busy = Process::now().busy - during.busy;
    gate.arrived.store(0, Ordering::SeqCst);
    gate.open.add_permits(calls);
    runtime.block_on(running.join_all());
    // Threads of the runtimes that have nothing left to do end by themselves.
    std::thread::sleep(Duration::from_millis(100));
    let busy_percent = 100.0 * busy.as_secs_f64() / watched.as_secs_f64();
    Round { started, during, busy_percent, after: Process::now() }
}

/// What the kernel says of this process.
struct Process {
    resident_kib: f64,
    /// Threads and open files.
    handles: usize,
    busy: Duration,
}

impl Process {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let count = |directory| std::fs::read_dir(directory).unwrap().count();
        // Fields 14 and 15, in hundredths of a second; the name before them has no blank.
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
        let ticks: u64 =
            stat.split(' ').skip(13).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
        Self {
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            handles: count("/proc/self/task") + count("/proc/self/fd"),
            busy: Duration::from_millis(ticks * 10),
        }
    }
}
