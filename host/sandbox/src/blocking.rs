//! File operations: work on threads of the host that nothing can interrupt.
//!
//! Dropping a call's future does not stop what such a thread does for it. So every operation has a
//! place of its plugin and one of the whole sandbox, and keeps both until it really ends, whether
//! or not its call still lives: a plugin whose operations hang runs out of places, not the host
//! out of threads.

use std::fmt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn, spawn_blocking};

/// The places of one plugin, and those of all.
#[derive(Clone)]
pub(crate) struct Blocking {
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    own_max: u32,
}

/// A place for one operation, given back when it is dropped.
struct Place {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// All places of a plugin for file operations, taken until this is dropped.
#[derive(Debug)]
pub struct OccupiedFiles {
    _own: OwnedSemaphorePermit,
}

impl Blocking {
    /// So many places for one plugin, among those of all.
    pub(crate) fn new(own_max: u64, all: Arc<Semaphore>) -> Self {
        let own_max = u32::try_from(own_max).unwrap_or(u32::MAX);
        Self { own: Arc::new(Semaphore::new(own_max as usize)), all, own_max }
    }

    /// Does the work on a thread of its own as soon as there is a place for it. Dropping the handle
    /// takes back what has not begun; what has begun keeps its place to its end.
    pub(crate) fn start<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> AbortOnDropJoinHandle<R> {
        match self.place_now() {
            Some(place) => occupy(place, work),
            None => {
                let places = self.clone();
                spawn(async move { occupy(places.place().await, work).await })
            }
        }
    }

    /// Takes every place of the plugin, as operations would that the system never finishes.
    pub(crate) async fn occupied(&self) -> OccupiedFiles {
        OccupiedFiles { _own: granted(self.own.clone().acquire_many_owned(self.own_max).await) }
    }

    fn place_now(&self) -> Option<Place> {
        let own = self.own.clone().try_acquire_owned().ok()?;
        let all = self.all.clone().try_acquire_owned().ok()?;
        Some(Place { _own: own, _all: all })
    }

    async fn place(&self) -> Place {
        let own = granted(self.own.clone().acquire_owned().await);
        let all = granted(self.all.clone().acquire_owned().await);
        Place { _own: own, _all: all }
    }
}

fn occupy<R: Send + 'static>(
    place: Place,
    work: impl FnOnce() -> R + Send + 'static,
) -> AbortOnDropJoinHandle<R> {
    spawn_blocking(move || {
        let _place = place;
        work()
    })
}

fn granted<E: fmt::Debug>(permit: Result<OwnedSemaphorePermit, E>) -> OwnedSemaphorePermit {
    permit.unwrap_or_else(|closed| unreachable!("nobody closes the semaphore: {closed:?}"))
}

#[cfg(test)]
impl Blocking {
    /// Places for tests that are about something else.
    pub(crate) fn unlimited() -> Self {
        Self::new(1_000, Arc::new(Semaphore::new(1_000)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use std::sync::mpsc;

    /// Work that begins by saying so, and ends when it is told to.
    struct Gate {
        begun: mpsc::Receiver<()>,
        end: mpsc::Sender<()>,
    }

    fn gated(blocking: &Blocking) -> (AbortOnDropJoinHandle<()>, Gate) {
        let (says, begun) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let handle = blocking.start(move || {
            says.send(()).expect("somebody waits");
            // A test that fails drops its end.
            let _ = ends.recv();
        });
        (handle, Gate { begun, end })
    }

    fn has_begun(gate: &Gate) -> bool {
        gate.begun.recv_timeout(std::time::Duration::from_secs(60)).is_ok()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_that_nobody_waits_for_keeps_its_place_to_its_end() {
        let all = Arc::new(Semaphore::new(3));
        let one = Blocking::new(2, all.clone());
        let (first, first_gate) = gated(&one);
        let (second, second_gate) = gated(&one);
        assert!(has_begun(&first_gate) && has_begun(&second_gate));
        // The call is over; its operations are not.
        drop((first, second));
        let (third, third_gate) = gated(&one);
        let (fourth, fourth_gate) = gated(&one);
        assert_eq!((one.own.available_permits(), all.available_permits()), (0, 1));
        let other = Blocking::new(2, all.clone());
        let (neighbour, gate) = gated(&other);
        assert!(has_begun(&gate), "a neighbour has its own places");
        gate.end.send(()).expect("it waits");
        neighbour.await;
        // What has not begun is taken back.
        drop(fourth);
        first_gate.end.send(()).expect("it waits");
        assert!(has_begun(&third_gate), "a place became free");
        assert!(fourth_gate.begun.try_recv().is_err());
        third_gate.end.send(()).expect("it waits");
        second_gate.end.send(()).expect("it waits");
        third.await;
        let _everything = one.occupied().await;
        assert!(one.occupied().now_or_never().is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn all_plugins_together_have_so_many_places() {
        let all = Arc::new(Semaphore::new(1));
        let (one, other) = (Blocking::new(9, all.clone()), Blocking::new(9, all.clone()));
        let (handle, gate) = gated(&one);
        let (waiting, its_gate) = gated(&other);
        assert!(has_begun(&gate));
        assert!(its_gate.begun.try_recv().is_err());
        gate.end.send(()).expect("it waits");
        handle.await;
        assert!(has_begun(&its_gate));
        its_gate.end.send(()).expect("it waits");
        waiting.await;
        assert_eq!(all.available_permits(), 1);
    }
}
