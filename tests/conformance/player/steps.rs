//! Lists of steps, which every party obeys.

use super::read::tool_result;
use super::rules::{Ending, Template, ending, list, texts};
use super::world::{Extras, World};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::queue::{QueueKind, QueueMode};
use cofferdam_agent::{AbortSignal, AgentError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Who carries out the steps.
pub(super) struct Party<'p> {
    pub(super) world: &'p Arc<World>,
    /// The signal that it was given, if it was given one.
    pub(super) abort: Option<&'p AbortSignal>,
    pub(super) template: Template<'p>,
    /// A tool can report progress.
    pub(super) progress: Option<(&'p str, &'p Progress)>,
}

impl<'p> Party<'p> {
    /// One that is neither a tool nor a hook.
    pub(super) fn plain(world: &'p Arc<World>, abort: Option<&'p AbortSignal>) -> Self {
        Self { world, abort, template: Template::default(), progress: None }
    }

    pub(super) async fn obey(&self, steps: &Value) -> Ending {
        for step in list(steps) {
            self.world.pause().await;
            let step = self.template.fill(step);
            if let Some(ending) = ending(&step) {
                return ending;
            }
            self.step(&step).await;
        }
        self.world.pause().await;
        Ending::Nothing
    }

    /// Carries out one step that does not end the list.
    pub(super) async fn step(&self, step: &Value) {
        let Some((what, value)) = step.as_object().and_then(|fields| fields.iter().next()) else {
            return;
        };
        let agent = || self.world.agent();
        match what.as_str() {
            "sleep_ms" => {
                tokio::time::sleep(Duration::from_millis(value.as_u64().unwrap_or(0))).await;
            }
            "wait_for" => {
                for gate in texts(value) {
                    self.world.wait_for_gate(&gate).await;
                }
            }
            "signal" => texts(value).into_iter().for_each(|gate| self.world.open_gate(gate)),
            "wait_for_abort" => self.world.wait_for_abort(self.abort).await,
            "abort" => agent().abort(),
            "steer" => texts(value).into_iter().for_each(|text| agent().steer(text)),
            "follow_up" => texts(value).into_iter().for_each(|text| agent().follow_up(text)),
            "clear_queues" => self.clear(value.as_str().unwrap_or("all")),
            "set_steering_mode" => agent().set_queue_mode(QueueKind::Steering, queue_mode(value)),
            "set_follow_up_mode" => agent().set_queue_mode(QueueKind::FollowUp, queue_mode(value)),
            "mark" => self.world.mark(value.as_str().unwrap_or_default()),
            "try" => self.attempt(value.as_str().unwrap_or_default()).await,
            "progress" => self.report(value).await,
            "late_progress" => self.report_later(value),
            other => panic!("unknown step {other:?}"),
        }
    }

    fn clear(&self, which: &str) {
        let agent = self.world.agent();
        if matches!(which, "steering" | "all") {
            agent.clear_queue(QueueKind::Steering);
        }
        if matches!(which, "follow_up" | "all") {
            agent.clear_queue(QueueKind::FollowUp);
        }
    }

    async fn attempt(&self, what: &str) {
        let agent = self.world.agent();
        let tried = match what {
            "prompt" => agent.prompt("tried").await.map(drop),
            "continue" => agent.continue_run().await.map(drop),
            "reset" => agent.reset(),
            other => panic!("unknown attempt {other:?}"),
        };
        let mut record = json!({"rec": "mark", "name": format!("try {what}")});
        outcome(&mut record, &tried);
        self.world.record(record);
    }

    async fn report(&self, value: &Value) {
        let Some((_, progress)) = self.progress else { return };
        progress.report(tool_result(value).0);
        // In the reference a report is delivered within the call that reports.
        progress.announced().await;
    }

    /// Reports once a gate opens, whatever the tool is doing by then.
    fn report_later(&self, value: &Value) {
        let Some((id, progress)) = self.progress else { return };
        let (world, progress, id) = (self.world.clone(), progress.clone(), id.to_owned());
        let value = value.clone();
        tokio::spawn(async move {
            for gate in texts(&value["after"]) {
                world.wait_for_gate(&gate).await;
            }
            world.pause().await;
            progress.report(tool_result(&value).0);
            progress.announced().await;
            world.mark(&format!("late progress of {id}"));
            texts(&value["then_signal"]).into_iter().for_each(|gate| world.open_gate(gate));
        });
    }
}

pub(super) fn queue_mode(value: &Value) -> QueueMode {
    match value.as_str() {
        Some("all") => QueueMode::All,
        _ => QueueMode::OneAtATime,
    }
}

/// Adds `ok` or `error` to a record.
pub(super) fn outcome(record: &mut Value, tried: &Result<(), AgentError>) {
    match tried {
        Ok(()) => record["ok"] = true.into(),
        Err(AgentError::Busy) => record["error"] = "busy".into(),
        Err(AgentError::NothingToContinue) => record["error"] = "nothing_to_continue".into(),
        Err(AgentError::AssistantTail) => record["error"] = "assistant_tail".into(),
        Err(other @ AgentError::Journal(_)) => record["error"] = other.to_string().into(),
    }
}

/// Notes what the contract has no field for.
pub(super) fn note_extras(world: &World, call: &str, extras: Extras) {
    world.book().extras.insert(call.to_owned(), extras);
}
