//! The clock of all calls: one thread that looks at running calls once a millisecond and lets guests
//! yield. It sleeps while no call runs.
//!
//! A call whose deadline has come is looked at in that millisecond, however many there are. The
//! others take turns, so that thousands of calls that wait cost next to nothing.
//!
//! It is a plain thread because no guest, and nothing that an embedder does with its runtime, may
//! keep it from ticking. It also makes up for an epoch that was advanced just before a guest's
//! store was armed, which the engine loses.

use crate::brake::{Brake, now};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::EngineWeak;

/// How often running calls are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(1);
/// Ticks without a call after which the thread sleeps; waking it costs a call some microseconds.
const IDLE_TICKS_MAX: u32 = 50;
/// Calls that are looked at in one tick although their deadline has not come: whether they have
/// ended, or were aborted by somebody whose own thread does not get to say so.
const TURNS_PER_TICK: usize = 512;

/// The ticking thread and what it watches.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    door: Mutex<Door>,
    wake: Condvar,
    /// Locked by the thread alone, so that a tick keeps no call waiting; here, so that a thread that
    /// takes the place of a dead one goes on with it.
    watched: Mutex<Watched>,
}

/// Where calls come in.
#[derive(Default)]
struct Door {
    arrived: Vec<WatchedCall>,
    engines: Vec<EngineWeak>,
    each_tick: Option<Arc<dyn Fn() + Send + Sync>>,
    asleep: bool,
    stop: bool,
}

#[derive(Default)]
struct Watched {
    calls: Vec<WatchedCall>,
    /// Whose turn it is.
    turn: usize,
}

struct WatchedCall {
    /// Weak, so that a call leaves by ending.
    brake: Weak<Brake>,
    /// A time of the process's clock that its deadline is not before, unless it was aborted.
    due: u64,
}

impl Ticker {
    pub(crate) fn new() -> std::io::Result<Self> {
        let ticker = Self { shared: Arc::default(), thread: Mutex::new(None) };
        *lock(&ticker.thread) = Some(ticker.spawn()?);
        Ok(ticker)
    }

    /// Advances the epoch of one more engine.
    pub(crate) fn add_engine(&self, engine: EngineWeak) {
        lock(&self.shared.door).engines.push(engine);
    }

    /// Does this at every tick, while calls run.
    pub(crate) fn each_tick(&self, work: impl Fn() + Send + Sync + 'static) {
        lock(&self.shared.door).each_tick = Some(Arc::new(work));
    }

    /// Watches a call from now until its brake is dropped. Its deadline does not come before `due`,
    /// a time of the process's clock, unless it is aborted.
    pub(crate) fn watch(&self, brake: &Arc<Brake>, due: u64) {
        let asleep = {
            let mut door = lock(&self.shared.door);
            door.arrived.push(WatchedCall { brake: Arc::downgrade(brake), due });
            std::mem::take(&mut door.asleep)
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
        lock(&self.shared.door).stop = true;
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut watched = lock(&self.watched);
        let mut idle = 0;
        loop {
            let (engines, each_tick) = {
                let mut door = lock(&self.door);
                if door.stop {
                    return;
                }
                watched.calls.append(&mut door.arrived);
                idle = if watched.calls.is_empty() { idle + 1 } else { 0 };
                if idle > IDLE_TICKS_MAX {
                    door.asleep = true;
                    while door.asleep && !door.stop {
                        door = self.wake.wait(door).unwrap_or_else(PoisonError::into_inner);
                    }
                    idle = 0;
                    continue;
                }
                (door.engines.clone(), door.each_tick.clone())
            };
            // Waking a call's task may run code of the embedder's executor, which may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                watched.tick(&engines);
                each_tick.iter().for_each(|work| work());
            }));
            std::thread::sleep(TICK);
        }
    }
}

impl Watched {
    fn tick(&mut self, engines: &[EngineWeak]) {
        if !self.calls.is_empty() {
            let engines = engines.iter().filter_map(EngineWeak::upgrade);
            engines.for_each(|engine| engine.increment_epoch());
        }
        let now = now();
        self.calls.iter_mut().filter(|call| call.due <= now).for_each(|call| {
            call.look();
        });
        for _ in 0..self.calls.len().min(TURNS_PER_TICK) {
            if self.turn >= self.calls.len() {
                self.turn = 0;
            }
            match self.calls.get_mut(self.turn).map(WatchedCall::look) {
                Some(Seen::Running) => self.turn += 1,
                Some(Seen::Ended) => drop(self.calls.swap_remove(self.turn)),
                None => return,
            }
        }
    }
}

enum Seen {
    Running,
    Ended,
}

impl WatchedCall {
    /// Stops the call if it has to be, and notes when its deadline comes.
    fn look(&mut self) -> Seen {
        let Some(brake) = self.brake.upgrade() else { return Seen::Ended };
        brake.check();
        self.due = brake.deadline();
        Seen::Running
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
    use std::sync::LazyLock;

    fn brake(abort: AbortSignal, wall: Duration) -> Arc<Brake> {
        static ENGINE: LazyLock<wasmtime::Engine> = LazyLock::new(wasmtime::Engine::default);
        let brake = Arc::new(Brake::new(ENGINE.weak(), abort, wall, Duration::ZERO));
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
        ticker.watch(&late, 0);
        assert_eq!(wait_for(&late), Stop::TimeLimit);
        drop(late);
        std::thread::sleep(TICK * (IDLE_TICKS_MAX + 30));
        let abort = AbortSignal::new();
        let aborted = brake(abort.clone(), Duration::from_secs(100));
        ticker.watch(&aborted, aborted.deadline());
        abort.cancel();
        assert_eq!(wait_for(&aborted), Stop::Aborted);
    }

    #[test]
    fn a_deadline_is_kept_among_thousands_of_calls_and_the_ended_are_forgotten() {
        let brakes: Vec<_> = (0..10 * TURNS_PER_TICK)
            .map(|_| brake(AbortSignal::new(), Duration::from_secs(100)))
            .collect();
        let last = brake(AbortSignal::new(), Duration::ZERO);
        let call = |brake: &Arc<Brake>, due| WatchedCall { brake: Arc::downgrade(brake), due };
        let calls = brakes.iter().map(|brake| call(brake, u64::MAX)).chain([call(&last, 0)]);
        let mut watched = Watched { calls: calls.collect(), turn: 0 };
        watched.tick(&[]);
        assert_eq!(last.stopped(), Some(Stop::TimeLimit));
        drop((brakes, last));
        for _ in 0..11 {
            watched.tick(&[]);
        }
        assert!(watched.calls.is_empty(), "{}", watched.calls.len());
    }

    #[test]
    fn an_abort_is_seen_within_a_round_of_turns() {
        let abort = AbortSignal::new();
        let brakes: Vec<_> = (0..3 * TURNS_PER_TICK)
            .map(|_| brake(abort.clone(), Duration::from_secs(100)))
            .collect();
        let call = |brake| WatchedCall { brake: Arc::downgrade(brake), due: u64::MAX };
        let mut watched = Watched { calls: brakes.iter().map(call).collect(), turn: 0 };
        abort.cancel();
        (0..3).for_each(|_| watched.tick(&[]));
        assert!(brakes.iter().all(|brake| brake.stopped() == Some(Stop::Aborted)));
    }

    #[test]
    fn it_ends_with_its_owner() {
        let ticker = Ticker::new().expect("a thread");
        let thread = lock(&ticker.thread).take().expect("a thread");
        drop(ticker);
        thread.join().expect("the thread ends by itself");
    }
}
