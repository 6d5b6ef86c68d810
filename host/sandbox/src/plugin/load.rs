//! From a plugin's code to a compiled component: digest, kind, size and imports are checked first,
//! and what is kept from an earlier start is taken.

use super::source::{Opened, PluginSource, unreadable};
use crate::cache::{About, Cache};
use crate::compile::{compile, map};
use crate::engine::{Machine, Sandbox};
use crate::error::LoadError;
use crate::inspect::{Inspection, component_bytes, inspect_for, sha256_hex};
use crate::limits::{Limits, kib};
use std::time::{Duration, Instant};
use wasmtime::component::Component;

/// Bytes of a page of linear memory.
const WASM_PAGE: u64 = 65_536;
/// Memories of one call, each of which takes a slot of the pool. Whoever waits for many slots at once
/// keeps everybody behind it waiting, so a plugin may not need a large part of them.
const MEMORIES_MAX: u32 = 8;

/// A component that is ready to be linked.
pub(super) struct Compiled {
    pub(super) component: Component,
    pub(super) inspection: Inspection,
    /// How long it took to compile; none if the code was at hand.
    pub(super) time: Option<Duration>,
}

/// Finds or makes the compiled code of a plugin.
pub(super) async fn compiled(
    sandbox: &Sandbox,
    machine: &Machine,
    source: &PluginSource,
    limits: &Limits,
) -> Result<Compiled, LoadError> {
    let mut code = source.code.open()?;
    if let Some(cache) = sandbox.cache()
        && let Some(kept) = kept(cache, sandbox, machine, source, limits, &mut code)?
    {
        return Ok(kept);
    }
    let file = code.read(limits)?;
    within_size(file.len() as u64, limits)?;
    let digest = sha256_hex(&file);
    check_digest(source, &digest)?;
    let bytes = component_bytes(&file, source.accept_text)?;
    let about =
        About { text: bytes != file, inspection: inspect_for(&bytes, &sandbox.config().imports)? };
    within_function(&about.inspection, limits)?;
    let bytes = bytes.into_owned();
    let started = Instant::now();
    let artifact = compile(sandbox, &machine.engine, bytes, limits).await?;
    let time = Some(started.elapsed());
    let inspection = about.inspection.clone();
    let key = key(sandbox, machine, &digest);
    let kept = sandbox.cache().and_then(|cache| cache.keep(&key, &artifact, about));
    let component = match kept.map(|code| map(&machine.engine, &code)) {
        // Mapped, it takes no memory that the system could not take back.
        Some(Ok(component)) => component,
        _ => artifact.load(&machine.engine)?,
    };
    Ok(Compiled { component, inspection, time })
}

/// The code of an earlier start, with every check that does not need the file's content.
fn kept(
    cache: &Cache,
    sandbox: &Sandbox,
    machine: &Machine,
    source: &PluginSource,
    limits: &Limits,
    code: &mut Opened<'_>,
) -> Result<Option<Compiled>, LoadError> {
    within_size(code.size()?, limits)?;
    let digest = match code {
        Opened::Bytes(bytes) => sha256_hex(bytes),
        Opened::File { path, file } => {
            cache.digest(path, file).map_err(|error| unreadable(path, error))?
        }
    };
    check_digest(source, &digest)?;
    let key = key(sandbox, machine, &digest);
    let Some(hit) = cache.find(&key).filter(|hit| source.accept_text || !hit.about.text) else {
        return Ok(None);
    };
    let inspection = hit.about.inspection;
    within_function(&inspection, limits)?;
    within_compiled(hit.size, limits)?;
    match map(&machine.engine, &hit.code) {
        Ok(component) => Ok(Some(Compiled { component, inspection, time: None })),
        Err(_) => {
            cache.remove(&key);
            Ok(None)
        }
    }
}

fn key(sandbox: &Sandbox, machine: &Machine, digest: &str) -> String {
    let offered: Vec<&str> =
        sandbox.config().imports.iter().map(|import| import.interface()).collect();
    Cache::key(digest, &machine.fingerprint, &offered)
}

fn check_digest(source: &PluginSource, found: &str) -> Result<(), LoadError> {
    match &source.sha256 {
        Some(pinned) if !pinned.eq_ignore_ascii_case(found) => {
            Err(LoadError::Digest { pinned: pinned.clone(), found: found.into() })
        }
        _ => Ok(()),
    }
}

fn within_size(found: u64, limits: &Limits) -> Result<(), LoadError> {
    within("bytes of component", found, limits.component_mib << 20, "component_mib")
}

fn within_function(inspection: &Inspection, limits: &Limits) -> Result<(), LoadError> {
    let (found, limit) = (inspection.code.largest_function_bytes, kib(limits.function_kib) as u64);
    within("bytes in its largest function", found, limit, "function_kib")
}

/// A product of the compiler that is larger than the limits allow is not loaded, whoever made it.
pub(crate) fn within_compiled(found: u64, limits: &Limits) -> Result<(), LoadError> {
    within("bytes of compiled code", found, limits.compiled_mib << 20, "compiled_mib")
}

fn within(what: &'static str, found: u64, limit: u64, key: &'static str) -> Result<(), LoadError> {
    if found <= limit { Ok(()) } else { Err(LoadError::TooLarge { what, found, limit, key }) }
}

/// How many slots one call takes, after a look at what the component needs before it runs.
pub(super) fn weight(component: &Component, limits: &Limits, slots: u32) -> Result<u32, LoadError> {
    // None if the component brings memories in from outside, which the contract has no way to do.
    let Some(needs) = component.resources_required() else { return Ok(1) };
    let memory = needs.max_initial_memory_size.unwrap_or_default().saturating_mul(WASM_PAGE);
    within("bytes of memory at its start", memory, limits.memory_bytes() as u64, "memory_mib")?;
    within("tables", needs.num_tables.into(), limits.tables, "tables")?;
    let memories_max = MEMORIES_MAX.min(slots);
    within("memories", needs.num_memories.into(), memories_max.into(), "memory_mib")?;
    Ok(needs.num_memories.max(1))
}
