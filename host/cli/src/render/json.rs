//! Every event of a run as one line of JSON.

use super::Output;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_app::json;
use futures::future::BoxFuture;

/// Writes events as JSON lines.
pub(crate) struct JsonLines(pub(crate) Output);

impl Observer for JsonLines {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        self.0.json(&json::event(event));
        Box::pin(std::future::ready(()))
    }
}
