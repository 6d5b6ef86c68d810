//! What the wall costs, for comparing one state of the code with another: criterion keeps the last
//! run and says what changed. The figures that targets are set on are in `figures/`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/guest/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod guest;
#[allow(dead_code, reason = "`figures` uses the rest")]
mod scene;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Grants, Limits, Plugin, Sandbox, SandboxConfig};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::executor::block_on;
use guest::Guest;
use scene::bare::{Bare, Checks};
use scene::{ARGUMENTS, call, call_here, guests, load, load_file, sample};

fn fresh(c: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let guest = Guest::default();
    let wasm = wat::parse_str(guest.text()).unwrap();
    let bare = Bare::small(&wasm, sandbox.allocation(), Checks::FuelAndEpoch);
    let plugin = load(&sandbox, &guest, Limits::default());
    let uncounted = load(&sandbox, &guest, Limits { fuel: None, ..Limits::default() });
    let traps = load(&sandbox, &Guest::call("unreachable"), Limits::default());

    let mut group = c.benchmark_group("fresh call");
    group.bench_function("bare engine", |b| b.iter(|| block_on(bare.call("run", ARGUMENTS))));
    group.bench_function("in place", |b| b.iter(|| call_here(&plugin, "run", ARGUMENTS)));
    group.bench_function("in place, no fuel", |b| {
        b.iter(|| call_here(&uncounted, "run", ARGUMENTS));
    });
    group.bench_function("on the sandbox's threads", |b| {
        b.iter(|| block_on(call(&plugin, "run", ARGUMENTS)));
    });
    group.bench_function("that traps", |b| {
        b.iter(|| {
            let call =
                traps.call_tool_here("run", ARGUMENTS, Progress::default(), AbortSignal::new());
            block_on(call)
        });
    });
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 at once", |b| {
        b.iter(|| {
            block_on(futures::future::join_all((0..100).map(|_| call(&plugin, "run", ARGUMENTS))))
        });
    });
    group.finish();
}

fn languages(c: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let mut group = c.benchmark_group("fresh call in other languages");
    for (name, tool, arguments) in [
        ("words", "count_words", r#"{"text":"a word is a word"}"#),
        ("stats", "describe_numbers", r#"{"numbers":[3,4,5]}"#),
    ] {
        // Where their toolchains could not be had there is nothing to measure.
        let Some(path) = sample(name) else { continue };
        let plugin = load_file(&sandbox, &path, Grants::default());
        group.bench_function(name, |b| b.iter(|| call_here(&plugin, tool, arguments)));
    }
    group.finish();
}

fn kernels(c: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let mut group = c.benchmark_group("kernels");
    for kernel in guests::kernels() {
        let mut measure = |fuel: &str, limits: Limits| {
            let plugin: Plugin = load(&sandbox, &kernel.guest, limits);
            group.bench_function(format!("{}, {fuel}", kernel.name), |b| {
                b.iter(|| call_here(&plugin, "run", kernel.amount));
            });
        };
        measure("fuel", Limits::default());
        measure("no fuel", Limits { fuel: None, ..Limits::default() });
    }
    group.finish();
}

criterion_group!(benches, fresh, languages, kernels);
criterion_main!(benches);
