//! A bound on how long a question waits. It is not the call's wall time, which begins later.

use cofferdam_agent::hook::{Approval, Approver, Decision};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// An approver whose questions are closed after a while. Needs the timer of a tokio runtime.
pub struct TimeLimited {
    approver: Arc<dyn Approver>,
    seconds_max: u64,
}

impl TimeLimited {
    /// The same approver, asked for so many seconds at most.
    pub fn new(approver: Arc<dyn Approver>, seconds_max: u64) -> Self {
        Self { approver, seconds_max }
    }
}

impl Approver for TimeLimited {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let limit = Duration::from_secs(self.seconds_max);
            let asked = self.approver.approve(approval);
            tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Decision::Unanswered {
                why: format!(
                    "nobody answered within {} s (`[approval] timeout_seconds`)",
                    self.seconds_max
                ),
            })
        })
    }
}
