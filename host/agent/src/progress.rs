//! Partial results of a running call, behind a fence: once the call has settled, later reports
//! are dropped and counted (reference issue 5573: an update after the run crashed the host).

use crate::tool::ToolResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// The tool's end: reports go in, never wait, and never fail.
#[derive(Debug, Clone)]
pub struct Progress {
    fence: Arc<Fence>,
    queue: mpsc::UnboundedSender<ToolResult>,
}

/// The loop's end.
#[derive(Debug)]
pub(crate) struct Updates {
    fence: Arc<Fence>,
    queue: mpsc::UnboundedReceiver<ToolResult>,
}

#[derive(Debug)]
struct Fence {
    open: AtomicBool,
    late: AtomicU64,
}

impl Progress {
    pub(crate) fn channel() -> (Progress, Updates) {
        let fence = Arc::new(Fence { open: AtomicBool::new(true), late: AtomicU64::new(0) });
        let (sender, receiver) = mpsc::unbounded_channel();
        (Progress { fence: fence.clone(), queue: sender }, Updates { fence, queue: receiver })
    }

    /// Shows a partial result to observers. Dropped and counted once the call has settled.
    pub fn report(&self, partial: ToolResult) {
        let taken = self.fence.open.load(Ordering::Acquire) && self.queue.send(partial).is_ok();
        if !taken {
            self.fence.late.fetch_add(1, Ordering::Relaxed);
        }
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
