//! Where calls begin. Many are over in microseconds, which is less than it takes to hand them to a
//! thread each, and two threads that start instances of one component slow each other down. So calls
//! that come together are begun one after the other by one task, a lane, and their ends are handed
//! over a few at a time: waking the thread that waits for them takes as long as another call.
//!
//! A call that is not over in its first turn, which the ticker ends within a millisecond, goes on as a
//! task of its own. When a lane is held up, another one opens, up to one for each worker. A turn may also last:
//! nothing cuts an instruction that fills memory. So the ticker looks after what waits behind one.

use crate::brake::now;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::runtime::Handle;

/// Microseconds of one call after which the calls behind it are worth another thread.
const HELD_UP_US: u64 = 100;
/// Microseconds after which a lane lets the tasks of its worker run.
const TURN_US: u64 = 200;
/// Ends that are handed over together.
const ENDS_MAX: usize = 8;

/// The end of a call, for whoever waits for it.
pub(crate) trait End: Send + 'static {
    fn hand_over(self);
}

/// The lanes of one sandbox.
pub(crate) struct Lanes<E> {
    runtime: Handle,
    lanes_max: usize,
    queue: Mutex<Queue<E>>,
    /// When a lane last began a call, in microseconds of the process's clock.
    began: AtomicU64,
}

struct Queue<E> {
    waiting: VecDeque<BoxFuture<'static, E>>,
    /// Ends that are not handed over yet.
    ends: Vec<E>,
    /// Lanes that will look at what is waiting.
    open: usize,
}

impl<E: End> Lanes<E> {
    pub(crate) fn new(runtime: Handle, lanes_max: usize) -> Arc<Self> {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), ends: Vec::new(), open: 0 });
        Arc::new(Self { runtime, lanes_max, queue, began: AtomicU64::new(0) })
    }

    /// Runs a call as soon as there is a thread for it. It must not panic.
    pub(crate) fn begin(self: &Arc<Self>, call: BoxFuture<'static, E>) {
        let mut queue = self.lock();
        queue.waiting.push_back(call);
        if queue.open == 0 || self.is_held_up() {
            self.open(queue);
        }
    }

    /// Hands over all ends, this one last.
    fn hand_over(&self, last: Option<E>) {
        let ends = std::mem::take(&mut self.lock().ends);
        ends.into_iter().chain(last).for_each(End::hand_over);
    }

    /// Looks after what waits behind a call that keeps its thread. Called at every tick.
    pub(crate) fn relieve(self: &Arc<Self>) {
        if !self.is_held_up() {
            return;
        }
        let mut queue = self.lock();
        let ends = std::mem::take(&mut queue.ends);
        match queue.waiting.is_empty() {
            true => drop(queue),
            false => self.open(queue),
        }
        ends.into_iter().for_each(End::hand_over);
    }

    fn is_held_up(&self) -> bool {
        now().saturating_sub(self.began.load(Ordering::Relaxed)) > HELD_UP_US
    }

    fn open(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue<E>>) {
        if queue.open < self.lanes_max {
            queue.open += 1;
            // Until it has begun its first call, it is not held up.
            self.began.store(now(), Ordering::Relaxed);
            drop(queue);
            // Every call looks after its own turns.
            self.runtime.spawn(tokio::task::unconstrained(self.clone().lane()));
        }
    }

    async fn lane(self: Arc<Self>) {
        let mut turn = now();
        let mut end = None;
        while let Some(mut call) = self.next(end.take()) {
            let began = now();
            self.began.store(began, Ordering::Relaxed);
            end = turn_of(&mut call).await;
            if end.is_none() && now() - began < HELD_UP_US {
                // The epoch may have been advanced for the sake of this very call.
                end = turn_of(&mut call).await;
            }
            if end.is_none() {
                self.runtime.spawn(call.map(End::hand_over));
            }
            let ended = now();
            if ended - began > HELD_UP_US {
                let queue = self.lock();
                if !queue.waiting.is_empty() {
                    self.open(queue);
                }
            }
            if ended - turn > TURN_US {
                self.hand_over(end.take());
                tokio::task::yield_now().await;
                turn = now();
            }
        }
    }

    /// Takes the end of a call, and gives the next one; if there is none, the lane is closed.
    fn next(&self, end: Option<E>) -> Option<BoxFuture<'static, E>> {
        let mut queue = self.lock();
        queue.ends.extend(end);
        let next = queue.waiting.pop_front();
        queue.open -= usize::from(next.is_none());
        let together = next.is_none() || queue.ends.len() >= ENDS_MAX;
        let ends = if together { std::mem::take(&mut queue.ends) } else { Vec::new() };
        drop(queue);
        ends.into_iter().for_each(End::hand_over);
        next
    }

    fn lock(&self) -> MutexGuard<'_, Queue<E>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One poll of a call, which ends it or does not.
