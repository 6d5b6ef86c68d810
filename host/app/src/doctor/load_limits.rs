//! Limits that bite before a plugin runs, tried on components made for the occasion; and the one on
//! what is kept of a long result, which needs a sandbox of its own.

use super::bench::{Bench, call, component};
use cofferdam_sandbox::{
    Code, Grants, Limits, LoadError, Plugin, PluginSource, Sandbox, SandboxConfig,
};
use std::fmt::Write as _;

const PROBE: &str = include_str!("probes/probe.wat");
/// The probe's own table, and core instances.
const TABLES: u64 = 1;
const INSTANCES: u64 = 2;

/// Proves one of these limits: what is within it is loaded, what is above it is not.
pub(super) async fn prove(
    bench: &Bench,
    key: &str,
    limits: Limits,
    value: u64,
) -> Result<String, String> {
    let limits = Limits { component_mib: 64.max(limits.component_mib.min(1 << 20)), ..limits };
    match key {
        "tables" => {
            let make = |n: u64| with_tables(n.saturating_sub(TABLES));
            exact(bench, limits, make, value, TABLES, "limits.tables", "tables").await
        }
        "instances" => {
            let make = |n: u64| with_instances(n.saturating_sub(INSTANCES));
            exact(bench, limits, make, value, INSTANCES, "instance", "core instances").await
        }
        "component_mib" => {
            let limits = Limits { component_mib: value, ..limits };
            exact(bench, limits, padded, value << 20, 0, "limits.component_mib", "bytes").await
        }
        "function_kib" => {
            let words = "limits.function_kib";
            exact(bench, limits, with_function, value << 10, 2, words, "bytes of a function").await
        }
        "compiled_mib" => {
            let bytes = with_much_code(3_000 * value)?;
            refused(bench.load(bytes, limits).await, "limits.compiled_mib")?;
            Ok(format!("a component with more than {value} MiB of compiled code was refused"))
        }
        "compile_seconds" => {
            let started = std::time::Instant::now();
            let limits = Limits { function_kib: 7_475, compiled_mib: 4_096, ..limits };
            refused(bench.load(with_slow_function()?, limits).await, "limits.compile_seconds")?;
            Ok(format!("a compilation was given up after {} ms", started.elapsed().as_millis()))
        }
        _ => Err("no proof exists for this limit".into()),
    }
}

/// A component at the limit is loaded, one step above it is refused. Below what the probe itself
/// needs, only the refusal can be shown.
async fn exact(
    bench: &Bench,
    limits: Limits,
    make: impl Fn(u64) -> Result<Vec<u8>, String>,
    most: u64,
    least: u64,
    words: &str,
    what: &str,
) -> Result<String, String> {
    if most >= least {
        let loaded = bench.load(make(most)?, limits.clone()).await;
        loaded.map_err(|problem| format!("{most} {what} should be loaded, and: {problem}"))?;
    }
    refused(bench.load(make(most + 1)?, limits).await, words)?;
    Ok(format!("a component with {most} {what} was loaded, with one more it was refused"))
}

fn refused(loaded: Result<Plugin, LoadError>, words: &str) -> Result<(), String> {
    match loaded {
        Err(problem) if problem.to_string().contains(words) => Ok(()),
        Err(problem) => Err(format!("refused for another reason: {problem}")),
        Ok(_) => Err("it was loaded".into()),
    }
}

/// The probe with something more in its module or in the component.
fn with(in_module: &str, in_component: &str) -> Result<Vec<u8>, String> {
    const TABLE: &str = "(table $table 1 funcref)";
    const LIFTED: &str = "(func $list-tools (result (list $tool))";
    let text = PROBE
        .replace(TABLE, &format!("{TABLE} {in_module}"))
        .replace(LIFTED, &format!("{in_component} {LIFTED}"));
    component(&text)
}

fn with_tables(more: u64) -> Result<Vec<u8>, String> {
    with(&"(table 1 funcref)".repeat(usize::try_from(more).unwrap_or_default()), "")
}

fn with_instances(more: u64) -> Result<Vec<u8>, String> {
    let one = "(core instance (instantiate $empty))";
    let instances = one.repeat(usize::try_from(more).unwrap_or_default());
    with("", &format!("(core module $empty) {instances}"))
}

