//! A native tool that obeys the steps of a scenario.

use super::read::{text_of, tool_result};
use super::rules::{self, Ending, Template};
use super::steps::{Party, note_extras};
use super::world::World;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure, ToolResult};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct ScriptedTool {
    world: Arc<World>,
    spec: Value,
    declaration: Arc<Declaration>,
    execution: Execution,
}

impl ScriptedTool {
    pub(super) fn new(world: &Arc<World>, spec: &Value) -> Self {
        let declaration = Declaration {
            name: text_of(&spec["name"]),
            label: None,
            description: text_of(&spec["description"]),
            parameters: spec
                .get("parameters")
                .cloned()
                .unwrap_or_else(|| json!({"type": "object"})),
        };
        let execution = match spec["execution_mode"].as_str() {
            Some("sequential") => Execution::Sequential,
            _ => Execution::Parallel,
        };
        let declaration = Arc::new(declaration);
        Self { world: world.clone(), spec: spec.clone(), declaration, execution }
    }

    async fn run(&self, call: &Call, progress: &Progress, abort: &AbortSignal) -> Outcome {
        let variant = &self.spec["variant"];
        self.world.book().enter_tool(&call.id, &call.name, &call.arguments, variant);
        let party = Party {
            world: &self.world,
            abort: Some(abort),
            template: Template { call: Some((&call.id, &call.arguments)) },
            progress: Some((&call.id, progress)),
        };
        match party.obey(&rules::steps(&self.spec, &call.id, &call.arguments)).await {
            Ending::Threw(message) => Err(ToolFailure::new(message)).into(),
            Ending::Returned(value) if value.is_object() => {
                let (result, extras) = tool_result(&value);
                note_extras(&self.world, &call.id, extras);
                Ok::<ToolResult, ToolFailure>(result).into()
            }
            // The type has no room for nothing; a native tool that breaks its contract panics.
            Ending::Returned(_) | Ending::Nothing => {
                std::panic::resume_unwind(Box::new("the tool returned nothing"))
            }
        }
    }
}

impl Tool for ScriptedTool {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    fn execution(&self) -> &Execution {
        &self.execution
    }

    fn prepare<'a>(
        &'a self,
        arguments: &'a Arguments,
        _abort: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        let rules = self.spec.get("prepare")?;
        Some(Box::pin(async move {
            self.world.pause().await;
            rules::prepared(rules, arguments)
        }))
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move { self.run(&call, &progress, &abort).await })
    }
}
