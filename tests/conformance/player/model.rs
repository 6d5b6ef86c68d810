//! The scripted model: answers in order, streamed as the scenario says.

use super::print::digest;
use super::read::{argument_text, assistant, tool_call};
use super::rules::{list, thrown};
use super::steps::Party;
use super::world::World;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, StopReason, TextBlock, ThinkingBlock, ToolCall,
};
use cofferdam_agent::model::{Model, Request, Step, Thinking};
use cofferdam_agent::preview::Preview;
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) struct ScriptedModel {
    pub(super) world: Arc<World>,
}

impl Model for ScriptedModel {
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        let entry = self.record(&request, &abort);
        // A task of its own, which runs ahead of the loop as the recorded one did.
        let (steps, receiver) = mpsc::unbounded_channel();
        let mut play = Play {
            world: self.world.clone(),
            abort,
            steps,
            sent: AssistantMessage::pending(),
            chunks: 0,
        };
        tokio::spawn(async move { play.answer(entry).await });
        let next = |mut receiver: mpsc::UnboundedReceiver<Sent>| async move {
            match receiver.recv().await? {
                Sent::Step(step) => Some((step, receiver)),
                // Without the noise of a panic that nobody expects.
                Sent::Failure(message) => std::panic::resume_unwind(Box::new(message)),
            }
        };
        futures::stream::unfold(receiver, next).boxed()
    }
}

/// What the script sends to the loop.
enum Sent {
    Step(Step),
    /// The stream function itself fails.
    Failure(String),
}

impl ScriptedModel {
    /// Records the call and takes its answer; an aborted call uses none up.
    fn record(&self, request: &Request, abort: &AbortSignal) -> Option<Value> {
        let mut book = self.world.book();
        let n = book.count("model call");
        let mut record = json!({"rec": "model_call", "n": n});
        if let Value::Array(_) = self.world.config("api_keys") {
            let key = request.credential.as_ref().map(|secret| secret.expose().to_owned());
            record["api_key"] = key.into();
        }
        if self.world.config("record_thinking") == true {
            record["thinking_level"] = thinking_name(request.thinking).into();
        }
        let aborted = abort.is_cancelled();
        if aborted {
            record["aborted"] = true.into();
        }
        record["messages"] = book.messages(request.messages.iter().map(|message| &**message));
        book.push(record);
        if aborted {
            return None;
        }
        let taken = book.count("answer");
        let answers = list(&self.world.scenario["model"]);
        let digests: Vec<String> = request.messages.iter().map(|m| digest(m)).collect();
        let index = usize::try_from(taken - 1).unwrap_or(usize::MAX);
        Some(answers.get(index).cloned().unwrap_or_else(|| {
            json!({
                "stop_reason": "error",
                "error_message": format!("the scenario has no answer {taken} to {digests:?}"),
            })
        }))
    }
}

/// One answer on its way out.
struct Play {
    world: Arc<World>,
    abort: AbortSignal,
    steps: mpsc::UnboundedSender<Sent>,
    sent: AssistantMessage,
    chunks: u64,
}

/// The request was aborted.
struct Aborted;

impl Play {
    async fn answer(&mut self, entry: Option<Value>) {
        self.world.pause().await;
        let last = match entry {
            None => self.aborted(),
            Some(entry) => match self.script(&entry).await {
                Ok(()) => assistant(&entry),
                Err(Aborted) => self.aborted(),
            },
        };
        self.world.pause().await;
        let _ = self.steps.send(Sent::Step(Step::Done(last)));
    }

    async fn script(&mut self, entry: &Value) -> Result<(), Aborted> {
        self.obey(&entry["before"]).await?;
        if let Some(message) = thrown(entry) {
            let _ = self.steps.send(Sent::Failure(message));
            return Ok(());
        }
        let stream = entry["stream"].as_str().unwrap_or("plain");
        if stream != "none" {
            self.emit(Step::Start).await;
        }
        if stream == "deltas" {
            for (index, block) in list(&entry["content"]).iter().enumerate() {
                self.block(index, block, &entry["pauses"]).await?;
            }
        }
        self.obey(&entry["after_start"]).await
    }

    async fn block(&mut self, index: usize, block: &Value, pauses: &Value) -> Result<(), Aborted> {
        self.unless_aborted()?;
        match block["type"].as_str() {
            Some("thinking") => self.thinking(index, block, pauses).await,
            Some("tool_call") => self.tool_call(index, block, pauses).await,
            _ => self.text(index, block, pauses).await,
        }
    }

