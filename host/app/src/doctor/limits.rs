//! Each limit, tried on the probe: at its value a call goes on, one step above it is stopped.
//!
//! A value that would take long or much to reach is tried at a smaller one, which the row says: that
//! the limit bites is a fact of the code, where it bites is a fact of the value.

use super::bench::{self, Bench, Called};
use super::load_limits;
use super::report::Row;
use super::server::Server;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::grants::{Access, FileGrant, HttpRule};
use cofferdam_sandbox::{Grants, Limits};
use futures::future::join_all;
use std::collections::BTreeSet;

/// Milliseconds of trials that are about time.
const SHORT_MS: u64 = 50;
/// Seconds of a sleep that something must end.
const LONG: &str = "2 60000 0|";
const KIB: u64 = 1_024;
const PAGES_PER_MIB: u64 = 16;

/// One row for each limit and each value of it that is in force.
pub(super) async fn rows(bench: &Bench, in_force: &[Limits]) -> Vec<Row> {
    let tables: Vec<_> = in_force.iter().map(Limits::rows).collect();
    let mut rows = Vec::new();
    for (at, key) in Limits::KEYS.iter().enumerate() {
        let values: BTreeSet<&str> = tables.iter().map(|table| &*table[at].value).collect();
        for value in values {
            let default = &tables[0][at].default;
            let row = Row::proof(*key, prove(bench, key, value).await);
            rows.push(row.with_value(value, default));
        }
    }
    rows
}

/// Proves one limit at a value, as it is shown; says what happened, or that it did not bite.
async fn prove(bench: &Bench, key: &str, value: &str) -> Result<String, String> {
    let Ok(value) = value.parse::<u64>() else {
        return match key {
            "fuel" => uncounted(bench).await,
            _ => Err(format!("`{value}` is no number, and no proof exists for that")),
        };
    };
    let tried = value.min(cap(bench, key));
    let found = prove_at(bench, key, tried).await;
    if tried == value {
        return found;
    }
    found
        .map(|found| format!("at {tried}: {found}"))
        .map_err(|found| format!("at {tried}: {found}"))
}

/// The largest value at which a limit is tried.
fn cap(bench: &Bench, key: &str) -> u64 {
    match key {
        "wall_ms" | "queue_ms" | "grace_ms" => SHORT_MS,
        "fuel" => 1_000_000,
        "memory_mib" => 64.min((bench.sandbox.config().memory_total_mib / 2).max(1)),
        "concurrent_calls" => 4.min(bench.sandbox.config().slots.into()),
        "queue" => 8,
        "progress_count" | "log_lines" => 1_000,
        "resources" => 1_000,
        "http_requests" | "files_created" => 20,
        "host_alloc_mib" => 8,
        "component_mib" | "compiled_mib" | "compile_seconds" => 1,
        "function_kib" => 16,
        "result_kib" | "spill_kib" | "file_write_kib" => 256,
        "http_body_kib" | "random_kib" | "stdio_kib" | "log_kib" | "progress_kib" => 64,
        _ => u64::MAX,
    }
}

/// Limits that let everything through save one.
fn only(key: &str, value: u64) -> Limits {
    let mut limits = Limits {
        wall_ms: 60_000,
        fuel: Some(1_000_000_000_000),
        memory_mib: 256,
        resources: 100_000,
        host_alloc_mib: 64,
        result_kib: 65_536,
        spill_kib: 65_536,
        progress_count: 100_000,
        progress_kib: 1_048_576,
        log_lines: 100_000,
        log_kib: 65_536,
        http_requests: 10_000,
        http_body_kib: 1_048_576,
        file_write_kib: 1_048_576,
        files_created: 10_000,
        random_kib: 1_048_576,
        ..Limits::default()
    };
    // The value was one of this limit's own, or is smaller than one.
    let _ = limits.set(key, &value.to_string());
    limits
}

