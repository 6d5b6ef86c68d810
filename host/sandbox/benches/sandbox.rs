//! What the wall costs: a fresh guarded call against the bare engine with the same settings.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../tests/guest/mod.rs"]
#[allow(dead_code)]
mod guest;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Code, Grants, Limits, Plugin, PluginSource, Sandbox, SandboxConfig};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::executor::block_on;
use guest::Guest;
use wasmtime::component::{Component, Linker};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
};

const ARGUMENTS: &str = r#"{"path":"src/main.rs","offset":10,"limit":200}"#;

fn load(sandbox: &Sandbox, guest: &Guest, limits: Limits) -> Plugin {
    let source = PluginSource {
        name: "guest".into(),
        code: Code::Bytes(guest.text().into_bytes()),
        sha256: None,
        accept_text: true,
    };
    block_on(Plugin::load(sandbox, source, limits, Grants::default())).unwrap()
}

/// Store, instance, call and drop, with the engine's settings of the sandbox and nothing else.
fn bare(c: &mut Criterion) {
    let mut config = Config::new();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(640)
        .total_tables(640)
        .max_memory_size(4 << 30)
        .pagemap_scan(Enabled::Yes)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10);
    config
        .epoch_interruption(true)
        .consume_fuel(true)
        .concurrency_support(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    let engine = Engine::new(&config).unwrap();
    let component =
        Component::new(&engine, wat::parse_str(Guest::default().text()).unwrap()).unwrap();
    let pre = Linker::<()>::new(&engine).instantiate_pre(&component).unwrap();
    let tools = component.get_export_index(None, "cofferdam:plugin/tools@0.1.0").unwrap();
    let call = component.get_export_index(Some(&tools), "call-tool").unwrap();
    c.bench_function("bare engine, fresh instance", |b| {
        b.iter(|| {
            block_on(async {
                let mut store = Store::new(&engine, ());
                store.set_fuel(1 << 40).unwrap();
                store.set_epoch_deadline(1 << 40);
                let instance = pre.instantiate_async(&mut store).await.unwrap();
                let call = instance.get_func(&mut store, call).unwrap();
                let field = |name: &str, value: &str| {
                    (name.into(), wasmtime::component::Val::String(value.into()))
                };
                let arguments = wasmtime::component::Val::Record(vec![
                    field("id", "call"),
                    field("name", "run"),
                    field("arguments", ARGUMENTS),
                    ("meta".into(), wasmtime::component::Val::List(vec![])),
                ]);
                let mut results = [wasmtime::component::Val::Bool(false)];
                call.call_async(&mut store, &[arguments], &mut results).await.unwrap();
            });
        });
    });
}

fn guarded(c: &mut Criterion) {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let plugin = load(&sandbox, &Guest::default(), Limits::default());
    let uncounted = load(&sandbox, &Guest::default(), Limits { fuel: None, ..Limits::default() });
    let here = |plugin: &Plugin| {
        let outcome = block_on(plugin.call_tool_here(
            "run",
            ARGUMENTS,
            Progress::default(),
            AbortSignal::new(),
        ));
        assert!(outcome.answer.is_ok());
    };
    c.bench_function("guarded call, in place", |b| b.iter(|| here(&plugin)));
    c.bench_function("guarded call, in place, no fuel", |b| b.iter(|| here(&uncounted)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    c.bench_function("guarded call, on the sandbox's threads", |b| {
        b.iter(|| {
            let outcome = block_on(plugin.call_tool(
                "run",
                ARGUMENTS,
                Progress::default(),
                AbortSignal::new(),
            ));
            assert!(outcome.answer.is_ok());
        });
    });
    let mut group = c.benchmark_group("batch");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 guarded calls at once", |b| {
        b.iter(|| {
            runtime.block_on(async {
                let calls = (0..100).map(|_| {
                    plugin.call_tool("run", ARGUMENTS, Progress::default(), AbortSignal::new())
                });
                futures::future::join_all(calls).await
            })
        });
    });
    group.finish();
    let trap = load(&sandbox, &Guest::call("unreachable"), Limits::default());
    c.bench_function("guarded call that traps", |b| {
        b.iter(|| {
            block_on(trap.call_tool_here("run", ARGUMENTS, Progress::default(), AbortSignal::new()))
        });
    });
}

criterion_group!(benches, bare, guarded);
criterion_main!(benches);