    async fn text(&mut self, index: usize, block: &Value, pauses: &Value) -> Result<(), Aborted> {
        let text = block["text"].as_str().unwrap_or_default().to_owned();
        self.sent.content.push(AssistantBlock::Text(TextBlock::default()));
        self.emit(Step::TextStart { index }).await;
        for delta in chunks(block, &text) {
            self.unless_aborted()?;
            if let Some(AssistantBlock::Text(block)) = self.sent.content.last_mut() {
                block.text.push_str(&delta);
            }
            self.emit(Step::TextDelta { index, delta }).await;
            self.after_chunk(pauses).await?;
        }
        self.emit(Step::TextEnd { index, text }).await;
        Ok(())
    }

    async fn thinking(
        &mut self,
        index: usize,
        block: &Value,
        pauses: &Value,
    ) -> Result<(), Aborted> {
        let thinking = block["thinking"].as_str().unwrap_or_default().to_owned();
        self.sent.content.push(AssistantBlock::Thinking(ThinkingBlock::default()));
        self.emit(Step::ThinkingStart { index }).await;
        for delta in chunks(block, &thinking) {
            self.unless_aborted()?;
            if let Some(AssistantBlock::Thinking(block)) = self.sent.content.last_mut() {
                block.thinking.push_str(&delta);
            }
            self.emit(Step::ThinkingDelta { index, delta }).await;
            self.after_chunk(pauses).await?;
        }
        self.emit(Step::ThinkingEnd { index, thinking }).await;
        Ok(())
    }

    async fn tool_call(
        &mut self,
        index: usize,
        block: &Value,
        pauses: &Value,
    ) -> Result<(), Aborted> {
        let call = tool_call(block);
        let begun = ToolCall { arguments: Arguments::default(), malformed: None, ..call.clone() };
        self.sent.content.push(AssistantBlock::ToolCall(begun));
        self.emit(Step::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() })
            .await;
        let mut preview = Preview::default();
        for delta in chunks(block, &argument_text(block)) {
            self.unless_aborted()?;
            if let Some(arguments) = preview.push(&delta)
                && let Some(AssistantBlock::ToolCall(call)) = self.sent.content.last_mut()
            {
                call.arguments = arguments;
            }
            self.emit(Step::ToolCallDelta { index, delta }).await;
            self.after_chunk(pauses).await?;
        }
        if let Some(sent) = self.sent.content.last_mut() {
            *sent = AssistantBlock::ToolCall(call.clone());
        }
        self.emit(Step::ToolCallEnd { index, call }).await;
        Ok(())
    }

    async fn after_chunk(&mut self, pauses: &Value) -> Result<(), Aborted> {
        self.chunks += 1;
        for pause in list(pauses) {
            if pause["after_chunk"].as_u64() == Some(self.chunks) {
                self.obey(&pause["steps"]).await?;
            }
        }
        Ok(())
    }

    async fn obey(&self, steps: &Value) -> Result<(), Aborted> {
        Party::plain(&self.world, Some(&self.abort)).obey(steps).await;
        self.unless_aborted()
    }

    async fn emit(&self, step: Step) {
        self.world.pause().await;
        let _ = self.steps.send(Sent::Step(step));
    }

    fn unless_aborted(&self) -> Result<(), Aborted> {
        if self.abort.is_cancelled() { Err(Aborted) } else { Ok(()) }
    }

    /// What was sent, as the answer to an aborted request.
    fn aborted(&self) -> AssistantMessage {
        AssistantMessage {
            content: self.sent.content.clone(),
            stop_reason: StopReason::Aborted,
            error_message: Some("scripted model: request aborted".into()),
            ..AssistantMessage::pending()
        }
    }
}

/// The pieces in which a block is sent: one, unless the scenario cuts it.
fn chunks(block: &Value, whole: &str) -> Vec<String> {
    match &block["chunks"] {
        Value::Array(chunks) => {
            chunks.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => vec![whole.to_owned()],
    }
}

pub(super) fn thinking(name: &str) -> Thinking {
    match name {
        "minimal" => Thinking::Minimal,
        "low" => Thinking::Low,
        "medium" => Thinking::Medium,
        "high" | "xhigh" | "max" => Thinking::High,
        _ => Thinking::Off,
    }
}

/// The recorded peer leaves the level out when it is off.
fn thinking_name(thinking: Thinking) -> Option<&'static str> {
    Some(match thinking {
        Thinking::Off => return None,
        Thinking::Minimal => "minimal",
        Thinking::Low => "low",
        Thinking::Medium => "medium",
        Thinking::High => "high",
    })
}