async fn prove_at(bench: &Bench, key: &str, value: u64) -> Result<String, String> {
    let limits = only(key, value);
    match key {
        "wall_ms" => wall(bench, limits).await,
        "queue_ms" => queue_ms(bench, limits).await,
        "grace_ms" => grace(bench, limits).await,
        "fuel" => {
            let called = bench.limited(limits, "1 0 0|").await;
            called.ended("a loop", "fuel-limit", "limit fuel")?;
            Ok("a loop used up its fuel and was stopped".into())
        }
        "memory_mib" => {
            let pages = value * PAGES_PER_MIB;
            let stopped = ("memory-limit", "limit memory_mib");
            exact(bench, limits, |n| format!("3 {n} 0|"), pages, stopped, "pages of memory").await
        }
        "table_elements" => {
            let stopped = ("memory-limit", "limit table_elements");
            exact(bench, limits, |n| format!("4 {n} 0|"), value, stopped, "elements").await
        }
        "resources" => {
            let stopped = ("memory-limit", "limit resources");
            exact(bench, limits, |n| format!("10 {n} 0|"), value, stopped, "resources").await
        }
        "host_alloc_mib" => host_alloc(bench, limits, value).await,
        "result_kib" => result(bench, limits, value * KIB).await,
        "spill_kib" => load_limits::spill(bench, limits, value * KIB).await,
        "progress_count" => {
            let stopped = ("output-limit", "limit progress_count");
            exact(bench, limits, |n| format!("5 {n} 0|"), value, stopped, "reports").await
        }
        "progress_kib" => {
            let stopped = ("output-limit", "limit progress_kib");
            exact(bench, limits, |n| format!("5 {n} 1024|"), value, stopped, "KiB of reports").await
        }
        "log_lines" => {
            dropped(
                bench,
                limits,
                &format!("6 {} 8|", value + 1),
                |called| {
                    let log = called.receipt.log;
                    (log.lines, log.lines_dropped)
                },
                value,
                "lines",
            )
            .await
        }
        "log_kib" => {
            dropped(
                bench,
                limits,
                &format!("6 {} 1024|", value + 1),
                |called| {
                    let log = called.receipt.log;
                    (log.bytes / KIB, log.lines_dropped)
                },
                value,
                "KiB of lines",
            )
            .await
        }
        "stdio_kib" => stdio(bench, limits, value * KIB).await,
        "http_requests" => requests(bench, limits, value).await,
        "http_body_kib" => bodies(bench, limits, value * KIB).await,
        "file_write_kib" => written(bench, limits, value * KIB).await,
        "files_created" => created(bench, limits, value).await,
        "file_operations" => file_operations(bench, limits, value).await,
        "random_kib" => {
            let stopped = ("output-limit", "limit random_kib");
            let numbers = value * KIB / 8;
            exact(bench, limits, |n| format!("8 {n} 0|"), numbers, stopped, "random numbers").await
        }
        "concurrent_calls" => concurrent(bench, limits, value).await,
        "queue" => queue(bench, limits, value).await,
        "tables" | "instances" | "component_mib" | "function_kib" | "compiled_mib"
        | "compile_seconds" => load_limits::prove(bench, key, limits, value).await,
        _ => Err("no proof exists for this limit".into()),
    }
}

/// A task at the limit goes on, one step above it is stopped.
async fn exact(
    bench: &Bench,
    limits: Limits,
    task: impl Fn(u64) -> String,
    most: u64,
    (ended_by, words): (&str, &str),
    what: &str,
) -> Result<String, String> {
    let below = bench.limited(limits.clone(), &task(most)).await;
    below.answered(&format!("{most} {what}"))?;
    let above = bench.limited(limits, &task(most + 1)).await;
    above.ended(&format!("{} {what}", most + 1), ended_by, words)?;
    Ok(format!("{most} {what} were let through, one more was stopped"))
}

/// What is above the limit is dropped and counted.
async fn dropped(
    bench: &Bench,
    limits: Limits,
    task: &str,
    taken_and_dropped: impl Fn(&Called) -> (u64, u64),
    most: u64,
    what: &str,
) -> Result<String, String> {
    let called = bench.limited(limits, task).await;
    called.answered(what)?;
    match taken_and_dropped(&called) {
        (taken, 1) if taken == most => Ok(format!("{most} {what} were taken, one more dropped")),
        (taken, dropped) => Err(format!("{taken} {what} were taken and {dropped} dropped")),
    }
}

