//! The sandbox as a whole: engines, pooled memory slots, threads for guests, the ticker.
//!
//! Everything here is made once and shared by all plugins; what belongs to one call is in
//! [`crate::state`].

use crate::cache::{Cache, CacheConfig, CacheReport};
use crate::call::Arrival;
use crate::compile::CompilerCommand;
use crate::crowd::Crowd;
use crate::error::SandboxError;
use crate::imports::HostImport;
use crate::lane::Lanes;
use crate::seeds::Chance;
use crate::services::http::HttpScript;
use crate::services::log::LogSink;
use crate::spill::Spill;
use crate::state::State;
use crate::ticker::Ticker;
use crate::wit::v0_1;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::hash::{Hash as _, Hasher};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig,
    WasmBacktraceDetails,
};

/// Settings of a whole sandbox. The limits of each plugin are in [`crate::Limits`].
#[derive(Clone)]
pub struct SandboxConfig {
    /// Calls that may run at the same time, all plugins together; more wait. The pool of memory
    /// slots is sized by it. 1 to 10,000; 64 if not set.
    pub slots: u32,
    /// Threads that run guests; 0, the default, takes as many as there are processors.
    pub workers: usize,
    /// MiB of linear memory of all calls together; 4,096 if not set.
    pub memory_total_mib: u64,
    /// KiB of stack for a guest's own calls; 64 to 8,192; 512 if not set.
    pub stack_kib: u64,
    /// File operations that may run at the same time, all plugins together; more wait. 1 to 4,096;
    /// 128 if not set.
    pub file_operations: u32,
    /// Where memories come from; the fastest that the machine offers if not set.
    pub allocation: Allocation,
    /// Where log lines of plugins go; nowhere if not set.
    pub log: Option<LogSink>,
    /// The folder of what plugins keep between calls; their values live as long as the process if
    /// not set.
    pub state_dir: Option<PathBuf>,
    /// The folder where the whole of a result goes that was cut; nothing of it is kept if not set.
    pub spill_dir: Option<PathBuf>,
    /// MiB that the sandbox writes there in all; 1,024 if not set.
    pub spill_total_mib: u64,
    /// Answers HTTP requests in place of the network; the network is used if not set.
    pub http: Option<HttpScript>,
    /// Where the random numbers and the clocks of calls come from; from the system if not set.
    pub chance: Chance,
    /// Interfaces that plugins may import beside those of the contract and WASI; none if not set.
    pub imports: Vec<HostImport>,
    /// Where compiled code is kept; without it every process compiles its plugins.
    pub cache: Option<CacheConfig>,
    /// The program that compiles plugins; without it they are compiled on a thread of this process,
    /// which nothing can interrupt and which leaves its memory behind.
    pub compiler: Option<CompilerCommand>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            slots: 64,
            workers: 0,
            memory_total_mib: 4_096,
            stack_kib: 512,
            file_operations: 128,
            allocation: Allocation::Auto,
            log: None,
            state_dir: None,
            spill_dir: None,
            spill_total_mib: 1_024,
            http: None,
            chance: Chance::default(),
            imports: Vec::new(),
            cache: None,
            compiler: None,
        }
    }
}

/// Where a guest's memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allocation {
    /// The first of the others that the machine supports.
    #[default]
    Auto,
    /// Slots made ahead, reset by looking up which pages were touched (Linux 6.7 and later).
    PooledScan,
    /// Slots made ahead, their first pages rewritten at each reset.
    PooledRewrite,
    /// Mapped for each call: slower, and needs little address space.
    OnDemand,
}

impl Allocation {
    const BEST_FIRST: [Self; 3] = [Self::PooledScan, Self::PooledRewrite, Self::OnDemand];
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "automatic",
            Self::PooledScan => "pooled memory slots, reset by page-map scan",
            Self::PooledRewrite => "pooled memory slots, reset by rewriting",
            Self::OnDemand => "memory on demand",
        })
    }
}

/// A place where plugins run. Cheap to clone; the last clone ends it.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    config: SandboxConfig,
    /// Found when the first engine is made, and kept for the second.
    allocation: Allocation,
    counted: Arc<Machine>,
    uncounted: Mutex<Option<Arc<Machine>>>,
    ticker: Ticker,
    crowd: Arc<Crowd>,
    lanes: Arc<Lanes<Arrival>>,
    slots: Semaphore,
    memory_total: Arc<AtomicUsize>,
    /// The cache, or why there is none.
    cache: Result<Cache, String>,
    /// Places for file operations.
    file_operations: Arc<Semaphore>,
    /// Where long results go.
    spill: Option<Arc<Spill>>,
    /// Taken out when the sandbox ends.
    runtime: Option<Runtime>,
}

