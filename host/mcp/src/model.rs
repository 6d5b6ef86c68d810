//! The model of an agent that has none.

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{AssistantMessage, StopReason};
use cofferdam_agent::model::{Model, Request, Step};
use futures::stream::{self, BoxStream, StreamExt as _};

/// Fails every request: an agent that serves its tools only is never prompted.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModel;

impl Model for NoModel {
    fn stream(&self, _: Request, _: AbortSignal) -> BoxStream<'static, Step> {
        let answer = AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("this agent has no model".into()),
            ..AssistantMessage::pending()
        };
        stream::iter([Step::Done(answer)]).boxed()
    }
}