async fn wall(bench: &Bench, limits: Limits) -> Result<String, String> {
    let ms = limits.wall_ms;
    let looped = bench.limited(limits.clone(), "1 0 0|").await;
    looped.ended("a loop", "time-limit", "limit wall_ms")?;
    let uncounted = bench.limited(Limits { fuel: None, ..limits.clone() }, "1 0 0|").await;
    uncounted.ended("a loop without fuel", "time-limit", "limit wall_ms")?;
    let slept = bench.limited(limits, LONG).await;
    slept.ended("a sleeper", "time-limit", "limit wall_ms")?;
    Ok(format!(
        "{}, {}, {}",
        looped.after("a loop was cut", ms)?,
        uncounted.after("one without fuel", ms)?,
        slept.after("a sleeper was dropped", ms)?
    ))
}

/// Without fuel only time ends a loop.
async fn uncounted(bench: &Bench) -> Result<String, String> {
    let limits = Limits { fuel: None, wall_ms: SHORT_MS, ..Limits::default() };
    let called = bench.limited(limits, "1 0 0|").await;
    called.ended("a loop", "time-limit", "limit wall_ms")?;
    match called.receipt.fuel {
        None => called.after("off: nothing is counted, and a loop was cut by time", SHORT_MS),
        Some(fuel) => Err(format!("off, and yet {fuel} was counted")),
    }
}

async fn queue_ms(bench: &Bench, limits: Limits) -> Result<String, String> {
    let ms = limits.queue_ms;
    let probe = load(bench, Limits { concurrent_calls: 1, ..limits }, Grants::default()).await?;
    let held = bench::hold(&probe, LONG).await?;
    let waited = bench::call(&probe, "0 0 0|").await;
    held.end().await;
    waited.ended("a call without a slot", "queue-limit", "limit queue_ms")?;
    waited.after("a call that waited for a slot gave up", ms)
}

async fn grace(bench: &Bench, limits: Limits) -> Result<String, String> {
    let ms = limits.grace_ms;
    let probe = load(bench, limits, Grants::default()).await?;
    let deaf = bench::hold(&probe, "19 0 0|").await?.end().await;
    deaf.ended("a call that ignores its abort", "aborted", "")?;
    let plain = bench::hold(&probe, LONG).await?.end().await;
    plain.ended("a call that was aborted", "aborted", "")?;
    Ok(format!(
        "{}, {}",
        deaf.after("a call that ignored its abort was cut", ms)?,
        plain.after("one that never asked", 0)?
    ))
}

async fn host_alloc(bench: &Bench, limits: Limits, mib: u64) -> Result<String, String> {
    let half = bench.limited(limits.clone(), &format!("9 {} 0|", mib << 19)).await;
    half.answered("half of it")?;
    let above = bench.limited(limits, &format!("9 {} 0|", (mib << 20) + 65_536)).await;
    above.ended("a larger answer", "output-limit", "limit host_alloc_mib")?;
    Ok(format!("{} KiB were handed over, {} KiB refused", mib << 9, (mib << 10) + 64))
}

async fn result(bench: &Bench, limits: Limits, bytes: u64) -> Result<String, String> {
    let whole = bench.limited(limits.clone(), &format!("9 {bytes} 0|")).await;
    whole.answered("a result of that size")?;
    let cut = bench.limited(limits, &format!("9 {} 0|", bytes + 1)).await;
    cut.answered("a longer result, cut")?;
    match (whole.receipt.cuts.len(), cut.receipt.cuts.len()) {
        (0, 1) if cut.text.contains("cut by the host") => {
            Ok(format!("{bytes} bytes were whole, one more was cut and marked"))
        }
        (whole, cut) => Err(format!("{whole} cuts at the limit and {cut} above it")),
    }
}

