//! A bound on how long a question waits. It is not the call's wall time, which begins later.

use cofferdam_agent::hook::{Approval, Approver, Decision};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An approver whose questions are closed after a while. Needs the timer of a tokio runtime.
pub struct TimeLimited {
    approver: Arc<dyn Approver>,
    seconds_max: Arc<AtomicU64>,
}

impl TimeLimited {
    /// The same approver, asked for so many seconds at most.
    pub fn new(approver: Arc<dyn Approver>, seconds_max: u64) -> Self {
        Self::sharing(approver, Arc::new(AtomicU64::new(seconds_max)))
    }

    /// The same, with a bound that may change from question to question.
    pub(crate) fn sharing(approver: Arc<dyn Approver>, seconds_max: Arc<AtomicU64>) -> Self {
        Self { approver, seconds_max }
    }
}

impl Approver for TimeLimited {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let seconds_max = self.seconds_max.load(Ordering::Relaxed);
            let limit = Duration::from_secs(seconds_max);
            let asked = self.approver.approve(approval);
            tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Decision::Unanswered {
                why: format!(
                    "nobody answered within {seconds_max} s (`[approval] timeout_seconds`)"
                ),
            })
        })
    }
}
