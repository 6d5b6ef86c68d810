//! The clock of all calls: one thread that looks at every running call once a millisecond and lets
//! guests yield. It sleeps while no call runs.
//!
//! It is a plain thread because no guest, and nothing that an embedder does with its runtime, may
//! keep it from ticking. It also makes up for an epoch that was advanced just before a guest's
//! store was armed, which the engine loses.

use crate::brake::Brake;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::EngineWeak;

/// How often running calls are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Ticks without a call after which the thread sleeps; waking it costs a call some microseconds.
const IDLE_TICKS_MAX: u32 = 50;

/// The ticking thread and what it watches.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Watched>,
    wake: Condvar,
}

#[derive(Default)]
struct Watched {
    /// Weak, so that a call leaves by ending; the next tick forgets it.
    calls: Vec<Weak<Brake>>,
    engines: Vec<EngineWeak>,
    asleep: bool,
    stop: bool,
}

impl Ticker {
    pub(crate) fn new() -> std::io::Result<Self> {
        let ticker = Self { shared: Arc::default(), thread: Mutex::new(None) };
        *lock(&ticker.thread) = Some(ticker.spawn()?);
        Ok(ticker)
    }

    /// Advances the epoch of one more engine.
    pub(crate) fn add_engine(&self, engine: EngineWeak) {
        lock(&self.shared.state).engines.push(engine);
    }

    /// Watches a call from now until its brake is dropped.
    pub(crate) fn watch(&self, brake: &Arc<Brake>) {
        let asleep = {
            let mut state = lock(&self.shared.state);
            state.calls.push(Arc::downgrade(brake));
            std::mem::take(&mut state.asleep)
        };
        if asleep {
            self.shared.wake.notify_one();
            self.revive();
        }
    }

    /// Whether the thread is alive: without it, no limit on time holds.
    pub(crate) fn is_alive(&self) -> bool {
        lock(&self.thread).as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Replaces a thread that has died. Nothing in it can panic that is known of; calls without a
    /// clock would be immortal, so it is looked at all the same.
    fn revive(&self) {
        if !self.is_alive()
            && let Ok(thread) = self.spawn()
        {
            *lock(&self.thread) = Some(thread);
        }
    }

    fn spawn(&self) -> std::io::Result<JoinHandle<()>> {
        let shared = self.shared.clone();
        std::thread::Builder::new()
            .name("cofferdam-ticker".into())
            .stack_size(256 << 10)
            .spawn(move || shared.run())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        lock(&self.shared.state).stop = true;
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut idle = 0;
        loop {
            let (calls, engines) = {
                let mut state = lock(&self.state);
                if state.stop {
                    return;
                }
                state.calls.retain(|call| call.strong_count() > 0);
                idle = if state.calls.is_empty() { idle + 1 } else { 0 };
                if idle > IDLE_TICKS_MAX {
                    state.asleep = true;
                    while state.asleep && !state.stop {
                        state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    idle = 0;
                    continue;
                }
                (due(&state.calls), state.engines.clone())
            };
            // Waking a call's task may run code of the embedder's executor, which may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| tick(&calls, &engines)));
            std::thread::sleep(TICK);
        }
    }
}

/// The calls to look at, held for the length of one tick.
fn due(calls: &[Weak<Brake>]) -> Vec<Arc<Brake>> {
    calls.iter().filter_map(Weak::upgrade).collect()
}

fn tick(calls: &[Arc<Brake>], engines: &[EngineWeak]) {
    for call in calls {
        call.check();
    }
    if !calls.is_empty() {
        engines.iter().filter_map(EngineWeak::upgrade).for_each(|engine| engine.increment_epoch());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Stop;
    use cofferdam_agent::AbortSignal;

    fn brake(abort: AbortSignal, wall: Duration) -> Arc<Brake> {
        let brake =
            Arc::new(Brake::new(wasmtime::Engine::default().weak(), abort, wall, Duration::ZERO));
        brake.start(wall);
        brake
    }

    fn wait_for(brake: &Brake) -> Stop {
        for _ in 0..2_000 {
            if let Some(stop) = brake.stopped() {
                return stop;
            }
            std::thread::sleep(TICK);
        }
        panic!("nobody stopped the call");
    }

    #[test]
    fn it_stops_late_and_aborted_calls_and_wakes_from_sleep() {
        let ticker = Ticker::new().expect("a thread");
        let late = brake(AbortSignal::new(), Duration::from_millis(2));
        ticker.watch(&late);
        assert_eq!(wait_for(&late), Stop::TimeLimit);
        drop(late);
        std::thread::sleep(TICK * (IDLE_TICKS_MAX + 30));
        let abort = AbortSignal::new();
        let aborted = brake(abort.clone(), Duration::from_secs(100));
        ticker.watch(&aborted);
        abort.cancel();
        assert_eq!(wait_for(&aborted), Stop::Aborted);
    }

    #[test]
    fn it_ends_with_its_owner() {
        let ticker = Ticker::new().expect("a thread");
        let thread = lock(&ticker.thread).take().expect("a thread");
        drop(ticker);
        thread.join().expect("the thread ends by itself");
    }
}