async fn stdio(bench: &Bench, limits: Limits, bytes: u64) -> Result<String, String> {
    for (stream, name) in [(0, "output"), (1, "error")] {
        let called = bench.limited(limits.clone(), &format!("7 {} {stream}|", bytes + 1)).await;
        called.answered("what is written")?;
        let kept = if stream == 0 { called.receipt.stdout } else { called.receipt.stderr };
        if (kept.bytes, kept.bytes_dropped) != (bytes, 1) {
            return Err(format!("of standard {name}, {kept:?} for {} bytes", bytes + 1));
        }
    }
    Ok(format!("{bytes} bytes of each stream were kept, one more was dropped"))
}

/// A server, and the grant of it.
fn served() -> Result<(Server, Grants, String), String> {
    let server = Server::start().map_err(|problem| format!("no server on loopback: {problem}"))?;
    let authority = format!("127.0.0.1:{}", server.port());
    let rule = HttpRule::parse(&format!("GET http://{authority}/"))?;
    Ok((server, Grants { http: vec![rule], ..Grants::default() }, authority))
}

async fn requests(bench: &Bench, limits: Limits, most: u64) -> Result<String, String> {
    let (server, grants, authority) = served()?;
    let task = |n: u64| format!("11 {n} 0|{authority}");
    let below = bench.granted(limits.clone(), grants.clone(), &task(most)).await;
    below.answered(&format!("{most} requests"))?;
    let above = bench.granted(limits, grants, &task(most + 1)).await;
    above.refused("one request more", "limit http_requests")?;
    match server.requests() as u64 {
        sent if sent == 2 * most => Ok(format!("{most} requests were sent, one more refused")),
        sent => Err(format!("{sent} requests arrived, {} were allowed", 2 * most)),
    }
}

async fn bodies(bench: &Bench, limits: Limits, bytes: u64) -> Result<String, String> {
    let (server, grants, authority) = served()?;
    let task = format!("11 1 0|{authority}");
    server.set_body(usize::try_from(bytes).unwrap_or(usize::MAX));
    let below = bench.granted(limits.clone(), grants.clone(), &task).await;
    below.answered("a body of that size")?;
    server.set_body(usize::try_from(bytes + 1).unwrap_or(usize::MAX));
    let above = bench.granted(limits, grants, &task).await;
    above.refused("a longer body", "limit http_body_kib")?;
    Ok(format!("a body of {bytes} bytes came through, one more byte did not"))
}

/// A folder to write in, and the grant of it.
pub(super) fn folder() -> Result<(tempfile::TempDir, Grants), String> {
    let folder = tempfile::tempdir().map_err(|problem| format!("no folder: {problem}"))?;
    let grant =
        FileGrant { host: folder.path().into(), guest: "/work".into(), access: Access::ReadWrite };
    Ok((folder, Grants { files: vec![grant], ..Grants::default() }))
}

async fn written(bench: &Bench, limits: Limits, bytes: u64) -> Result<String, String> {
    let (_folder, grants) = folder()?;
    let task = |bytes: u64, name: &str| format!("17 {bytes} 0|{name}");
    let below = bench.granted(limits.clone(), grants.clone(), &task(bytes, "a")).await;
    below.answered("a file of that size")?;
    let above = bench.granted(limits, grants, &task(bytes + 1, "b")).await;
    above.refused("a larger file", "limit file_write_kib")?;
    Ok(format!("{bytes} bytes were written, one more was refused"))
}

async fn created(bench: &Bench, limits: Limits, most: u64) -> Result<String, String> {
    let (_below, grants) = folder()?;
    let below = bench.granted(limits.clone(), grants, &format!("21 {most} 0|")).await;
    below.answered(&format!("{most} directories"))?;
    let (_above, grants) = folder()?;
    let above = bench.granted(limits, grants, &format!("21 {} 0|", most + 1)).await;
    above.refused("one directory more", "limit files_created")?;
    Ok(format!("{most} directories were made, one more refused"))
}

