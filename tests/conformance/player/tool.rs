//! A native tool that obeys the steps of a scenario.

use super::prepare;
use super::read::{list, text_of, tool_result};
use super::steps::{Ending, Party, note_extras};
use super::template::Template;
use super::world::World;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure, ToolResult};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
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
        match party.obey(&steps(&self.spec, &call.id, &call.arguments)).await {
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

/// By call id, else by the first condition that holds, else the tool's own.
fn steps(spec: &Value, id: &str, args: &Map<String, Value>) -> Value {
    if let Some(steps) = spec["calls"].get(id) {
        return steps.clone();
    }
    let cases = list(&spec["cases"]);
    if let Some(case) = cases.iter().find(|case| holds(&case["if"], id, None, args)) {
        return case["steps"].clone();
    }
    let default = || json!([{"return": {"content": [{"type": "text", "text": "ok"}]}}]);
    spec.get("steps").cloned().unwrap_or_else(default)
}

/// Whether a condition of a case or rule holds.
pub(super) fn holds(
    condition: &Value,
    id: &str,
    nth: Option<u64>,
    args: &Map<String, Value>,
) -> bool {
    let Some(condition) = condition.as_object() else { return true };
    condition.iter().all(|(name, wanted)| match name.as_str() {
        "id" => wanted == id || list(wanted).iter().any(|one| one == id),
        "nth" => wanted.as_u64() == nth,
        "args" => contains(&Value::Object(args.clone()), wanted),
        other => panic!("unknown condition {other:?}"),
    })
}

/// Whether `part` is in `whole`: objects by their fields, everything else as a whole.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part))),
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => whole == part,
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
            prepare::prepared(rules, arguments)
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
