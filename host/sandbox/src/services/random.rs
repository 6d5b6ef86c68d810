//! Random bytes, counted: a guest that asks for gigabytes of them makes the host work and allocate.

use crate::state::exceeded;
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};
use wasmtime_wasi::random::WasiRandomCtx;

/// The budget of one call.
pub(crate) struct Random {
    left: usize,
    max: usize,
    pub(crate) calls: u64,
}

impl Random {
    pub(crate) fn new(max: usize) -> Self {
        Self { left: max, max, calls: 0 }
    }

    /// Bytes handed out.
    pub(crate) fn used(&self) -> usize {
        self.max - self.left
    }

    fn take(&mut self, bytes: u64) -> wasmtime::Result<()> {
        self.calls += 1;
        match usize::try_from(bytes).ok().and_then(|bytes| self.left.checked_sub(bytes)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let what = format!(
                    "stopped after asking for more than {} KiB of random bytes (limit random_kib)",
                    self.max >> 10
                );
                Err(exceeded("output-limit", "random_kib", what))
            }
        }
    }
}

/// The engine's generators behind the budget.
pub(crate) struct Counted<'a> {
    budget: &'a mut Random,
    generators: &'a mut WasiRandomCtx,
}

pub(crate) struct HasCounted;

impl HasData for HasCounted {
    type Data<'a> = Counted<'a>;
}

impl<'a> Counted<'a> {
    pub(crate) fn new(budget: &'a mut Random, generators: &'a mut WasiRandomCtx) -> Self {
        Self { budget, generators }
    }
}

impl random::Host for Counted<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.budget.take(len)?;
        random::Host::get_random_bytes(self.generators, len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.budget.take(8)?;
        random::Host::get_random_u64(self.generators)
    }
}

impl insecure::Host for Counted<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.budget.take(len)?;
        insecure::Host::get_insecure_random_bytes(self.generators, len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.budget.take(8)?;
        insecure::Host::get_insecure_random_u64(self.generators)
    }
}

impl insecure_seed::Host for Counted<'_> {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        insecure_seed::Host::insecure_seed(self.generators)
    }
}
