//! One call: a slot, a fresh store with every brake set, an instance, an answer or a failure, the
//! bill. The only place where a store is made; it does not outlive this function.

use crate::brake::{Brake, micros, now};
use crate::declare::Offered;
use crate::error::{Failure, Scene, Stop};
use crate::lane::End;
use crate::limits::{kib, mib};
use crate::plugin::Loaded;
use crate::receipt::{Dropping, Receipt, Tally};
use crate::spill::Spilled;
use crate::state::{State, Wasi};
use crate::text::{tail, visible};
use crate::{cut, mask};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{Amendment, Verdict};
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::ToolResult;
use futures::FutureExt as _;
use serde_json::Value;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{SemaphorePermit, oneshot};
use wasmtime::{Store, Trap, UpdateDeadline};

/// What a fresh instance is asked, whatever the version of its contract.
#[derive(Debug)]
pub(crate) enum Entry {
    ListTools,
    CallTool { call: GuestCall },
    Prepare { tool: Arc<str>, arguments: String },
    Before { call: GuestCall, context: GuestContext },
    After { call: GuestCall, context: GuestContext, ran: GuestRan },
}

impl Entry {
    /// The call that is served; none where there is no call yet.
    fn call_id(&self) -> Option<Arc<str>> {
        match self {
            Self::ListTools | Self::Prepare { .. } => None,
            Self::CallTool { call } | Self::Before { call, .. } | Self::After { call, .. } => {
                Some(call.id.clone())
            }
        }
    }
}

/// A call as the guest sees it.
#[derive(Debug)]
pub(crate) struct GuestCall {
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) arguments: String,
}

/// Where a hooked call comes from.
#[derive(Debug)]
pub(crate) struct GuestContext {
    pub(crate) plugin: String,
    pub(crate) assistant: String,
}

/// What a hooked call came to.
#[derive(Debug)]
pub(crate) struct GuestRan {
    pub(crate) result: ToolResult,
    pub(crate) is_error: bool,
    pub(crate) ended_by: Option<String>,
    pub(crate) wall_ms: u64,
}

/// What it answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Tools(Vec<Offered>),
    Tool(ToolResult),
    Prepared(Value),
    Verdict(Verdict),
    Amendment(Amendment),
}

/// How a call ended, with its bill.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) reply: Result<Reply, Failure>,
    pub(crate) receipt: Receipt,
}

/// A call that is about to be made.
pub(crate) struct Job {
    pub(crate) plugin: Arc<Loaded>,
    pub(crate) entry: Entry,
    /// None where nobody may report.
    pub(crate) progress: Option<Progress>,
}

impl Job {
    /// Runs the call on the sandbox's own threads. Dropping the future stops the guest.
    pub(crate) async fn perform(self, abort: AbortSignal) -> Ended {
        let plugin = self.plugin.clone();
        let brake = self.watched_brake(&abort);
        let shared = brake.clone();
        let (waiting, ended) = oneshot::channel();
        plugin.sandbox.lanes().begin(Box::pin(async move {
            let ended = AssertUnwindSafe(self.run(shared)).catch_unwind().await;
            Arrival { ended: ended.map_err(|panic| panic_text(&*panic)), waiting }
        }));
        plugin.sandbox.make_room();
        let mut aborted = pin!(abort.cancelled());
        let waker = Waker::from(brake.clone());
        if aborted.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            brake.abort();
        }
        let mut running = Running { ended, brake };
        let ended = (&mut running.ended).await;
        ended.unwrap_or_else(|_| Err("its threads are gone".into())).unwrap_or_else(|problem| {
            let problem = format!("the sandbox failed while it ran the plugin: {problem}");
            Ended::unrun(&plugin, 0, Failure::new("failure", problem))
        })
    }

    /// Runs the call where the future is polled: for a caller that has nothing else to do.
    pub(crate) async fn perform_here(self, abort: AbortSignal) -> Ended {
        let plugin = self.plugin.clone();
        let brake = self.watched_brake(&abort);
        let run = InRuntime {
            runtime: plugin.sandbox.runtime(),
            future: Box::pin(self.run(brake.clone())),
        };
        tokio::pin!(run);
        tokio::select! { biased;
            ended = &mut run => ended,
            () = abort.cancelled() => {
                brake.abort();
                run.await
            }
        }
    }

    fn watched_brake(&self, abort: &AbortSignal) -> Arc<Brake> {
        let Loaded { sandbox, machine, terms, .. } = &*self.plugin;
        let limits = &terms.limits;
        let queue = Duration::from_millis(limits.queue_ms);
        let grace = Duration::from_millis(limits.grace_ms);
        let brake = Arc::new(Brake::new(machine.engine.weak(), abort.clone(), queue, grace));
        if matches!(self.entry, Entry::After { .. }) {
            // The loop asks about every call that ran, in an aborted run too.
            brake.ask();
        }
        let least = queue.min(Duration::from_millis(limits.wall_ms));
        sandbox.ticker().watch(&brake, brake.asked().saturating_add(micros(least)));
        brake
    }

    async fn run(self, brake: Arc<Brake>) -> Ended {
        let plugin = self.plugin;
        let call_id = self.entry.call_id().unwrap_or_default();
        let slot = match slot(&plugin, &brake).await {
            Ok(slot) => slot,
            Err(failure) => {
                return Ended::unrun(&plugin, now().saturating_sub(brake.asked()), failure);
            }
        };
        let started = brake.start(Duration::from_millis(plugin.terms.limits.wall_ms));
        let waited = started.saturating_sub(brake.asked());
        let mut store = match armed_store(&plugin, &brake, started, self.progress, &self.entry) {
            Ok(store) => store,
            Err(error) => return Ended::unrun(&plugin, waited, broken(&error)),
        };
        let result = tokio::select! { biased;
            stop = brake.stopping() => Err(stop.into()),
            // Fetching a large result takes time that no epoch cuts: what is late is late.
            result = guest(&plugin, &mut store, self.entry) => match (result, brake.check()) {
                (Ok(_), Some(stop)) => Err(stop.into()),
                (result, _) => result,
            },
        };
        let mut ended = settle(&plugin, &mut store, result);
        drop(store);
        drop(slot);
        ended.receipt.waiting_us = waited;
        ended.receipt.wall_us = now() - started;
        ended.fitted(&plugin, &call_id, &brake).await
    }
}

