//! One model call: the request, and the answer as it streams. The last step is authoritative; what
//! was folded from the steps before is for observers.

use super::Run;
use crate::config::Messages;
use crate::event::Event;
use crate::guarded;
use crate::journal::JournalError;
use crate::message::{
    AssistantBlock, AssistantMessage, Message, StopReason, TextBlock, ThinkingBlock, ToolCall,
};
use crate::model::{Request, Step};
use crate::preview::Preview;
use futures::StreamExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

impl Run<'_> {
    /// Calls the model, also when aborted already: it answers `aborted` at once.
    pub(super) async fn answer(&mut self) -> Result<Arc<Message>, JournalError> {
        let request = self.request().await;
        let mut partial = Partial::default();
        let last = self.follow(request, &mut partial).await;
        if !partial.started {
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
    async fn follow(&mut self, request: Request, partial: &mut Partial) -> Message {
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.settings.model.stream(request, self.abort.clone())
        }));
        let mut stream = match called {
            Ok(stream) => AssertUnwindSafe(stream).catch_unwind(),
            Err(panic) => return self.broken_model(guarded::message(&*panic)),
        };
        loop {
            match stream.next().await {
                Some(Ok(Step::Done(answer))) => return Message::Assistant(answer),
                Some(Ok(step)) => self.announce(step, partial).await,
                Some(Err(panic)) => return self.broken_model(guarded::message(&*panic)),
                None => {
                    return self.broken_model("the stream ended without an answer".into());
                }
            }
        }
    }

    async fn announce(&self, step: Step, partial: &mut Partial) {
        if let Step::Start = step {
            if !std::mem::replace(&mut partial.started, true) {
                self.emit(&Event::MessageStart { message: &partial.message }).await;
            }
        } else if partial.started {
            partial.fold(&step);
            if let Message::Assistant(message) = &partial.message {
                self.emit(&Event::MessageUpdate { step: &step, message }).await;
            }
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

/// An answer that still streams.
struct Partial {
    started: bool,
    message: Message,
    /// Of the call that is being written.
    preview: Preview,
}

impl Default for Partial {
    fn default() -> Self {
        let message = Message::Assistant(AssistantMessage::pending());
        Self { started: false, message, preview: Preview::default() }
    }
}

impl Partial {
    fn fold(&mut self, step: &Step) {
        let Message::Assistant(message) = &mut self.message else { return };
        let blocks = &mut message.content;
        match step {
            Step::Start | Step::Done(_) => {}
            Step::TextStart { .. } => blocks.push(AssistantBlock::Text(TextBlock::default())),
            Step::ThinkingStart { .. } => {
                blocks.push(AssistantBlock::Thinking(ThinkingBlock::default()));
            }
            Step::ToolCallStart { id, name, .. } => {
                self.preview = Preview::default();
                blocks.push(AssistantBlock::ToolCall(ToolCall::from_text(id, name, "")));
            }
            Step::TextDelta { index, delta } => {
                if let Some(AssistantBlock::Text(block)) = blocks.get_mut(*index) {
                    block.text.push_str(delta);
                }
            }
            Step::TextEnd { index, text } => {
                if let Some(AssistantBlock::Text(block)) = blocks.get_mut(*index) {
                    block.text.clone_from(text);
                }
            }
            Step::ThinkingDelta { index, delta } => {
                if let Some(AssistantBlock::Thinking(block)) = blocks.get_mut(*index) {
                    block.thinking.push_str(delta);
                }
            }
            Step::ThinkingEnd { index, thinking } => {
                if let Some(AssistantBlock::Thinking(block)) = blocks.get_mut(*index) {
                    block.thinking.clone_from(thinking);
                }
            }
            Step::ToolCallDelta { index, delta } => {
                if let Some(AssistantBlock::ToolCall(block)) = blocks.get_mut(*index)
                    && let Some(arguments) = self.preview.push(delta)
                {
                    block.arguments = arguments;
                }
            }
            Step::ToolCallEnd { index, call } => {
                if let Some(AssistantBlock::ToolCall(block)) = blocks.get_mut(*index) {
                    block.clone_from(call);
                }
            }
        }
    }
}
