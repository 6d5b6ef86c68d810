//! What the store of one call holds: its brake, its meters, its services. Made for the call and
//! dropped with it; two calls share nothing that a guest could write to.

use crate::blocking::Blocking;
use crate::brake::Brake;
use crate::error::{Denied, Exceeded};
use crate::grants::Grants;
use crate::imports::Caller;
use crate::limits::{Limits, kib};
use crate::receipt::Receipt;
use crate::seeds::{Seeds, StillClock};
use crate::services::fs::{FileMeter, Files};
use crate::services::http::{Http, HttpScript};
use crate::services::kv::KeyValue;
use crate::services::log::{Log, LogSink};
use crate::services::progress::Reports;
use crate::services::random::{Counted, Random};
use crate::services::stdio::Stdio;
use cofferdam_agent::progress::Progress;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreLimits};
use wasmtime_wasi::filesystem::{WasiFilesystemCtx, WasiFilesystemView};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

/// What the calls of one plugin have in common; none of it changes during a call.
pub(crate) struct Terms {
    pub(crate) plugin: Arc<str>,
    pub(crate) limits: Limits,
    pub(crate) grants: Grants,
    pub(crate) log_sink: Option<LogSink>,
    /// Stands in for the network.
    pub(crate) http_script: Option<HttpScript>,
    pub(crate) key_value: Option<Arc<KeyValue>>,
    /// Granted directories, opened when the plugin was loaded.
    pub(crate) files: WasiFilesystemCtx,
    /// Places for file operations.
    pub(crate) blocking: Blocking,
    /// Bytes of linear memory that all calls of the sandbox use together, and may.
    pub(crate) memory_total: Arc<AtomicUsize>,
    pub(crate) memory_total_max: usize,
    /// Granted environment variables with their values, read when the plugin was loaded.
    pub(crate) env: Vec<(String, String)>,
    /// Credentials for requests, read when the plugin was loaded.
    pub(crate) secrets: Vec<crate::services::secret::Secret>,
}

/// The data of one call's store.
pub(crate) struct State {
    pub(crate) terms: Arc<Terms>,
    /// Whether the grants apply: they do not when a plugin is asked for its tools.
    granted: bool,
    call_id: Option<Arc<str>>,
    pub(crate) brake: Arc<Brake>,
    pub(crate) memory: MemoryMeter,
    pub(crate) receipt: Receipt,
    pub(crate) reports: Reports,
    pub(crate) log: Log,
    pub(crate) random: Random,
    /// The clock of a call that has seeds.
    pub(crate) clock: Option<Arc<StillClock>>,
    table: ResourceTable,
    /// Made when first needed: many calls never touch WASI.
    pub(crate) wasi: Option<Box<Wasi>>,
}

/// What reaches beyond the contract.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    pub(crate) stdio: Stdio,
    pub(crate) files: Arc<FileMeter>,
    pub(crate) http: Http,
    http_ctx: WasiHttpCtx,
}

/// Headers of one message in the host's memory, where they take more than on the wire.
const HEADERS_BYTES_MAX: usize = 128 << 10;

impl State {
    pub(crate) fn new(
        terms: Arc<Terms>,
        brake: Arc<Brake>,
        progress: Option<Progress>,
        call_id: Option<Arc<str>>,
        granted: bool,
    ) -> Self {
        let limits = &terms.limits;
        let mut table = ResourceTable::new();
        // What a guest holds is counted exactly elsewhere; behind one of its handles the host may
        // have two entries, and some are the host's own.
        table.set_max_capacity(
            usize::try_from(limits.resources)
                .unwrap_or(usize::MAX)
                .saturating_mul(2)
                .saturating_add(16),
        );
        Self {
            granted,
            call_id,
            memory: MemoryMeter::new(limits),
            receipt: Receipt { plugin: terms.plugin.clone(), ..Receipt::default() },
            reports: Reports::new(progress, limits),
            log: Log::new(limits),
            random: Random::new(kib(limits.random_kib)),
            clock: None,
            table,
            wasi: None,
            brake,
            terms,
        }
    }

    /// Gives the call seeds, from which it can be repeated.
    pub(crate) fn plant(&mut self, seeds: Seeds) {
        self.clock = Some(StillClock::new(&seeds));
        self.receipt.seeds = Some(seeds);
    }

    /// The grants that apply to this call.
    pub(crate) fn grants(&self) -> Option<&Grants> {
        self.granted.then_some(&self.terms.grants)
    }

    /// The key-value store, if this call may use it.
    pub(crate) fn key_value(&self) -> Option<&Arc<KeyValue>> {
        self.terms.key_value.as_ref().filter(|_| self.granted)
    }