/// Waits for a place among the plugin's calls and among all.
async fn slot<'a>(
    plugin: &'a Loaded,
    brake: &Brake,
) -> Result<(SemaphorePermit<'a>, SemaphorePermit<'a>), Failure> {
    let slots = plugin.sandbox.slots();
    if let Ok(own) = plugin.slots.try_acquire()
        && let Ok(all) = slots.try_acquire_many(plugin.weight)
    {
        return Ok((own, all));
    }
    let limits = &plugin.terms.limits;
    let waiting = Waiting::enter(plugin).ok_or_else(|| Failure::queue_full(limits))?;
    let both = async {
        let own = plugin.slots.acquire().await.ok()?;
        Some((own, slots.acquire_many(plugin.weight).await.ok()?))
    };
    let got = tokio::select! { biased;
        stop = brake.stopping() => return Err(Failure::stopped(stop, limits)),
        got = both => got,
    };
    drop(waiting);
    // The semaphores live as long as the sandbox and are never closed.
    got.ok_or_else(|| Failure::stopped(Stop::QueueTime, limits))
}

/// A place in the plugin's queue.
struct Waiting<'a>(&'a Loaded);

impl<'a> Waiting<'a> {
    fn enter(plugin: &'a Loaded) -> Option<Self> {
        let waiting = plugin.waiting.fetch_add(1, Ordering::AcqRel);
        let place = Self(plugin);
        (waiting < plugin.terms.limits.queue).then_some(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Compiled code keeps what it used in a register, which is lost when a loop is stopped from
/// outside. Handed out in slices, the fuel is billed to within one of them, half a millisecond of work.
const FUEL_SLICE: u64 = 1_000_000;

/// Compiled code looks at its fuel where functions and loops begin, so that a call may end having
/// used more than it had. One more than it may use tells that from having used all of it.
const SPARE_FUEL: u64 = 1;

/// A store with every brake set, before any guest code can run.
fn armed_store(
    plugin: &Loaded,
    brake: &Arc<Brake>,
    started: u64,
    progress: Option<Progress>,
    entry: &Entry,
) -> wasmtime::Result<Store<State>> {
    let Loaded { sandbox, machine, terms, .. } = plugin;
    let limits = &terms.limits;
    let granted = !matches!(entry, Entry::ListTools);
    let mut state = State::new(terms.clone(), brake.clone(), progress, entry.call_id(), granted);
    if let Some(seeds) = sandbox.config().chance.seeds() {
        state.plant(seeds);
    }
    let mut store = Store::new(&machine.engine, state);
    store.limiter(|state| state);
    store.set_hostcall_fuel(mib(limits.host_alloc_mib));
    store.set_max_component_handles(usize::try_from(limits.resources).unwrap_or(usize::MAX));
    if let Some(fuel) = limits.fuel {
        store.set_fuel(fuel.saturating_add(SPARE_FUEL))?;
        store.fuel_async_yield_interval(Some(FUEL_SLICE))?;
    }
    store.set_epoch_deadline(1);
    let watched = brake.clone();
    let mut place = sandbox.crowd().outsider(started);
    store.epoch_deadline_callback(move |_| match watched.check() {
        Some(stop) => Err(stop.into()),
        None => {
            place.interrupted();
            Ok(UpdateDeadline::Yield(1))
        }
    });
    Ok(store)
}

async fn guest(
    plugin: &Loaded,
    store: &mut Store<State>,
    entry: Entry,
) -> wasmtime::Result<Result<Reply, Failure>> {
    let instance = plugin.pre.instantiate_async(&mut *store).await?;
    match (&plugin.functions, &entry) {
        (Some(functions), Entry::CallTool { call }) => functions.call(store, &instance, call).await,
        _ => plugin.exports.enter(store, &instance, entry).await,
    }
}

/// What the call came to, and what it cost.
fn settle(
    plugin: &Loaded,
    store: &mut Store<State>,
    result: wasmtime::Result<Result<Reply, Failure>>,
) -> Ended {
    const STDERR_BYTES_MAX: usize = 4_096;
    let limits = &plugin.terms.limits;
    let left = store.get_fuel().unwrap_or_default();
    let fuel =
        limits.fuel.map(|fuel| fuel.saturating_add(SPARE_FUEL).saturating_sub(left).min(fuel));
    let overspent = limits.fuel.is_some() && left < SPARE_FUEL;
    let result = match result {
        Ok(Ok(_)) if overspent => Err(Trap::OutOfFuel.into()),
        result => result,
    };
    let secrets = &plugin.terms.secrets;
    let mut receipt = bill(store.data_mut(), fuel);
    let reply = result.unwrap_or_else(|error| {
        let state = store.data();
        // Before anything is cut off it, as half a secret is not found; nor is what was cut already.
        let unsure = mask::longest(secrets).saturating_sub(1);
        let stderr =
            state.wasi.as_ref().map(|wasi| wasi.stdio.stderr.text(unsure)).unwrap_or_default();
        let stderr = tail(&mask::text(&stderr, secrets), STDERR_BYTES_MAX).to_owned();
        Err(Failure::from_engine(
            &error,
            &Scene { limits, stderr: &stderr, memory_denied: state.memory.denied },
        ))
    });
    let reply = match reply.map(|reply| mask::reply(reply, secrets)) {
        Ok(reply) => {
            let reply = with_refusals(reply, &receipt.refusals);
            Ok(fitting(reply, kib(limits.result_kib), &mut receipt.cuts))
        }
        Err(failure) => {
            let failure = failure.masked(secrets).cut(kib(limits.result_kib), &mut receipt.cuts);
            Err(failure.with_refusals(&receipt.refusals))
        }
    };
    receipt.ended_by = reply.as_ref().err().map(|failure| failure.ended_by);
    Ended { reply, receipt }
}

/// A result that reports a failure, with what the host refused: it is likely the cause, and says
/// what to grant.
fn with_refusals(reply: Reply, refusals: &[String]) -> Reply {
    match reply {
        Reply::Tool(mut result) if result.is_error == Some(true) => {
            let refused = refusals.iter().map(|refusal| format!("refused by the host: {refusal}"));
            result.content.extend(refused.map(Content::Text));
            Reply::Tool(result)
        }
        other => other,
    }
}

/// An answer in which what models and people get to see has at most so many bytes. Results of tools
/// are cut when the call is over, because the whole of them may be kept.
fn fitting(reply: Reply, bytes_max: usize, cuts: &mut Vec<String>) -> Reply {
    match reply {
        Reply::Amendment(mut amendment) => {
            let content = amendment.content.take();
            amendment.content = content.map(|content| cut::content(content, bytes_max, None, cuts));
            Reply::Amendment(amendment)
        }
        Reply::Verdict(Verdict::Block(mut refusal)) => {
            cut::text(&mut refusal.reason, bytes_max, cuts);
            Reply::Verdict(Verdict::Block(refusal))
        }
        Reply::Verdict(Verdict::Ask(mut question)) => {
            cut::text(&mut question.title, bytes_max, cuts);
            cut::text(&mut question.message, bytes_max, cuts);
            Reply::Verdict(Verdict::Ask(question))
        }
        other => other,
    }
}

/// The bill of a call that has ended.
fn bill(state: &mut State, fuel: Option<u64>) -> Receipt {
    let mut receipt = std::mem::take(&mut state.receipt);
    if let Some(wasi) = &state.wasi {
        bill_wasi(wasi, &mut receipt);
    }
    for refusal in &mut receipt.refusals {
        // It may quote what the guest asked for.
        *refusal = visible(&mask::text(refusal, &state.terms.secrets), REFUSAL_BYTES_MAX);
    }
    receipt.host_calls.random =
        Tally { calls: state.random.calls, bytes: state.random.used() as u64 };
    receipt.fuel = fuel;
    receipt.memory_peak_bytes = state.memory.peak as u64;
    receipt.progress = state.reports.bill();
    receipt.log = state.log.bill;
    receipt
}

fn bill_wasi(wasi: &Wasi, receipt: &mut Receipt) {
    let (http, http_refusals) = wasi.http.bill();
    let (files, files_refusals) = wasi.files.bill();
    http_refusals.into_iter().chain(files_refusals).for_each(|refusal| receipt.refuse(refusal));
    receipt.host_calls.files = files;
    receipt.http_requests = http.calls;
    receipt.host_calls.http = http;
    receipt.stdout = stream_bill(wasi.stdio.stdout.counts());
    receipt.stderr = stream_bill(wasi.stdio.stderr.counts());
}

/// A refusal says what was asked and what to grant; longer ones repeat what the guest wrote.
const REFUSAL_BYTES_MAX: usize = 1_000;

fn stream_bill((bytes, dropped): (u64, u64)) -> Dropping {
    Dropping { bytes: bytes - dropped, bytes_dropped: dropped, ..Dropping::default() }
}

/// The engine refused a store, which it does for no guest's sake.
fn broken(error: &wasmtime::Error) -> Failure {
    Failure::new("failure", format!("the sandbox could not run the plugin: {error:#}"))
}

/// How long a result waits for the disk that shall keep the whole of it.
const SPILL_PATIENCE: Duration = Duration::from_secs(2);

impl Ended {
    /// With a result that is too long for a model cut, and the whole of it kept where the operator
    /// allows that. The call is over: it has neither slot nor store any more.
    async fn fitted(mut self, plugin: &Loaded, call_id: &str, brake: &Brake) -> Self {
        let bytes_max = kib(plugin.terms.limits.result_kib);
        let cuts = &mut self.receipt.cuts;
        if let Ok(Reply::Tool(result)) = &mut self.reply
            && cut::is_too_long(&result.content, bytes_max)
        {
            let kept = spill(plugin, call_id, &result.content, brake).await;
            let kept = kept.unwrap_or_else(|why| {
                cuts.push(format!("the whole result could not be kept: {why}"));
                None
            });
            let content = std::mem::take(&mut result.content);
            result.content = cut::content(content, bytes_max, kept.as_ref(), cuts);
            self.receipt.spilled = kept;
        }
        self
    }

    /// A call that never ran.
    fn unrun(plugin: &Loaded, waiting_us: u64, failure: Failure) -> Self {
        let receipt = Receipt {
            plugin: plugin.terms.plugin.clone(),
            ended_by: Some(failure.ended_by),
            waiting_us,
            ..Receipt::default()
        };
        Self { reply: Err(failure), receipt }
    }
}

/// Keeps the whole of a result, if the operator named a folder for that. A disk that hangs does not
/// hold the call up for long, and an abort not at all.
async fn spill(
    plugin: &Loaded,
    call_id: &str,
    content: &[Content],
    brake: &Brake,
) -> Result<Option<Spilled>, String> {
    let Some(spill) = plugin.sandbox.spill().cloned() else { return Ok(None) };
    let bytes_max = kib(plugin.terms.limits.spill_kib);
    let (name, call_id) = (plugin.terms.plugin.clone(), call_id.to_owned());
    let content = content.to_vec();
    let writing = plugin
        .sandbox
        .runtime()
        .spawn_blocking(move || spill.write(&name, &call_id, &content, bytes_max));
    let written = tokio::select! { biased;
        written = writing => written.map_err(|error| error.to_string())?,
        _ = brake.stopping() => Err("the call was stopped".into()),
        () = tokio::time::sleep(SPILL_PATIENCE) => {
            Err(format!("the disk took longer than {} s", SPILL_PATIENCE.as_secs()))
        }
    };
    written.map(Some)
}

/// How a call ended, on its way to whoever waits for it.
pub(crate) struct Arrival {
    ended: Result<Ended, String>,
    waiting: oneshot::Sender<Result<Ended, String>>,
}

impl End for Arrival {
    fn hand_over(self) {
        // Nobody may wait for it any more.
        let _ = self.waiting.send(self.ended);
    }
}

/// A call that is stopped when nobody waits for it any more.
struct Running {
    ended: oneshot::Receiver<Result<Ended, String>>,
    brake: Arc<Brake>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended has closed its end of the channel.
        if !self.ended.is_terminated() {
            self.brake.stop(Stop::Aborted);
        }
    }
}

/// What the host said when it panicked, which an embedder's own code may make it do.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// A future that is polled inside the sandbox's runtime, whoever polls it: the engine's WASI needs
/// its timers.
struct InRuntime<'a, F> {
    runtime: &'a tokio::runtime::Handle,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for InRuntime<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = self.runtime.enter();
        self.future.as_mut().poll(cx)
    }
}
