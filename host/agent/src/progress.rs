//! Partial results of a running call, behind a fence: once the call has settled, later reports
//! are dropped and counted (reference issue 5573: an update after the run crashed the host).

use crate::tool::ToolResult;
use futures::task::AtomicWaker;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The tool's end: reports go in, never wait, and never fail.
#[derive(Debug, Clone)]
pub struct Progress {
    fence: Arc<Fence>,
}

/// The loop's end, or that of whoever runs a tool without an agent. Dropping it shuts the fence.
#[derive(Debug)]
pub struct Updates {
    fence: Arc<Fence>,
}

#[derive(Debug, Default)]
struct Fence {
    queue: Mutex<Queue>,
    /// Wakes the loop when a report comes in.
    taker: AtomicWaker,
    late: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    shut: bool,
    waiting: VecDeque<ToolResult>,
    /// Reports taken in, and those that observers have been handed.
    reported: u64,
    announced: u64,
    reporters: Vec<Waker>,
}

impl Progress {
    /// The two ends of one call's progress. The loop makes them for its calls; a caller that runs a
    /// tool without an agent may too.
    pub fn channel() -> (Progress, Updates) {
        let fence = Arc::new(Fence::default());
        (Progress { fence: fence.clone() }, Updates { fence })
    }

    /// Shows a partial result to observers. Dropped and counted once the call has settled.
    pub fn report(&self, partial: ToolResult) {
        let mut queue = self.fence.lock();
        if queue.shut {
            drop(queue);
            self.fence.late.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.waiting.push_back(partial);
        queue.reported += 1;
        drop(queue);
        self.fence.taker.wake();
    }

    /// Waits until observers have been handed what was reported so far, or the call has settled.
    /// They may still be dealing with it. A runner whose guest reports often waits here after each
    /// report, which bounds what can queue up.
    pub async fn announced(&self) {
        let reported = self.fence.lock().reported;
        poll_fn(|cx| {
            let mut queue = self.fence.lock();
            if queue.shut || queue.announced >= reported {
                return Poll::Ready(());
            }
            queue.reporters.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Reports that came after the call had settled.
    pub fn late(&self) -> u64 {
        self.fence.late.load(Ordering::Relaxed)
    }
}

/// Progress that nobody watches, for calls outside an agent.
impl Default for Progress {
    fn default() -> Self {
        Progress::channel().0
    }
}

impl Updates {
    /// The next report, if there is one; else the task is woken when one comes.
    pub(crate) fn take(&self, cx: &Context<'_>) -> Option<ToolResult> {
        self.fence.taker.register(cx.waker());
        self.fence.lock().waiting.pop_front()
    }

    /// Waits for the next report. Like a channel's end, it never returns once nobody can report.
    pub async fn next(&self) -> ToolResult {
        let report = poll_fn(|cx| self.take(cx).map_or(Poll::Pending, Poll::Ready)).await;
        self.announce();
        report
    }

    /// Says that observers have been handed all that was taken.
    pub(crate) fn announce(&self) {
        let mut queue = self.fence.lock();
        queue.announced = queue.reported - queue.waiting.len() as u64;
        let reporters = std::mem::take(&mut queue.reporters);
        drop(queue);
        reporters.into_iter().for_each(Waker::wake);
    }

    /// Shuts the fence: what is queued can still be taken, nothing more comes in.
    pub(crate) fn shut(&self) {
        let mut queue = self.fence.lock();
        queue.shut = true;
        let reporters = std::mem::take(&mut queue.reporters);
        drop(queue);
        reporters.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.shut();
    }
}

impl Fence {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
