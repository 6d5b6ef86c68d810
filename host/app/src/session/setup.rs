//! What runs are made of, from the configuration of an agent.

use super::format::{AfterEntry, BeforeEntry, Setup, ToolEntry};
use cofferdam_agent::AgentConfig;
use cofferdam_agent::config::{AfterFailure, BeforeFailure, Rewrites, ToolExecution};
use cofferdam_agent::tool::Tool;

impl Setup {
    /// The part that the loop knows: everything but the plugins and the operator's file.
    pub fn of(config: &AgentConfig) -> Self {
        let toolset = &config.settings.toolset;
        let refused = toolset.refused().iter().map(|refused| &refused.tool);
        Self {
            config: None,
            system_prompt: (*config.settings.system_prompt).to_owned(),
            sequential: config.tool_execution == ToolExecution::Sequential,
            coerce_arguments: config.coercion,
            max_turns: config.guards.turns_max,
            max_truncated_answers: config.guards.truncated_in_a_row_max,
            plugins: Vec::new(),
            tools: toolset.tools().chain(refused).map(|tool| ToolEntry::of(&**tool)).collect(),
            before: config.before.iter().map(before).collect(),
            after: config.after.iter().map(after).collect(),
        }
    }
}

impl ToolEntry {
    fn of(tool: &dyn Tool) -> Self {
        let declaration = tool.declaration();
        Self {
            name: declaration.name.clone(),
            label: declaration.label.clone(),
            description: declaration.description.clone(),
            parameters: declaration.parameters.clone(),
            execution: tool.execution().into(),
            plugin: tool.plugin().to_owned(),
        }
    }
}

fn before(entry: &cofferdam_agent::config::BeforeEntry) -> BeforeEntry {
    let failure = match entry.failure {
        BeforeFailure::Block => "block",
        BeforeFailure::Ask => "ask",
        BeforeFailure::Proceed => "proceed",
    };
    let rewrites = match entry.rewrites {
        Rewrites::Trusted => "trusted",
        Rewrites::Revalidated => "revalidated",
        Rewrites::Forbidden => "forbidden",
    };
    BeforeEntry {
        hook: entry.hook.name().to_owned(),
        failure: failure.into(),
        rewrites: rewrites.into(),
    }
}

fn after(entry: &cofferdam_agent::config::AfterEntry) -> AfterEntry {
    let failure = match entry.failure {
        AfterFailure::Error => "error",
        AfterFailure::Keep => "keep",
    };
    AfterEntry { hook: entry.hook.name().to_owned(), failure: failure.into() }
}