    /// For what the embedder offers.
    pub(crate) fn caller(&self) -> Caller {
        Caller { plugin: self.terms.plugin.clone(), call_id: self.call_id.clone() }
    }

    /// What reaches beyond the contract, beside the resources and the random budget of the guest.
    fn wasi(&mut self) -> (&mut Wasi, &mut ResourceTable, &mut Random) {
        let Self { wasi, terms, brake, granted, table, random, receipt, clock, .. } = self;
        let wasi = wasi.get_or_insert_with(|| {
            let chance = receipt.seeds.as_ref().zip(clock.as_ref());
            Box::new(Wasi::new(terms, brake, chance, *granted))
        });
        (wasi, table, random)
    }

    /// The random interfaces of this call.
    pub(crate) fn counted_random(&mut self) -> Counted<'_> {
        let (wasi, _, random) = self.wasi();
        Counted::new(random, wasi.ctx.random())
    }

    /// The file interfaces of this call.
    pub(crate) fn counted_files(&mut self) -> Files<'_> {
        let meter = self.wasi().0.files.clone();
        let terms = self.terms.clone();
        Files::new(self.filesystem(), meter, terms)
    }
}

impl Wasi {
    fn new(
        terms: &Arc<Terms>,
        brake: &Arc<Brake>,
        chance: Option<(&Seeds, &Arc<StillClock>)>,
        granted: bool,
    ) -> Self {
        let limits = &terms.limits;
        let stdio = Stdio::new(kib(limits.stdio_kib));
        let mut builder = WasiCtx::builder();
        // The builder's own default denies files, arguments, environment and the network; what
        // follows is all that is added.
        builder
            .stdout(stdio.stdout.clone())
            .stderr(stdio.stderr.clone())
            .max_random_size(kib(limits.random_kib) as u64)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        if let Some((seeds, clock)) = chance {
            seeds.plant(&mut builder, clock);
        }
        if granted {
            builder.envs(&terms.env);
        }
        let mut ctx = builder.build();
        if granted {
            *ctx.filesystem() = terms.files.clone();
        }
        let mut http_ctx = WasiHttpCtx::new();
        http_ctx.set_field_size_limit(HEADERS_BYTES_MAX);
        Self {
            ctx,
            stdio,
            files: FileMeter::new(limits),
            http: Http::new(terms.clone(), brake.clone(), granted),
            http_ctx,
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (wasi, table, _) = self.wasi();
        WasiCtxView { ctx: &mut wasi.ctx, table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (wasi, table, _) = self.wasi();
        WasiHttpCtxView { hooks: &mut wasi.http, table, ctx: &mut wasi.http_ctx }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.terms.memory_total.fetch_sub(self.memory.used, Ordering::Relaxed);
    }
}

/// Memories and tables of a call, counted as they grow.
pub(crate) struct MemoryMeter {
    used: usize,
    pub(crate) peak: usize,
    max: usize,
    table_elements_max: usize,
    tables_max: usize,
    instances_max: usize,
    /// The last growth that was refused: the likely cause of the trap that follows.
    pub(crate) denied: Option<Denied>,
}

impl MemoryMeter {
    fn new(limits: &Limits) -> Self {
        let size = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
        Self {
            used: 0,
            peak: 0,
            max: limits.memory_bytes(),
            table_elements_max: size(limits.table_elements),
            tables_max: size(limits.tables),
            instances_max: size(limits.instances),
            denied: None,
        }
    }

    fn take(&mut self, more: usize, terms: &Terms) -> bool {
        let used = self.used.saturating_add(more);
        if used > self.max {
            self.denied = Some(Denied::Memory);
            return false;
        }
        let total = &terms.memory_total;
        if total.fetch_add(more, Ordering::Relaxed).saturating_add(more) > terms.memory_total_max {
            total.fetch_sub(more, Ordering::Relaxed);
            self.denied = Some(Denied::AllMemory);
            return false;
        }
        self.used = used;
        self.peak = self.peak.max(used);
        true
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.memory.take(desired.saturating_sub(current), &self.terms))
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = desired <= self.memory.table_elements_max;
        if !granted {
            self.memory.denied = Some(Denied::Table);
        }
        Ok(granted)
    }

    fn instances(&self) -> usize {
        self.memory.instances_max
    }

    fn tables(&self) -> usize {
        self.memory.tables_max
    }

    fn memories(&self) -> usize {
        // Their sum is bounded, not their number.
        StoreLimits::default().memories()
    }
}

/// The error that ends a call because of a limit that a host function enforces.
pub(crate) fn exceeded(ended_by: &'static str, key: &'static str, what: String) -> wasmtime::Error {
    wasmtime::Error::new(Exceeded { ended_by, key, what })
}