async fn turn_of<E>(call: &mut BoxFuture<'static, E>) -> Option<E> {
    std::future::poll_fn(|cx| match call.poll_unpin(cx) {
        Poll::Ready(end) => Poll::Ready(Some(end)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;

    impl<F: FnOnce() + Send + 'static> End for F {
        fn hand_over(self) {
            self();
        }
    }

    type Said = Box<dyn FnOnce() + Send>;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    }

    #[test]
    fn ends_are_handed_over_in_their_order_and_a_call_that_waits_keeps_nobody() {
        let runtime = runtime();
        let lanes = Lanes::<Said>::new(runtime.handle().clone(), 1);
        let (say, said) = std::sync::mpsc::channel();
        let (open, gate) = oneshot::channel::<()>();
        let mut gate = Some(gate);
        for index in 0..1_000 {
            let (say, gate) = (say.clone(), if index == 0 { gate.take() } else { None });
            lanes.begin(Box::pin(async move {
                if let Some(gate) = gate {
                    gate.await.unwrap();
                }
                Box::new(move || say.send(index).unwrap()) as Said
            }));
        }
        for index in 1..1_000 {
            assert_eq!(said.recv(), Ok(index));
        }
        open.send(()).unwrap();
        assert_eq!(said.recv(), Ok(0));
        assert_eq!(lanes.lock().waiting.len(), 0);
    }

    #[test]
    fn a_call_that_keeps_its_thread_keeps_nobody_else() {
        let runtime = runtime();
        let lanes = Lanes::<Said>::new(runtime.handle().clone(), 2);
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let (enter, entered) = std::sync::mpsc::channel();
        lanes.begin(Box::pin(async move {
            enter.send(()).unwrap();
            gate.recv().unwrap();
            Box::new(|| ()) as Said
        }));
        entered.recv().unwrap();
        // Until it counts as held up, which the clock says and nothing else does.
        std::thread::sleep(Duration::from_micros(2 * HELD_UP_US));
        let (say, said) = std::sync::mpsc::channel();
        lanes.begin(Box::pin(async move { Box::new(move || say.send(()).unwrap()) as Said }));
        said.recv().unwrap();
        open.send(()).unwrap();
    }

    /// Both come at once, so that nothing looks held up when the second one comes.
    #[test]
    fn what_waits_behind_a_call_that_keeps_its_thread_is_relieved() {
        let runtime = runtime();
        let lanes = Lanes::<Said>::new(runtime.handle().clone(), 2);
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let (say, said) = std::sync::mpsc::channel();
        let (before, after) = (say.clone(), say);
        {
            let mut queue = lanes.lock();
            let mut call = |call: BoxFuture<'static, Said>| queue.waiting.push_back(call);
            call(Box::pin(async move { Box::new(move || before.send(1).unwrap()) as Said }));
            call(Box::pin(async move {
                gate.recv().unwrap();
                Box::new(|| ()) as Said
            }));
            call(Box::pin(async move { Box::new(move || after.send(2).unwrap()) as Said }));
            lanes.open(queue);
        }
        let mut told = Vec::new();
        while told.len() < 2 {
            lanes.relieve();
            told.extend(said.recv_timeout(Duration::from_millis(1)));
        }
        told.sort_unstable();
        assert_eq!(told, [1, 2]);
        open.send(()).unwrap();
    }
}
