//! The run of one call: the fence opens, the tool runs, what it reports is delivered while it runs,
//! the fence shuts.

use super::Walk;
use super::batch::OneCall;
use super::finish::{Finished, Settled};
use super::preflight::Ready;
use crate::event::{Event, ended_by};
use crate::guarded::guarded;
use crate::progress::Progress;
use crate::refusal;
use crate::tool::{Call, Outcome, ToolFailure, ToolResult};
use crate::toolset::Entry;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

impl Walk<'_> {
    /// Runs a call and its after-hooks. A call that was ready before an abort does not begin after
    /// it.
    pub(super) async fn execute(&self, ready: Ready<'_>) -> Finished {
        let Ready { one, entry, call, records } = ready;
        if self.abort.is_cancelled() {
            let mut finished = Finished::refused(ended_by::ABORTED, refusal::aborted());
            finished.end.hooks = records;
            return finished;
        }
        let clock = &self.agent.fixed.clock;
        let began = clock();
        let outcome = self.settle(one, entry, call.clone()).await;
        let settled = Settled { outcome, duration: clock().saturating_duration_since(began) };
        self.finish(one, entry, call, settled, records).await
    }

    /// Polls the tool and the deliveries of its updates side by side, until the tool has settled and
    /// the last observer has dealt with the last update. An update is delivered as soon as it is
    /// reported, also while earlier ones are still being dealt with.
    async fn settle(&self, one: OneCall<'_>, entry: &Entry, call: Call) -> Outcome {
        let (progress, updates) = Progress::channel();
        let running = guarded(|| entry.tool.call(call, progress, self.abort.clone()));
        let mut running = pin!(running);
        let mut outcome = None;
        let mut deliveries = None;
        let outcome = poll_fn(|cx| {
            if outcome.is_none()
                && let Poll::Ready(settled) = running.as_mut().poll(cx)
            {
                updates.shut();
                outcome = Some(settled);
            }
            while let Some(partial) = updates.take(cx) {
                deliveries
                    .get_or_insert_with(FuturesUnordered::new)
                    .push(self.deliver(one, partial));
            }
            if let Some(deliveries) = &mut deliveries {
                while let Poll::Ready(Some(())) = deliveries.poll_next_unpin(cx) {}
                updates.announce();
                if !deliveries.is_empty() {
                    return Poll::Pending;
                }
            }
            match outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => Poll::Pending,
            }
        })
        .await;
        outcome.unwrap_or_else(|panic| {
            let message = refusal::panicked("The tool", &panic);
            let ended_by = ended_by::PANIC.into();
            Err(ToolFailure { message, ended_by, details: None }).into()
        })
    }

    async fn deliver(&self, one: OneCall<'_>, partial: ToolResult) {
        self.emit(&Event::ToolExecutionUpdate { call: one.event(), partial: &partial }).await;
    }
}
