//! The brake of one call: a flag and a deadline that everybody who may stop the call shares.
//!
//! Four parties hold it: whoever aborts, the ticker that watches the deadline, the guest's epoch
//! callback, which asks whether to go on, and the call's task, which is woken to drop a guest that
//! waits in the host.

use crate::error::Stop;
use cofferdam_agent::AbortSignal;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Wake;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use wasmtime::EngineWeak;

/// The brake of one call.
pub(crate) struct Brake {
    engine: EngineWeak,
    abort: AbortSignal,
    /// Microseconds of the process's clock at which the call was asked for.
    asked: u64,
    /// Why the call is stopped, as [`Stop::code`] has it; zero while it may go on.
    stop: AtomicU8,
    /// Microseconds of the process's clock after which the call is stopped.
    deadline: AtomicU64,
    /// Whether the call has got its slot, so that the deadline is that of its wall time.
    running: AtomicBool,
    aborted: AtomicBool,
    /// Whether the guest has asked for its cancellation, and so gets the grace period.
    cooperative: AtomicBool,
    grace: Duration,
    wake: Notify,
}

impl Brake {
    /// A brake for a call that now waits for its slot, at most so long.
    pub(crate) fn new(
        engine: EngineWeak,
        abort: AbortSignal,
        queue: Duration,
        grace: Duration,
    ) -> Self {
        let asked = now();
        Self {
            engine,
            abort,
            asked,
            stop: AtomicU8::new(0),
            deadline: AtomicU64::new(asked.saturating_add(micros(queue))),
            running: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            cooperative: AtomicBool::new(false),
            grace,
            wake: Notify::new(),
        }
    }

    /// The call has its slot: its wall time begins. If it was aborted while it waited, or before, it
    /// has its grace period; whoever comes second, this or the abort, sees what the other did.
    /// Returns when that is.
    pub(crate) fn start(&self, wall: Duration) -> u64 {
        let started = now();
        self.deadline.store(started.saturating_add(micros(wall)), Ordering::SeqCst);
        self.running.store(true, Ordering::Release);
        if self.aborted.load(Ordering::SeqCst) {
            self.shorten_to_grace();
        }
        started
    }

    /// Somebody wants the call to end: at once, or within the grace period if the guest has shown
    /// that it looks for this.
    pub(crate) fn abort(&self) {
        if self.aborted.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.cooperative.load(Ordering::Acquire) && !self.grace.is_zero() {
            self.shorten_to_grace();
        } else {
            self.stop(Stop::Aborted);
        }
    }

    fn shorten_to_grace(&self) {
        self.deadline.fetch_min(now().saturating_add(micros(self.grace)), Ordering::SeqCst);
    }

    /// Ends the call now. The first reason stays.
    pub(crate) fn stop(&self, stop: Stop) {
        let _ = self.stop.compare_exchange(0, stop.code(), Ordering::AcqRel, Ordering::Acquire);
        // A guest that computes is reached at its next epoch check. The epoch is the engine's, so
        // every other guest runs its callback as well and goes on.
        if let Some(engine) = self.engine.upgrade() {
            engine.increment_epoch();
        }
        // A guest that waits in the host, or for a slot, is dropped by its task.
        self.wake.notify_one();
    }

    /// Looks at the flag, the abort signal and the clock. Cheap enough for every millisecond.
    pub(crate) fn check(&self) -> Option<Stop> {
        if let Some(stop) = self.stopped() {
            return Some(stop);
        }
        if self.abort.is_cancelled() {
            self.abort();
        }
        if now() >= self.deadline.load(Ordering::Acquire) {
            self.stop(
                match (self.aborted.load(Ordering::Acquire), self.running.load(Ordering::Acquire)) {
                    (true, _) => Stop::Aborted,
                    (false, true) => Stop::TimeLimit,
                    (false, false) => Stop::QueueTime,
                },
            );
        }
        self.stopped()
    }

    /// Why the call is stopped, if it is.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        Stop::from_code(self.stop.load(Ordering::Acquire))
    }

    /// Ready as soon as the call is stopped.
    pub(crate) async fn stopping(&self) -> Stop {
        loop {
            if let Some(stop) = self.stopped() {
                return stop;
            }
            self.wake.notified().await;
        }
    }

    /// The guest asks whether it was cancelled, and from now on gets the grace period; asked on behalf
    /// of a guest that gets it in any case.
    pub(crate) fn ask(&self) -> bool {
        self.cooperative.store(true, Ordering::Release);
        if !self.aborted.load(Ordering::Acquire) && self.abort.is_cancelled() {
            self.abort();
        }
        self.aborted.load(Ordering::Acquire)
    }

    /// When the call was asked for, in microseconds of the process's clock.
    pub(crate) fn asked(&self) -> u64 {
        self.asked
    }

    /// When the call is stopped, in microseconds of the process's clock.
    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Acquire)
    }

    /// What is left to the call.
    pub(crate) fn remaining(&self) -> Duration {
        Duration::from_micros(self.deadline.load(Ordering::Acquire).saturating_sub(now()))
    }
}

/// Woken by an abort: whoever aborts brakes the guest itself, and no thread need wake up for that first.
impl Wake for Brake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.abort.is_cancelled() {
            self.abort();
        }
    }
}

/// Microseconds since the process first asked.
pub(crate) fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    micros(START.elapsed())
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brake(queue: Duration, grace: Duration) -> Brake {
        Brake::new(wasmtime::Engine::default().weak(), AbortSignal::new(), queue, grace)
    }

    const LONG: Duration = Duration::from_secs(1_000);

    #[test]
    fn the_first_reason_stays() {
        let brake = brake(LONG, LONG);
        assert_eq!(brake.check(), None);
        brake.stop(Stop::TimeLimit);
        brake.abort();
        assert_eq!(brake.check(), Some(Stop::TimeLimit));
    }

    #[test]
    fn a_deadline_ends_the_wait_or_the_run() {
        assert_eq!(brake(Duration::ZERO, LONG).check(), Some(Stop::QueueTime));
        let running = brake(LONG, LONG);
        running.start(Duration::ZERO);
        assert_eq!(running.check(), Some(Stop::TimeLimit));
    }

    #[test]
    fn only_a_guest_that_asks_gets_the_grace_period() {
        let plain = brake(LONG, LONG);
        plain.abort.cancel();
        assert_eq!(plain.check(), Some(Stop::Aborted));

        let tidy = brake(LONG, LONG);
        assert!(!tidy.ask());
        tidy.abort();
        assert!(tidy.ask());
        assert_eq!(tidy.check(), None);

        let late = brake(LONG, Duration::from_secs(1));
        late.ask();
        late.abort();
        late.start(LONG);
        assert!(late.remaining() <= Duration::from_secs(1), "a start does not undo an abort");

        let short = brake(LONG, Duration::from_micros(1));
        short.ask();
        short.abort();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(short.check(), Some(Stop::Aborted));
    }
}