/// An engine with what the host offers on it. Compiled code belongs to one engine.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    /// Stands for the engine's version, its settings and the features of the processor.
    pub(crate) fingerprint: [u8; 32],
}

/// Core instances for each slot: a component in Python has 14, with adapters and shims more.
const INSTANCES_PER_SLOT: u32 = 40;
/// Threads that may block beside those of file operations: for name look-ups and files of the host.
const OTHER_BLOCKING: usize = 32;
/// Slots that are kept as the plugins before left them, beyond those in use.
const WARM_SLOTS: u32 = 16;
/// The most that `limits.memory_mib` can be: a slot reserves 4 GiB of address space in any case.
const MEMORY_BYTES_MAX: usize = 4 << 30;
const TABLE_ELEMENTS_MAX: usize = 100_000;

impl Sandbox {
    /// Sets up a sandbox: one engine, the threads, no plugin yet.
    pub fn new(config: SandboxConfig) -> Result<Self, SandboxError> {
        check(&config)?;
        let (allocation, counted) = first_machine(&config)?;
        let ticker = Ticker::new()?;
        ticker.add_engine(counted.engine.weak());
        let runtime = guest_runtime(&config)?;
        let workers = runtime.metrics().num_workers();
        let lanes = Lanes::new(runtime.handle().clone(), workers);
        ticker.each_tick({
            let lanes = Arc::downgrade(&lanes);
            move || lanes.upgrade().iter().for_each(Lanes::relieve)
        });
        Ok(Self {
            shared: Arc::new(Shared {
                crowd: Crowd::new(workers),
                lanes,
                allocation,
                counted: Arc::new(counted),
                uncounted: Mutex::new(None),
                ticker,
                slots: Semaphore::new(config.slots as usize),
                memory_total: Arc::default(),
                cache: match &config.cache {
                    Some(cache) => Cache::open(cache),
                    None => Err("compiled code is not kept".into()),
                },
                file_operations: Arc::new(Semaphore::new(config.file_operations as usize)),
                spill: spill(&config),
                runtime: Some(runtime),
                config,
            }),
        })
    }

    /// How this sandbox runs guests, in a sentence for people.
    pub fn describe(&self) -> String {
        let ticking = if self.is_ticking() { "ticking" } else { "not ticking" };
        format!(
            "wasmtime 48, {}, {} slots, {} KiB of stack, {ticking} every millisecond",
            self.shared.allocation, self.shared.config.slots, self.shared.config.stack_kib
        )
    }

    /// Whether the clock of all calls runs: without it, no limit on time holds.
    pub fn is_ticking(&self) -> bool {
        self.ticker().is_alive()
    }

    /// Where memories come from on this machine.
    pub fn allocation(&self) -> Allocation {
        self.shared.allocation
    }

    /// Why compiled code is not kept, if it is not.
    pub fn cache_problem(&self) -> Option<&str> {
        self.shared.cache.as_ref().err().map(String::as_str)
    }

    /// Hashes all compiled code that is kept and removes what is not intact; none if nothing is
    /// kept. Takes a second for each gigabyte or so.
    pub fn verify_cache(&self) -> Option<CacheReport> {
        self.cache().map(Cache::verify)
    }

    pub(crate) fn cache(&self) -> Option<&Cache> {
        self.shared.cache.as_ref().ok()
    }

    /// The settings in force.
    pub fn config(&self) -> &SandboxConfig {
        &self.shared.config
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.shared.ticker
    }

    /// The guests that keep the workers busy.
    pub(crate) fn crowd(&self) -> &Arc<Crowd> {
        &self.shared.crowd
    }

    /// Where calls begin.
    pub(crate) fn lanes(&self) -> &Arc<Lanes<Arrival>> {
        &self.shared.lanes
    }

    /// A call has come: if guests keep all workers busy, they step aside for it at their next look at
    /// the epoch, and not at the end of their slice.
    pub(crate) fn make_room(&self) {
        if self.crowd().is_full() {
            self.shared.counted.engine.increment_epoch();
            // Locked by whoever makes it for the first time: then there is nobody on it yet.
            if let Ok(uncounted) = self.shared.uncounted.try_lock()
                && let Some(machine) = &*uncounted
            {
                machine.engine.increment_epoch();
            }
        }
    }

    pub(crate) fn slots(&self) -> &Semaphore {
        &self.shared.slots
    }

    pub(crate) fn memory_total(&self) -> &Arc<AtomicUsize> {
        &self.shared.memory_total
    }

    /// Places for file operations of all plugins.
    pub(crate) fn file_operations(&self) -> &Arc<Semaphore> {
        &self.shared.file_operations
    }

