//! The stage of guests: a sandbox with the puppet plugin (`tests/guests/puppet`), which is compiled
//! once, and the worlds that are played on it. Each world has a puppet of its own name, and by this
//! name the puppet's import finds its world.

use super::cast::Cast;
use super::hooks::{self, note_ran};
use super::read::tool_result;
use super::rules::list;
use super::steps::{Party, note_extras};
use super::world::{World, lock};
use cofferdam_agent::config::{AfterEntry, BeforeEntry};
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Toolset};
use cofferdam_sandbox::{
    Caller, Code, Grants, HostImport, Limits, Plugin, PluginSource, Sandbox, SandboxConfig,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const INTERFACE: &str = "cofferdam-tests:stage/stage@0.1.0";

/// Calls that may be open at a time: those of a scenario wait for each other.
const SLOTS: u32 = 1_000;

/// Where guests play. Cheap to clone.
#[derive(Clone)]
pub struct Stage {
    puppet: Plugin,
    worlds: Arc<Worlds>,
}

/// The worlds that are being played, by the name of their puppet.
#[derive(Default)]
struct Worlds {
    playing: Mutex<HashMap<String, Arc<World>>>,
    played: AtomicUsize,
}

/// Keeps a world on the stage while it is played.
pub(super) struct OnStage {
    worlds: Arc<Worlds>,
    name: String,
}

impl Drop for OnStage {
    fn drop(&mut self) {
        lock(&self.worlds.playing).remove(&self.name);
    }
}

impl Stage {
    /// Makes a sandbox and loads the puppet into it.
    pub async fn open(puppet: &Path) -> Result<Self, String> {
        if !puppet.exists() {
            return Err(format!("{} is missing: `cargo xtask guests` builds it", puppet.display()));
        }
        let worlds = Arc::<Worlds>::default();
        let imports = vec![import(&worlds)];
        let config = SandboxConfig { slots: SLOTS, imports, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).map_err(|error| error.to_string())?;
        let source = PluginSource {
            name: "puppet".into(),
            code: Code::Path(puppet.into()),
            sha256: None,
            accept_text: false,
        };
        // An abort leaves a puppet all the time that its scenario takes.
        let limits = Limits {
            grace_ms: 60_000,
            wall_ms: 60_000,
            concurrent_calls: 1_000,
            ..Limits::default()
        };
        let puppet = Plugin::load(&sandbox, source, limits, Grants::default()).await;
        Ok(Self { puppet: puppet.map_err(|error| error.to_string())?, worlds })
    }

    /// The puppet's tools and hooks for one scenario, or why no guest can play it.
    pub(super) async fn cast(&self, world: &Arc<World>) -> Result<(Cast, OnStage), String> {
        if let Some(reason) = unplayable(&world.scenario) {
            return Err(reason);
        }
        let name = format!("puppet {}", self.worlds.played.fetch_add(1, Ordering::Relaxed));
        lock(&self.worlds.playing).insert(name.clone(), world.clone());
        let on_stage = OnStage { worlds: self.worlds.clone(), name };
        let puppet = self.puppet.under_name(&*on_stage.name).await;
        let puppet = puppet.map_err(|error| error.to_string())?;
        if let [refused, ..] = puppet.refused_tools() {
            return Err(format!("the wall refuses the tool {}: {}", refused.name, refused.reason));
        }
        let tools = puppet.tools(None, None).map_err(|error| error.to_string())?;
        let tools = tools
            .into_iter()
            .map(|tool| Arc::new(PuppetTool { tool, world: world.clone() }) as Arc<dyn Tool>);
        let has = |kind: &str| world.scenario.get(kind).is_some();
        let before = puppet.before_hook().filter(|_| has("before"));
        let after = puppet.after_hook().filter(|_| has("after"));
        let cast = Cast {
            toolset: Toolset::new(tools, Rules::Lenient),
            before: before.map(BeforeEntry::new).into_iter().collect(),
            after: after.map(AfterEntry::new).into_iter().collect(),
        };
        Ok((cast, on_stage))
    }
}

/// Why no guest can play a scenario, if none can.
fn unplayable(scenario: &Value) -> Option<String> {
    let late = list(&scenario["tools"]).iter().find(|tool| mentions(tool, "late_progress"))?;
    Some(format!(
        "the tool {} reports progress beside its steps, also after it has answered (late_progress); \
         an instance does one thing at a time, and is gone once it has answered",
        late["name"]
    ))
}

fn mentions(value: &Value, field: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key(field) || fields.values().any(|value| mentions(value, field))
        }
        Value::Array(items) => items.iter().any(|value| mentions(value, field)),
        _ => false,
    }
}

/// The import of the puppet: what it asks goes to the world of its name.
fn import(worlds: &Arc<Worlds>) -> HostImport {
    let import = HostImport::new(INTERFACE);
    ["tools", "enter", "step", "leave"].into_iter().fold(import, |import, what| {
        let worlds = worlds.clone();
        import.function(what, move |caller, text| {
            let world = lock(&worlds.playing).get(&*caller.plugin).cloned();
            async move {
                match world {
                    Some(world) => answer(&world, what, &caller, &text).await,
                    // When the stage opens, nothing is played yet.
                    None if what == "tools" => Ok("[]".into()),
                    None => Err(format!("nothing is played under the name {}", caller.plugin)),
                }
            }
        })
    })
}

async fn answer(
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

/// A tool of the puppet, its outcomes without what only the wall adds.
struct PuppetTool {
    tool: Arc<dyn Tool>,
    world: Arc<World>,
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
            let mut outcome = self.tool.call(call, progress, abort).await;
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