/// The probe as a file of exactly so many bytes: a custom section takes up the rest.
fn padded(bytes: u64) -> Result<Vec<u8>, String> {
    // Its id, its size in five bytes, the size of its name, and a name of three letters.
    const HEAD: usize = 1 + 5 + 1 + 3;
    let mut file = component(PROBE)?;
    let rest = usize::try_from(bytes).unwrap_or_default().checked_sub(file.len() + HEAD);
    let rest = rest.ok_or("the probe is larger than that")?;
    let mut size = u32::try_from(rest + HEAD - 6).map_err(|_| "too large")?;
    file.push(0);
    for last in [false, false, false, false, true] {
        file.push((size & 0x7f) as u8 | if last { 0 } else { 0x80 });
        size >>= 7;
    }
    file.extend_from_slice(b"\x03pad");
    file.resize(file.len() + rest, 0);
    Ok(file)
}

/// The probe with a function whose body has exactly so many bytes.
fn with_function(bytes: u64) -> Result<Vec<u8>, String> {
    // A count of locals and the end are in it as well.
    let nops = usize::try_from(bytes).unwrap_or_default().saturating_sub(2);
    with(&format!("(func {})", "nop ".repeat(nops)), "")
}

/// The probe with so many functions of a kilobyte or so of compiled code.
fn with_much_code(functions: u64) -> Result<Vec<u8>, String> {
    let mut module = String::new();
    for function in 0..functions {
        module.push_str("(func (param i32) (result i32) local.get 0");
        for step in 0..100 {
            // Different each time, so that nothing is folded.
            let _ =
                write!(module, " i32.const {} i32.xor i32.const 3 i32.rotl", function * 7 + step);
        }
        module.push(')');
    }
    with(&module, "")
}

/// The probe with a function that keeps the compiler busy for seconds: many values that all live to
/// its end, through many branches.
fn with_slow_function() -> Result<Vec<u8>, String> {
    const LOCALS: usize = 3_000;
    const STEPS: usize = 60_000;
    let mut function = format!("(func (param i64) (result i64) (local {})", "i64 ".repeat(LOCALS));
    for step in 0..STEPS {
        let (a, b, c) = (step % LOCALS, step * 7 % LOCALS, step * 13 % LOCALS);
        let _ = write!(
            function,
            "(local.set {a} (i64.add (local.get {b}) (i64.mul (local.get {c}) (i64.const {step}))))"
        );
        if step % 8 == 0 {
            let _ = write!(
                function,
                "(if (i64.eqz (local.get {b})) (then (local.set {c} (local.get {a}))))"
            );
        }
    }
    function.push_str("(i64.const 0)");
    for local in 0..LOCALS {
        let _ = write!(function, "(local.get {local}) i64.add");
    }
    function.push(')');
    with(&function, "")
}

/// A long result is kept up to the limit, byte for byte.
pub(super) async fn spill(bench: &Bench, limits: Limits, bytes: u64) -> Result<String, String> {
    let folder = tempfile::tempdir().map_err(|problem| format!("no folder: {problem}"))?;
    let config = SandboxConfig {
        slots: 1,
        spill_dir: Some(folder.path().join("spill")),
        ..bench.sandbox.config().clone()
    };
    let sandbox = Sandbox::new(config).map_err(|problem| problem.to_string())?;
    let source = PluginSource {
        name: "probe".into(),
        code: Code::Bytes(PROBE.into()),
        sha256: None,
        accept_text: true,
    };
    let limits = Limits { result_kib: 1, ..limits };
    let probe = Plugin::load(&sandbox, source, limits, Grants::default()).await;
    let probe = probe.map_err(|problem| problem.to_string())?;
    for (asked, whole) in [(bytes.max(1_025), bytes > 1_024), (bytes.max(1_024) + 1, false)] {
        let called = call(&probe, &format!("9 {asked} 0|")).await;
        called.answered("a long result, cut")?;
        let Some(kept) = &called.receipt.spilled else {
            return Err(format!("nothing was kept: {}", called.receipt.cuts.join("; ")));
        };
        let on_disk = std::fs::metadata(&kept.path).map_err(|problem| problem.to_string())?.len();
        if (kept.bytes, on_disk, kept.whole) != (bytes, bytes, whole) {
            return Err(format!("of {asked} bytes, {kept:?} with {on_disk} bytes on disk"));
        }
    }
    Ok(format!("{bytes} bytes of a longer result were kept"))
}
