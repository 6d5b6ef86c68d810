//! The engine, what all plugins share, and compiled code.

use super::bench::{self, Bench};
use super::limits::load;
use super::report::{Row, Verdict};
use crate::config::{SandboxEntry, SettingRow};
use cofferdam_sandbox::{Grants, Limits, Sandbox};
use futures::future::join_all;

/// How guests are run, and whether the clock of their limits ticks.
pub(super) fn engine(sandbox: &Sandbox) -> Vec<Row> {
    let row = match sandbox.is_ticking() {
        true => Row::ok("engine", sandbox.describe()),
        false => Row::failed("engine", sandbox.describe())
            .with_advice("no limit on time holds; start the program anew"),
    };
    vec![row]
}

/// Compiled code that is kept: every entry is hashed.
pub(super) fn cache(sandbox: &Sandbox) -> Vec<Row> {
    let Some(report) = sandbox.verify_cache() else {
        let why = sandbox.cache_problem().unwrap_or("compiled code is not kept");
        return vec![Row::note("compiled code", why)];
    };
    let found = format!(
        "{}: {} entries, {} MiB, each as it was written",
        report.dir.display(),
        report.entries,
        report.bytes >> 20
    );
    let mut rows = vec![Row::ok("compiled code", found)];
    if !report.removed.is_empty() {
        let keys: Vec<&str> =
            report.removed.iter().map(|key| key.get(..12).unwrap_or(key)).collect();
        let text = format!(
            "{} entries were damaged, and are removed: {}",
            report.removed.len(),
            keys.join(", ")
        );
        rows.push(Row::warning("compiled code", text).with_advice(
            "their plugins are compiled anew when they are next loaded; if this comes again, look at \
             the disk and at who may write there",
        ));
    }
    rows.extend(report.disguised.iter().map(|path| {
        let text = format!("{} was changed in a way that hides it", path.display());
        Row::warning("compiled code", text).with_advice("find out who writes there")
    }));
    rows
}

/// The settings in force, and what of them can be tried.
pub(super) async fn rows(bench: &Bench, entry: &SandboxEntry) -> Vec<Row> {
    let mut rows = Vec::new();
    for SettingRow { key, value, default } in entry.rows_in(bench.sandbox.config()) {
        let row = match key {
            "slots" => Row::proof(key, slots(bench).await),
            "memory_total_mib" => Row::proof(key, memory(bench).await),
            "stack_kib" => Row::proof(key, stack(bench).await),
            _ => Row::new(Verdict::Ok, key, "in force"),
        };
        rows.push(row.with_value(value, default));
    }
    rows
}

/// As many calls as there are slots, and one more.
async fn slots(bench: &Bench) -> Result<String, String> {
    const TRIED_MAX: u32 = 256;
    const SLEEP: &str = "2 60000 0|";
    let slots = bench.sandbox.config().slots;
    if slots > TRIED_MAX {
        return Ok(format!("in force; not tried, as it would take {slots} calls at once"));
    }
    let limits = Limits { concurrent_calls: 10_000, wall_ms: 60_000, ..Limits::default() };
    let probe = load(bench, Limits { queue_ms: 50, ..limits }, Grants::default()).await?;
    let mut held = Vec::new();
    for _ in 0..slots {
        held.push(bench::hold(&probe, SLEEP).await?);
    }
    let above = bench::call(&probe, "0 0 0|").await;
    join_all(held.into_iter().map(bench::Held::end)).await;
    above.ended("one call more", "queue-limit", "limit queue_ms")?;
    Ok(format!("{slots} calls ran together, one more waited and gave up"))
}

/// A call that stays within its own memory, and not within that of all.
async fn memory(bench: &Bench) -> Result<String, String> {
    let total = bench.sandbox.config().memory_total_mib;
    if total > 4_096 {
        return Ok("in force; not tried, as one call cannot have so much".into());
    }
    if bench.sandbox.config().slots < 2 {
        return Ok("in force; not tried, as it takes two calls at once".into());
    }
    let limits = Limits { memory_mib: 4_096, wall_ms: 60_000, ..Limits::default() };
    let probe = load(bench, limits, Grants::default()).await?;
    let held = bench::hold(&probe, "2 60000 0|").await?;
    let all = bench::call(&probe, &format!("3 {} 0|", total * 16)).await;
    held.end().await;
    all.ended("the memory of two calls", "memory-limit", "memory_total_mib")?;
    Ok(format!("with {total} MiB, two calls together did not get more"))
}

async fn stack(bench: &Bench) -> Result<String, String> {
    let called = bench.limited(Limits::default(), "22 0 0|").await;
    called.ended("a call of itself without end", "trap", "ran out of stack")?;
    Ok("a call of itself without end was stopped".into())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Row, Verdict};
    use cofferdam_sandbox::{
        CacheConfig, Code, Grants, Limits, Plugin, PluginSource, Sandbox, SandboxConfig,
        component_bytes,
    };
    use std::path::Path;

    fn sandbox(dir: &Path) -> Sandbox {
        let cache = Some(CacheConfig { dir: dir.into(), size_mib: 100 });
        Sandbox::new(SandboxConfig { slots: 2, cache, ..SandboxConfig::default() }).unwrap()
    }

    fn rows(sandbox: &Sandbox) -> Vec<Row> {
        super::cache(sandbox)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn damaged_code_is_found_by_its_hash_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("compiled");
        let file = folder.path().join("probe.wasm");
        let text = include_bytes!("probes/probe.wat");
        std::fs::write(&file, component_bytes(text, true).unwrap()).unwrap();
        let sandbox = sandbox(&dir);
        let source = PluginSource {
            name: "probe".into(),
            code: Code::Path(file),
            sha256: None,
            accept_text: false,
        };
        Plugin::load(&sandbox, source, Limits::default(), Grants::default()).await.unwrap();
        let found = rows(&sandbox);
        assert_eq!((found.len(), found[0].verdict), (1, Verdict::Ok), "{found:#?}");
        assert!(found[0].found.contains("1 entries"), "{found:#?}");

        // One bit, in the largest file: size and name stay.
        let files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let code = files.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let mut bytes = std::fs::read(&code).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&code, bytes).unwrap();
        let found = rows(&sandbox);
        assert_eq!(found[1].verdict, Verdict::Warning, "{found:#?}");
        assert!(found[1].found.contains("1 entries were damaged"), "{found:#?}");
        assert!(!code.exists());
        assert_eq!(rows(&sandbox).len(), 1, "once removed, nothing is damaged");
    }
}
