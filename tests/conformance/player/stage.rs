//! The stage of guests: a sandbox with the puppet plugin (`tests/guests/puppet`), which is compiled
//! once, and the worlds that are played on it. Each world has a puppet of its own name, and by this
//! name the puppet's import finds its world.

use super::cast::Cast;
use super::puppet::{self, PuppetTool};
use super::rules::list;
use super::world::{World, lock};
use cofferdam_agent::Toolset;
use cofferdam_agent::config::{AfterEntry, BeforeEntry};
use cofferdam_agent::tool::Tool;
use cofferdam_agent::toolset::Rules;
use cofferdam_sandbox::{
    Code, Grants, HostImport, Limits, Plugin, PluginSource, Sandbox, SandboxConfig,
};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

const INTERFACE: &str = "cofferdam-tests:stage/stage@0.1.0";

/// Worlds that are played at a time; more wait for their turn.
const WORLDS: u32 = 8;

/// Calls that a scenario may have open at a time. They wait for each other, so a world is not let onto
/// the stage before there is a slot for each.
const CALLS: u32 = 128;

/// Where guests play. Cheap to clone.
#[derive(Clone)]
pub struct Stage {
    puppet: Plugin,
    worlds: Arc<Worlds>,
    turns: Arc<Semaphore>,
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
    _turn: OwnedSemaphorePermit,
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
        let config = SandboxConfig { slots: WORLDS * CALLS, imports, ..SandboxConfig::default() };
        let sandbox = Sandbox::new(config).map_err(|error| error.to_string())?;
        let source = PluginSource {
            name: "puppet".into(),
            code: Code::Path(puppet.into()),
            sha256: None,
            accept_text: false,
        };
        // The scenario says how long a call takes and what it answers, also after an abort.
        let limits = Limits {
            wall_ms: 60_000,
            grace_ms: 60_000,
            result_kib: 4_096,
            concurrent_calls: CALLS.into(),
            ..Limits::default()
        };
        let puppet = Plugin::load(&sandbox, source, limits, Grants::default()).await;
        let turns = Arc::new(Semaphore::new(WORLDS as usize));
        Ok(Self { puppet: puppet.map_err(|error| error.to_string())?, worlds, turns })
    }

    /// The puppet's tools and hooks for one scenario, or why no guest can play it.
    pub(super) async fn cast(&self, world: &Arc<World>) -> Result<(Cast, OnStage), String> {
        if let Some(reason) = unplayable(&world.scenario) {
            return Err(reason);
        }
        let turn = self.turns.clone().acquire_owned().await;
        let turn = turn.map_err(|error| error.to_string())?;
        let name = format!("puppet {}", self.worlds.played.fetch_add(1, Ordering::Relaxed));
        lock(&self.worlds.playing).insert(name.clone(), world.clone());
        let on_stage = OnStage { worlds: self.worlds.clone(), name, _turn: turn };
        let puppet = self.puppet.under_name(&*on_stage.name).await;
        let puppet = puppet.map_err(|error| error.to_string())?;
        if let Some(refused) = refused(&puppet) {
            return Err(refused);
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

/// Why the wall does not offer all tools of a scenario, if it does not. The second of two tools of one
/// name is not missed: no loop would ever call it.
fn refused(puppet: &Plugin) -> Option<String> {
    let offered = |name: &str| puppet.tool_specs().iter().any(|tool| tool.declaration.name == name);
    let refused = puppet.refused_tools().iter().find(|tool| !offered(&tool.name))?;
    Some(format!("the wall refuses the tool {}: {}", refused.name, refused.reason))
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
                    Some(world) => puppet::answer(&world, what, &caller, &text).await,
                    // When the stage opens, nothing is played yet.
                    None if what == "tools" => Ok("[]".into()),
                    None => Err(format!("nothing is played under the name {}", caller.plugin)),
                }
            }
        })
    })
}
