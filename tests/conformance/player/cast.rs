//! Who plays the tools and hooks of a scenario.

use super::hooks::ScriptedHook;
use super::rules::list;
use super::tool::ScriptedTool;
use super::world::World;
use cofferdam_agent::Toolset;
use cofferdam_agent::config::{AfterEntry, BeforeEntry};
use cofferdam_agent::tool::Tool;
use cofferdam_agent::toolset::Rules;
use std::sync::Arc;

/// The tools and hooks of one scenario.
pub(super) struct Cast {
    pub(super) toolset: Toolset,
    pub(super) before: Vec<BeforeEntry>,
    pub(super) after: Vec<AfterEntry>,
}

impl Cast {
    /// Tools and hooks in Rust, in this process.
    pub(super) fn native(world: &Arc<World>) -> Self {
        let specs = list(&world.scenario["tools"]).iter();
        let tools = specs.map(|spec| Arc::new(ScriptedTool::new(world, spec)) as Arc<dyn Tool>);
        let hook = |kind| Arc::new(ScriptedHook { world: world.clone(), kind });
        let has = |kind: &str| world.scenario.get(kind).is_some();
        Self {
            toolset: Toolset::new(tools, Rules::Lenient),
            before: has("before").then(|| BeforeEntry::new(hook("before"))).into_iter().collect(),
            after: has("after").then(|| AfterEntry::new(hook("after"))).into_iter().collect(),
        }
    }
}
