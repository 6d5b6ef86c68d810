//! The monotonic clock of a call that has seeds: a sleep lasts as long as it was asked to, and the
//! guest's clock is where it should be afterwards.

use crate::seeds::StillClock;
use crate::state::State;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::clocks::{WasiClocksCtxView, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

/// The clocks of one call.
pub(crate) struct Clocks<'a> {
    system: WasiClocksCtxView<'a>,
    still: Option<Arc<StillClock>>,
}

pub(crate) struct HasClocks;

impl HasData for HasClocks {
    type Data<'a> = Clocks<'a>;
}

impl State {
    pub(crate) fn still_clocks(&mut self) -> Clocks<'_> {
        let still = self.clock.clone();
        Clocks { system: self.clocks(), still }
    }
}

impl monotonic_clock::Host for Clocks<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        monotonic_clock::Host::now(&mut self.system)
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        monotonic_clock::Host::resolution(&mut self.system)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        match &self.still {
            Some(clock) => sleep(self.system.table, clock, when),
            None => monotonic_clock::Host::subscribe_instant(&mut self.system, when),
        }
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        match &self.still {
            Some(clock) => {
                sleep(self.system.table, clock, clock.passed_ns().saturating_add(duration))
            }
            None => monotonic_clock::Host::subscribe_duration(&mut self.system, duration),
        }
    }
}

/// A sleep that ends when the guest's clock should show this.
struct Sleep {
    clock: Arc<StillClock>,
    until_ns: u64,
    /// None is never.
    ends: Option<Instant>,
}

fn sleep(
    table: &mut ResourceTable,
    clock: &Arc<StillClock>,
    until_ns: u64,
) -> wasmtime::Result<Resource<DynPollable>> {
    let lasts = Duration::from_nanos(until_ns.saturating_sub(clock.passed_ns()));
    let ends = Instant::now().checked_add(lasts);
    let sleep = table.push(Sleep { clock: clock.clone(), until_ns, ends })?;
    subscribe(table, sleep)
}

#[wasmtime_wasi::async_trait]
impl Pollable for Sleep {
    async fn ready(&mut self) {
        match self.ends {
            Some(ends) => {
                // Also one that is over: a guest that asks again and again must not keep its
                // thread from looking after others.
                tokio::task::yield_now().await;
                tokio::time::sleep_until(ends).await;
                self.clock.reach(self.until_ns);
            }
            None => std::future::pending().await,
        }
    }
}
