//! The guests that keep the workers busy. While there are as many of them as workers, a call that comes
//! would wait for the end of a slice; it asks them to step aside instead.

use crate::brake::now;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Microseconds after which a guest that still computes counts as one that keeps a worker busy.
/// Below it are the many calls that are over in no time, and that nobody should interrupt.
const LONG_US: u64 = 3_000;

/// How many guests have computed for long, and how many it takes to keep all workers busy.
#[derive(Debug)]
pub(crate) struct Crowd {
    members: AtomicUsize,
    workers: usize,
}

impl Crowd {
    pub(crate) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self { members: AtomicUsize::new(0), workers })
    }

    /// Whether a call that comes now finds no free worker.
    pub(crate) fn is_full(&self) -> bool {
        self.members.load(Ordering::Relaxed) >= self.workers
    }

    /// The place of a call that begins at `started`, in microseconds of the process's clock.
    pub(crate) fn outsider(self: &Arc<Self>, started: u64) -> Place {
        Place { crowd: self.clone(), started, inside: false }
    }
}

/// Where a call stands: outside until it has run for long, and gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    crowd: Arc<Crowd>,
    started: u64,
    inside: bool,
}

impl Place {
    /// The guest was interrupted while it computed.
    pub(crate) fn interrupted(&mut self) {
        if !self.inside && now().saturating_sub(self.started) >= LONG_US {
            self.inside = true;
            self.crowd.members.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.inside {
            self.crowd.members.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guests_that_compute_for_long_fill_the_workers() {
        let crowd = Crowd::new(2);
        let (mut short, mut long, mut other) =
            (crowd.outsider(u64::MAX), crowd.outsider(0), crowd.outsider(0));
        while now() < LONG_US {
            std::hint::spin_loop();
        }
        short.interrupted();
        long.interrupted();
        long.interrupted();
        assert!(!crowd.is_full());
        other.interrupted();
        assert!(crowd.is_full());
        drop(other);
        assert!(!crowd.is_full());
    }
}
