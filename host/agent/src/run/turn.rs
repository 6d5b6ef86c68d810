//! One turn: what is pending, one answer, its calls, and what comes between this turn and the next.

use super::batch::Batch;
use super::{EndReason, Run, Turn};
use crate::config::TurnView;
use crate::event::Event;
use crate::journal::JournalError;
use crate::message::{Message, StopReason};
use std::sync::Arc;

impl Run<'_> {
    pub(super) async fn turn(&mut self, pending: Vec<Message>) -> Result<Turn, JournalError> {
        for message in pending {
            self.add(message).await?;
        }
        self.turns += 1;
        let answer = self.answer().await?;
        if let Some(reason) = failure(&answer) {
            // Its calls are neither run nor answered, and no queue is polled.
            self.end_turn(&answer, &[]).await;
            return Ok(Turn::Last(reason));
        }
        self.count_truncated(&answer);
        let batch = self.batch(&answer).await?;
        self.end_turn(&answer, &batch.messages).await;
        if self.between_turns(&answer, &batch).await {
            return Ok(Turn::Last(EndReason::Stopped));
        }
        Ok(Turn::Done {
            goes_on: !batch.messages.is_empty() && !batch.terminate,
            reason: if batch.terminate { EndReason::Terminated } else { EndReason::Finished },
        })
    }

    async fn end_turn(&self, answer: &Arc<Message>, tool_results: &[Arc<Message>]) {
        if let Some(error) = answer.as_assistant().and_then(|answer| answer.error_message.clone()) {
            self.state().last_error = Some(error);
        }
        self.emit(&Event::TurnEnd { message: answer, tool_results }).await;
    }

    /// Refreshes the settings, then asks whether to stop (seed: "emits the turn-end event, refreshes
    /// next-turn state, checks stop conditions, and then polls steering").
    async fn between_turns(&mut self, answer: &Arc<Message>, batch: &Batch) -> bool {
        let settings = self.settings.clone();
        let view = TurnView {
            answer,
            tool_results: &batch.messages,
            added: &self.added,
            settings: &settings,
        };
        let refreshed = match &self.agent.fixed.next_turn {
            Some(hook) => self.abort.run_until_cancelled(hook.refresh(view)).await.flatten(),
            None => None,
        };
        let stops = match &self.agent.fixed.stop {
            Some(check) => check.should_stop(view).await,
            None => false,
        };
        let mut state = self.agent.state();
        if let Some(settings) = refreshed {
            state.settings = Arc::new(settings);
        }
        self.settings = state.settings.clone();
        stops
    }

    /// What changed while the agent was idle is in force from the first turn on.
    pub(super) async fn refresh_at_the_beginning(&mut self) {
        let Some(hook) = &self.agent.fixed.next_turn else { return };
        let settings = self.settings.clone();
        let refreshed = self.abort.run_until_cancelled(hook.begin(&settings)).await.flatten();
        if let Some(settings) = refreshed {
            let mut state = self.agent.state();
            state.settings = Arc::new(settings);
            self.settings = state.settings.clone();
        }
    }

    fn count_truncated(&mut self, answer: &Message) {
        let cut = answer.as_assistant().is_some_and(|a| a.stop_reason == StopReason::Length);
        self.truncated_in_a_row = if cut { self.truncated_in_a_row + 1 } else { 0 };
    }
}

fn failure(answer: &Message) -> Option<EndReason> {
    match answer.as_assistant()?.stop_reason {
        StopReason::Error => Some(EndReason::ModelFailed),
        StopReason::Aborted => Some(EndReason::Aborted),
        StopReason::Pending | StopReason::Stop | StopReason::Length | StopReason::ToolUse => None,
    }
}