    /// Where long results go, if they are kept.
    pub(crate) fn spill(&self) -> Option<&Arc<Spill>> {
        self.shared.spill.as_ref()
    }

    /// The threads that run guests.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        // Only `Drop` takes it.
        self.shared
            .runtime
            .as_ref()
            .map(Runtime::handle)
            .unwrap_or_else(|| unreachable!("a sandbox in use has threads"))
    }

    /// The machine that counts fuel, or the one that does not, made when first needed.
    pub(crate) fn machine(&self, fuel: bool) -> Result<Arc<Machine>, SandboxError> {
        if fuel {
            return Ok(self.shared.counted.clone());
        }
        let mut uncounted = self.shared.uncounted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(machine) = &*uncounted {
            return Ok(machine.clone());
        }
        let machine = Arc::new(Machine::new(&self.shared.config, self.shared.allocation, false)?);
        self.ticker().add_engine(machine.engine.weak());
        *uncounted = Some(machine.clone());
        Ok(machine)
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sandbox({})", self.describe())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Waiting for guests here could block, and blocks an embedder's worker for good if a guest
        // is in a host call; they end with their brakes.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn check(config: &SandboxConfig) -> Result<(), SandboxError> {
    let setting = |key, value, expected| Err(SandboxError::Setting { key, value, expected });
    match config {
        c if !(1..=10_000).contains(&c.slots) => setting("slots", c.slots.into(), "1 to 10000"),
        c if c.workers > 1_024 => setting("workers", c.workers as u64, "0 to 1024"),
        c if !(64..=8_192).contains(&c.stack_kib) => {
            setting("stack_kib", c.stack_kib, "64 to 8192")
        }
        c if !(1..=4_096).contains(&c.file_operations) => {
            setting("file_operations", c.file_operations.into(), "1 to 4096")
        }
        c if !(1..=1_048_576).contains(&c.spill_total_mib) => {
            setting("spill_total_mib", c.spill_total_mib, "1 to 1048576")
        }
        c if !(1..=1 << 30).contains(&c.memory_total_mib) => {
            setting("memory_total_mib", c.memory_total_mib, "1 to 1073741824")
        }
        _ => config.imports.iter().try_for_each(|import| match import.problem() {
            Some(problem) => Err(import_error(import, problem)),
            None => Ok(()),
        }),
    }
}

fn import_error(import: &HostImport, problem: impl fmt::Display) -> SandboxError {
    SandboxError::Import { interface: import.interface().into(), problem: problem.to_string() }
}

/// The first machine that this computer can make.
fn first_machine(config: &SandboxConfig) -> Result<(Allocation, Machine), SandboxError> {
    let asked = [config.allocation];
    let choices: &[Allocation] = match config.allocation {
        Allocation::Auto => &Allocation::BEST_FIRST,
        _ => &asked,
    };
    let mut refused = None;
    for &allocation in choices {
        match Machine::new(config, allocation, true) {
            Ok(machine) => return Ok((allocation, machine)),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| SandboxError::Engine("no way to allocate memory".into())))
}

fn spill(config: &SandboxConfig) -> Option<Arc<Spill>> {
    let dir = config.spill_dir.clone()?;
    Some(Arc::new(Spill::new(dir, config.spill_total_mib)))
}

/// Threads for guests alone, so that an embedder's aborts, timers and signals never wait for one.
fn guest_runtime(config: &SandboxConfig) -> std::io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.workers > 0 {
        builder.worker_threads(config.workers);
    }
    builder
        .max_blocking_threads(config.file_operations as usize + OTHER_BLOCKING)
        .thread_name("cofferdam-guest")
        // A call that comes is not behind the guests that a worker has already.
        .global_queue_interval(1)
        // With every worker in a guest, timers and sockets are looked at between two slices of a
        // millisecond, not after 61 of them.
        .event_interval(4)
        // What blocked is over soon; a thread that waits for the next such work is of no use to anybody.
        .thread_keep_alive(Duration::from_secs(1))
        .enable_all()
        .build()
}

impl Machine {
    fn new(
        config: &SandboxConfig,
        allocation: Allocation,
        fuel: bool,
    ) -> Result<Self, SandboxError> {
        let refused = |error: wasmtime::Error| SandboxError::Engine(format!("{error:#}"));
        let engine = Engine::new(&engine_config(config, allocation, fuel)).map_err(refused)?;
        let mut linker = Linker::new(&engine);
        link(&mut linker).map_err(refused)?;
        if config.chance != Chance::System {
            link_still_clock(&mut linker).map_err(refused)?;
        }
        for import in &config.imports {
            import.link(&mut linker).map_err(|error| import_error(import, error))?;
        }
        Ok(Self { fingerprint: fingerprint(&engine), engine, linker })
    }
}

