//! One model call: the request, and the answer as it streams. The last step is authoritative; what
//! was folded from the steps before is for observers.

use super::Run;
use crate::config::Messages;
use crate::event::Event;
use crate::guarded;
use crate::journal::JournalError;
use crate::message::{AssistantBlock, AssistantMessage, Message, StopReason, TextBlock};
use crate::model::{Request, Step};
use crate::partial::Partial;
use futures::StreamExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

impl Run<'_> {
    /// Calls the model, also when aborted already: it answers `aborted` at once.
    pub(super) async fn answer(&mut self) -> Result<Arc<Message>, JournalError> {
        let request = self.request().await;
        let mut started = false;
        let last = self.follow(request, &mut started).await;
        if !started {
            self.emit(&Event::MessageStart { message: &last }).await;
        }
        let calls =
            last.as_assistant().filter(|a| !a.failed()).map_or(0, |a| a.tool_calls().count());
        let last = Arc::new(last);
        self.keep(&last, |state| state.transcript.append_answer(last.clone(), calls)).await?;
        self.emit(&Event::MessageEnd { message: &last }).await;
        Ok(last)
    }

    async fn request(&self) -> Request {
        let fixed = &self.agent.fixed;
        let mut messages = self.state().transcript.messages();
        if let Some(transform) = &fixed.transform {
            messages = transform.transform(messages, self.abort).await;
        }
        messages = match &fixed.conversion {
            Some(conversion) => conversion.convert(messages).await,
            None if fixed.transform.is_some() || self.state().transcript.has_custom() => {
                without_custom(messages)
            }
            None => messages,
        };
        let credential = match &fixed.credentials {
            Some(credentials) => credentials.resolve().await,
            None => None,
        };
        Request {
            system_prompt: self.settings.system_prompt.clone(),
            messages,
            tools: self.settings.toolset.declarations().clone(),
            thinking: self.settings.thinking,
            credential,
        }
    }

    /// Follows the stream to its last step. The stream, and the request in it, is gone afterwards,
    /// so the transcript can grow without being copied.
    async fn follow(&mut self, request: Request, started: &mut bool) -> Message {
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.settings.model.stream(request, self.abort.clone())
        }));
        let mut stream = match called {
            Ok(stream) => AssertUnwindSafe(stream).catch_unwind(),
            Err(panic) => return self.broken_model(guarded::message(&*panic)),
        };
        let mut partial = Partial::default();
        loop {
            match stream.next().await {
                Some(Ok(Step::Done(answer))) => return Message::Assistant(answer),
                Some(Ok(step)) => self.announce(step, &mut partial, started).await,
                Some(Err(panic)) => return self.broken_model(guarded::message(&*panic)),
                None => {
                    return self.broken_model("the stream ended without an answer".into());
                }
            }
        }
    }

    async fn announce(&self, step: Step, partial: &mut Partial, started: &mut bool) {
        match step {
            Step::Retry(retry) => self.emit(&Event::ModelRetry { retry: &retry }).await,
            Step::Start if !*started => {
                *started = true;
                let message = Message::Assistant(partial.message().clone());
                self.emit(&Event::MessageStart { message: &message }).await;
            }
            Step::Start => {}
            step if *started => {
                partial.fold(&step);
                self.emit(&Event::MessageUpdate { step: &step, message: partial.message() }).await;
            }
            _ => {}
        }
    }

    /// A model must not fail. Where it does, an answer is made up that says so.
    fn broken_model(&mut self, problem: String) -> Message {
        self.broken = true;
        let aborted = self.abort.is_cancelled();
        Message::Assistant(AssistantMessage {
            content: vec![AssistantBlock::Text(TextBlock::default())],
            stop_reason: if aborted { StopReason::Aborted } else { StopReason::Error },
            error_message: Some(problem),
            ..AssistantMessage::pending()
        })
    }
}

fn without_custom(messages: Messages) -> Messages {
    let is_custom = |message: &Arc<Message>| matches!(**message, Message::Custom(_));
    if !messages.iter().any(is_custom) {
        return messages;
    }
    Arc::new(messages.iter().filter(|message| !is_custom(message)).cloned().collect())
}
