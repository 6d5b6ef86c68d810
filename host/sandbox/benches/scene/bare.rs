//! The bare engine with the settings of the sandbox: store, instance, typed call and drop, without
//! meters, services, deadlines or receipts. What a call through the wall is measured against.

use bindings::cofferdam::plugin::types::ToolCall;
use bindings::exports::cofferdam::plugin::tools::GuestIndices;
use cofferdam_sandbox::Allocation;
use std::hint::black_box;
use wasmtime::component::{Component, InstancePre, Linker, ResourceTable};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store,
    WasmBacktraceDetails,
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

#[allow(missing_docs, unreachable_pub, unused_qualifications, rust_2018_idioms, clippy::all)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "cofferdam:plugin/tool-plugin",
        exports: { default: async },
    });
}

/// Which checks the compiled code has.
#[derive(Clone, Copy)]
pub(crate) enum Checks {
    /// Those of the sandbox.
    FuelAndEpoch,
    /// None: nothing could stop a loop.
    None,
}

/// A component on an engine of its own.
pub(crate) struct Bare<T: 'static> {
    engine: Engine,
    pre: InstancePre<T>,
    tools: GuestIndices,
    fuel: bool,
    data: fn() -> T,
}

impl Bare<()> {
    /// For a component that imports nothing.
    pub(crate) fn small(wasm: &[u8], allocation: Allocation, checks: Checks) -> Self {
        Self::new(wasm, allocation, checks, |_| {}, || ())
    }
}

impl Bare<Wasi> {
    /// For a component that needs WASI. What it imports of the contract traps.
    pub(crate) fn with_wasi(wasm: &[u8], allocation: Allocation) -> Self {
        let link = |linker: &mut Linker<Wasi>| {
            wasmtime_wasi::p2::add_to_linker_async(linker).expect("an empty linker");
            trap_contract(linker).expect("an empty linker");
        };
        let data = || Wasi { ctx: WasiCtx::builder().build(), table: ResourceTable::new() };
        Self::new(wasm, allocation, Checks::FuelAndEpoch, link, data)
    }
}

impl<T: Send> Bare<T> {
    fn new(
        wasm: &[u8],
        allocation: Allocation,
        checks: Checks,
        link: fn(&mut Linker<T>),
        data: fn() -> T,
    ) -> Self {
        let fuel = matches!(checks, Checks::FuelAndEpoch);
        let engine = Engine::new(&config(allocation, fuel)).expect("the sandbox has the same");
        let component = Component::new(&engine, wasm).expect("a component");
        let mut linker = Linker::new(&engine);
        link(&mut linker);
        let pre = linker.instantiate_pre(&component).expect("everything is linked");
        let tools = GuestIndices::new(&pre).expect("a plugin with tools");
        Self { engine, pre, tools, fuel, data }
    }

    /// One call in a fresh instance.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) {
        let mut store = Store::new(&self.engine, (self.data)());
        if self.fuel {
            store.set_fuel(1 << 50).expect("fuel is on");
            store.set_epoch_deadline(1 << 40);
        }
        let instance = self.pre.instantiate_async(&mut store).await.expect("an instance");
        let guest = self.tools.load(&mut store, &instance).expect("a plugin with tools");
        let call = ToolCall {
            id: "call".into(),
            name: tool.into(),
            arguments: arguments.into(),
            meta: Vec::new(),
        };
        let answer = guest.call_call_tool(&mut store, &call).await.expect("an answer");
        assert!(black_box(answer).is_ok());
    }
}

/// The contract's own imports, which the calls that are measured do not use.
fn trap_contract(linker: &mut Linker<Wasi>) -> wasmtime::Result<()> {
    for (interface, functions) in [
        ("types", &[][..]),
        ("progress", &["report"]),
        ("cancellation", &["is-cancelled", "remaining-ms"]),
        ("log", &["write"]),
        ("config", &["read"]),
        ("key-value", &["read", "write", "remove", "keys"]),
    ] {
        let mut instance = linker.instance(&format!("cofferdam:plugin/{interface}@0.1.0"))?;
        for function in functions {
            instance.func_new(function, |_, _, _, _| wasmtime::bail!("nobody is there"))?;
        }
    }
    Ok(())
}

/// What `engine.rs` sets, as far as a call can feel it.
fn config(allocation: Allocation, checked: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(checked)
        .consume_fuel(checked)
        .concurrency_support(false)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable);
    if allocation == Allocation::OnDemand {
        return config;
    }
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(64)
        .total_core_instances(64 * 40)
        .max_core_instances_per_component(40)
        .total_memories(64)
        .total_tables(64 * 40)
        .max_tables_per_component(40)
        .max_tables_per_module(40)
        .table_elements(100_000)
        .total_stacks(64)
        .max_memory_size(4 << 30)
        .max_unused_warm_slots(128);
    if allocation == Allocation::PooledScan {
        pool.pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(2 << 20)
            .table_keep_resident(64 << 10);
    } else {
        pool.linear_memory_keep_resident(64 << 10).table_keep_resident(16 << 10);
    }
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The data of a store with WASI and nothing granted.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Wasi {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.ctx, table: &mut self.table }
    }
}