/// A digest of whatever makes compiled code fit an engine.
fn fingerprint(engine: &Engine) -> [u8; 32] {
    struct Sha(Sha256);
    impl Hasher for Sha {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.finalize().into()
}

/// An engine that only compiles: its code fits every engine of these settings, and it reserves no
/// memory for guests.
pub(crate) fn compiling_engine(config: &SandboxConfig, fuel: bool) -> wasmtime::Result<Engine> {
    Engine::new(&engine_config(config, Allocation::OnDemand, fuel))
}

/// Everything that the host offers. What is not granted is refused when it is used.
fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    use crate::services::fs::HasFiles;
    use crate::services::random::HasCounted;
    use wasmtime_wasi::p2::bindings::filesystem::types;
    use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    v0_1::link(linker)?;
    linker.allow_shadowing(true);
    random::add_to_linker::<State, HasCounted>(linker, State::counted_random)?;
    insecure::add_to_linker::<State, HasCounted>(linker, State::counted_random)?;
    insecure_seed::add_to_linker::<State, HasCounted>(linker, State::counted_random)?;
    types::add_to_linker::<State, HasFiles>(linker, State::counted_files)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// The clock of calls that have seeds in the place of the engine's own.
fn link_still_clock(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    use crate::services::clock::HasClocks;
    use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<State, HasClocks>(linker, State::still_clocks)?;
    linker.allow_shadowing(false);
    Ok(())
}

fn engine_config(config: &SandboxConfig, allocation: Allocation, fuel: bool) -> Config {
    let mut engine = Config::new();
    engine
        .epoch_interruption(true)
        .consume_fuel(fuel)
        // Calls are plain functions, each in an instance of its own; without it a call costs 2 µs less.
        .concurrency_support(false)
        .max_wasm_stack((config.stack_kib as usize) << 10)
        .async_stack_size((config.stack_kib as usize + 1_536) << 10)
        // The environment must not decide whether a guest's debug information is parsed.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // The same call has the same fuel and the same answer on every machine.
        .relaxed_simd_deterministic(true)
        // What no plugin needs, so that a new version of the engine cannot widen the wall.
        .wasm_memory64(false)
        .wasm_wide_arithmetic(false)
        .wasm_custom_page_sizes(false);
    if allocation != Allocation::OnDemand {
        engine.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(
            config.slots,
            allocation,
        )));
    }
    engine
}

/// All sizes of the pool from one number, so that none runs out before the others.
fn pool(slots: u32, allocation: Allocation) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots * INSTANCES_PER_SLOT)
        // Twice what limits can be, so that a component with more is refused by its limits, in words.
        .max_core_instances_per_component(2 * INSTANCES_PER_SLOT)
        .total_memories(slots)
        .total_tables(slots * INSTANCES_PER_SLOT)
        .max_tables_per_component(2 * INSTANCES_PER_SLOT)
        .max_tables_per_module(2 * INSTANCES_PER_SLOT)
        .table_elements(TABLE_ELEMENTS_MAX)
        .total_stacks(slots)
        .max_memory_size(MEMORY_BYTES_MAX)
        // A slot that another plugin used last must be mapped anew, which costs ten calls. One that
        // stays warm keeps what a guest touched, up to 2 MiB: so many, and the memory of the process
        // is soon that of after the next thousand guests.
        .max_unused_warm_slots(WARM_SLOTS)
        .async_stack_keep_resident(0);
    match allocation {
        Allocation::PooledScan => pool
            .pagemap_scan(Enabled::Yes)
            .linear_memory_keep_resident(2 << 20)
            .table_keep_resident(64 << 10),
        // Without the scan all of it is rewritten at each reset, touched or not.
        _ => pool.linear_memory_keep_resident(64 << 10).table_keep_resident(16 << 10),
    };
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_code_fits_whatever_the_allocation() {
        let config = SandboxConfig { slots: 2, ..SandboxConfig::default() };
        for fuel in [true, false] {
            let compiling = fingerprint(&compiling_engine(&config, fuel).expect("an engine"));
            for allocation in Allocation::BEST_FIRST {
                if let Ok(machine) = Machine::new(&config, allocation, fuel) {
                    assert_eq!(machine.fingerprint, compiling, "{allocation} fuel {fuel}");
                }
            }
        }
        let other = compiling_engine(&config, true).expect("an engine");
        let one = compiling_engine(&config, false).expect("an engine");
        assert_ne!(fingerprint(&one), fingerprint(&other), "a setting that changes the code");
    }
}
