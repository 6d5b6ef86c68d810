//! Reports of a running call as progress notifications. The loop's fence is before them: it hands
//! out no report after the end, and the end waits for those that are on their way, so none overtakes
//! the result.

use crate::wire;
use cofferdam_agent::event::{Event, Observer};
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use std::sync::{Mutex, PoisonError};

/// Reports one call to the client that asked for it, if it wants to know.
pub(crate) struct Reporter {
    token: Option<ProgressToken>,
    client: Peer<RoleServer>,
    latest: Mutex<Latest>,
    /// Held while a notification is sent: they go out one by one, in order.
    sending: tokio::sync::Mutex<()>,
}

/// The last report, and how many there were.
#[derive(Default)]
struct Latest {
    reports: u32,
    unsent: Option<String>,
}

impl Reporter {
    pub(crate) fn new(token: Option<ProgressToken>, client: Peer<RoleServer>) -> Self {
        let (latest, sending) = Default::default();
        Self { token, client, latest, sending }
    }

    /// Sends the last report. Those that came while the one before was sent are skipped: a client
    /// that reads slowly gets what is up to date.
    async fn send(&self, token: &ProgressToken) {
        let _turn = self.sending.lock().await;
        let (reports, text) = {
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(text) = latest.unsent.take() else { return };
            (latest.reports, text)
        };
        let progress = ProgressNotificationParam::new(token.clone(), reports.into());
        // A client that is gone needs no report; the call ends by its own signal.
        let _ = self.client.notify_progress(progress.with_message(text)).await;
    }
}

impl Observer for Reporter {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        let (Event::ToolExecutionUpdate { partial, .. }, Some(token)) = (event, &self.token) else {
            return Box::pin(std::future::ready(()));
        };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.reports = latest.reports.saturating_add(1);
        latest.unsent = Some(wire::text(partial));
        drop(latest);
        Box::pin(self.send(token))
    }
}