async fn file_operations(bench: &Bench, limits: Limits, most: u64) -> Result<String, String> {
    let (folder, grants) = folder()?;
    std::fs::write(folder.path().join("a"), "x").map_err(|problem| problem.to_string())?;
    let probe = load(bench, Limits { wall_ms: SHORT_MS, ..limits.clone() }, grants.clone()).await?;
    let hung = probe.occupy_file_operations().await;
    let waiting = bench::call(&probe, "16 0 0|a").await;
    waiting.ended("an operation without a place", "time-limit", "limit wall_ms")?;
    // A neighbour has its own places, and gets through.
    bench.granted(limits, grants, "16 0 0|a").await.answered("a neighbour's operation")?;
    drop(hung);
    Ok(format!("with {most} operations that never ended, one more waited and its call was cut"))
}

async fn concurrent(bench: &Bench, limits: Limits, most: u64) -> Result<String, String> {
    let probe = load(bench, Limits { queue: 0, ..limits }, Grants::default()).await?;
    let mut held = Vec::new();
    for _ in 0..most {
        held.push(bench::hold(&probe, LONG).await?);
    }
    let above = bench::call(&probe, "0 0 0|").await;
    join_all(held.into_iter().map(bench::Held::end)).await;
    above.ended("one call more", "queue-limit", "limit queue")?;
    Ok(format!("{most} calls ran together, one more did not"))
}

async fn queue(bench: &Bench, limits: Limits, most: u64) -> Result<String, String> {
    let probe = load(bench, Limits { concurrent_calls: 1, ..limits }, Grants::default()).await?;
    let held = bench::hold(&probe, LONG).await?;
    // One more than may wait: one of them fails at once, whichever it is.
    let abort = AbortSignal::new();
    let waiters = (0..=most)
        .map(|_| Box::pin(probe.call_tool("run", "0 0 0|", Progress::default(), abort.clone())));
    let (first, _, waiting) = futures::future::select_all(waiters).await;
    abort.cancel();
    let others = join_all(waiting).await;
    held.end().await;
    let full = |message: &str| message.contains("(limit queue)");
    let refused = std::iter::once(&first)
        .chain(&others)
        .filter(|outcome| outcome.answer.as_ref().is_err_and(|failure| full(&failure.message)))
        .count();
    match refused {
        1 => Ok(format!("{most} calls waited, one more failed at once")),
        refused => Err(format!("of {} calls, {refused} were refused a place to wait", most + 1)),
    }
}

/// The probe under these terms, or why not.
pub(super) async fn load(
    bench: &Bench,
    limits: Limits,
    grants: Grants,
) -> Result<cofferdam_sandbox::Plugin, String> {
    bench.probe(limits, grants).await.map_err(|problem| format!("the probe was refused: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_sandbox::{Sandbox, SandboxConfig};

    async fn bench() -> Bench {
        let sandbox = Sandbox::new(SandboxConfig { slots: 2, ..SandboxConfig::default() });
        Bench::set_up(&sandbox.unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn a_limit_that_does_not_bite_is_found() {
        let bench = bench().await;
        let stopped = ("output-limit", "limit progress_count");
        let task = |n: u64| format!("5 {n} 0|");
        for (in_force, most, says) in [
            (9, 5, "6 reports should have been stopped"),
            (5, 9, "9 reports should have been let through"),
        ] {
            let found =
                exact(&bench, only("progress_count", in_force), task, most, stopped, "reports");
            let found = found.await.unwrap_err();
            assert!(found.contains(says), "{found}");
        }
        let late = Called {
            took: std::time::Duration::from_secs(2),
            ..bench.limited(Limits::default(), "0 0 0|").await
        };
        assert!(late.after("a loop was cut", 50).unwrap_err().contains("the limit is 50 ms"));
        assert!(late.after("a loop was cut", 5_000).is_err(), "too early is wrong as well");
    }

    #[tokio::test]
    async fn a_limit_without_a_proof_has_failed() {
        let bench = bench().await;
        assert!(prove(&bench, "nonsense", "5").await.unwrap_err().contains("no proof exists"));
        assert!(prove(&bench, "nonsense", "off").await.is_err());
    }
}
