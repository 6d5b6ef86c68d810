//! What the puppet and the loop know of each other only here: what a puppet asks its world for, and
//! a puppet's tool without what only the wall adds to its outcomes.

use super::hooks::{self, note_ran};
use super::read::tool_result;
use super::steps::{Party, note_extras};
use super::world::World;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool};
use cofferdam_sandbox::Caller;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers one question of a puppet; `tests/guests/puppet/wit/stage.wit` says what they mean.
pub(super) async fn answer(
    world: &Arc<World>,
    what: &str,
    caller: &Caller,
    text: &str,
) -> Result<String, String> {
    let said = if text.is_empty() { Ok(Value::Null) } else { serde_json::from_str(text) };
    let said: Value = said.map_err(|error| error.to_string())?;
    let id = caller.call_id.clone().unwrap_or_default();
    let answer = match what {
        "enter" => return Ok(enter(world, id, &said).to_string()),
        "tools" => world.scenario["tools"].clone(),
        "leave" => {
            note_extras(world, &id, tool_result(&said).1);
            Value::Null
        }
        _ => {
            world.pause().await;
            Party::plain(world, None).step(&said).await;
            Value::Null
        }
    };
    world.pause().await;
    Ok(answer.to_string())
}

fn enter(world: &World, id: Arc<str>, said: &Value) -> Value {
    let name = said["tool"].as_str().unwrap_or_default().into();
    let arguments = Arguments::new(said["args"].as_object().cloned().unwrap_or_default());
    let call = Call { id, name, arguments };
    let (nth, rules) = match said["party"].as_str() {
        Some("tool") => {
            let mut book = world.book();
            book.extras.remove(&*call.id);
            book.enter_tool(&call.id, &call.name, &call.arguments, &said["variant"]);
            drop(book);
            world.open_gate(entered(&call.id));
            return Value::Null;
        }
        Some("before") => hooks::enter(world, "before", &call, |_, _| {}),
        _ => {
            let (mut result, _) = tool_result(&said["result"]);
            result.is_error = world.book().flag_of(&call.id);
            let is_error = said["is_error"] == true;
            let noted = note_ran(&call, &result, is_error, said["ended_by"].as_str());
            hooks::enter(world, "after", &call, noted)
        }
    };
    json!({"nth": nth, "rules": rules})
}

/// The gate that opens when the puppet of a call is there.
fn entered(id: &str) -> String {
    format!("puppet of {id}")
}

/// A tool of the puppet, its outcomes without what only the wall adds.
pub(super) struct PuppetTool {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) world: Arc<World>,
}

impl Tool for PuppetTool {
    fn declaration(&self) -> &Arc<Declaration> {
        self.tool.declaration()
    }

    fn execution(&self) -> &Execution {
        self.tool.execution()
    }

    fn plugin(&self) -> &str {
        self.tool.plugin()
    }

    fn prepare<'a>(
        &'a self,
        arguments: &'a Arguments,
        abort: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        self.tool.prepare(arguments, abort)
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let id = call.id.clone();
            let heeded = AbortSignal::new();
            let calling = self.tool.call(call, progress, heeded.clone());
            // A tool of a scenario has begun when it is called. An instance takes a moment longer,
            // and one that is aborted before it can ask for its grace is cut.
            let aborting = async {
                abort.cancelled().await;
                self.world.wait_for_gate(&entered(&id)).await;
                heeded.cancel();
                std::future::pending::<Outcome>().await
            };
            let mut outcome = tokio::select! { biased;
                outcome = calling => outcome,
                never = aborting => never,
            };
            match &mut outcome.answer {
                // The contract cannot tell a missing flag from a false one.
                Ok(result) => result.is_error = self.world.book().flag_of(&id),
                // The recordings know a failure by its text.
                Err(failure) => failure.details = None,
            }
            outcome
        })
    }
}
