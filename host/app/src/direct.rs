//! One call of one tool without an agent: prepared, checked against the tool's schema, run.

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Outcome, Tool, ToolFailure, ToolResult};
use cofferdam_agent::toolset::{Rules, Toolset};
use cofferdam_sandbox::{ChoiceError, Plugin};
use futures::FutureExt as _;
use serde_json::Value;
use std::sync::Arc;

/// A tool that cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// The plugin's tools cannot be told.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The plugin has no such tool, or none that can be used.
    #[error("{0}")]
    NoSuchTool(String),
}

/// Calls a tool of a plugin by its own name, as an agent would: its repair of the arguments, its
/// schema, then the call. Partial results go to `on_progress` as they come.
pub async fn call(
    plugin: &Plugin,
    name: &str,
    arguments: Arguments,
    abort: AbortSignal,
    mut on_progress: impl FnMut(&ToolResult),
) -> Result<Outcome, DirectError> {
    let tools = Toolset::new(plugin.tools(None, None)?, Rules::Portable);
    let tool = tools
        .get(name)
        .cloned()
        .ok_or_else(|| DirectError::NoSuchTool(no_such_tool(plugin, &tools, name)))?;
    let ready = match prepare(&*tool, &arguments, &abort).await {
        Ok(arguments) => valid(&tools, name, arguments),
        Err(problem) => Err(problem),
    };
    let arguments = match ready {
        Ok(arguments) => arguments,
        Err(problem) => {
            let ended_by = "invalid-arguments".into();
            return Ok(Err(ToolFailure { ended_by, ..ToolFailure::new(problem) }).into());
        }
    };
    let (progress, updates) = Progress::channel();
    let call = Call { id: "call".into(), name: name.into(), arguments };
    let mut running = tool.call(call, progress, abort);
    loop {
        tokio::select! { biased;
            partial = updates.next() => on_progress(&partial),
            outcome = &mut running => {
                // What was reported with the last breath.
                while let Some(partial) = updates.next().now_or_never() {
                    on_progress(&partial);
                }
                return Ok(outcome);
            }
        }
    }
}

/// The plugin's own repair of the arguments, if it has one.
async fn prepare(
    tool: &dyn Tool,
    arguments: &Arguments,
    abort: &AbortSignal,
) -> Result<Arguments, String> {
    match tool.prepare(arguments, abort) {
        None => Ok(arguments.clone()),
        Some(prepared) => match prepared.await? {
            Value::Object(fields) => Ok(Arc::new(fields)),
            other => Err(format!("the plugin made arguments that are no object: {other}")),
        },
    }
}

fn valid(tools: &Toolset, name: &str, arguments: Arguments) -> Result<Arguments, String> {
    match tools.validate(name, &arguments) {
        Some(checked) => checked.map_err(|problem| problem.to_string()),
        None => Ok(arguments),
    }
}

fn no_such_tool(plugin: &Plugin, tools: &Toolset, name: &str) -> String {
    let refused =
        plugin.refused_tools().iter().map(|tool| format!("`{}`: {}", tool.name, tool.reason));
    let unusable = tools.refused().iter().map(|refused| refused.reason.clone());
    let reasons: Vec<String> = refused.chain(unusable).collect();
    let offered: Vec<&str> = tools.tools().map(|tool| tool.declaration().name.as_str()).collect();
    let roles = plugin.inspection().roles;
    let mut text = if !offered.is_empty() {
        format!("there is no tool `{name}`: the plugin offers {}", offered.join(", "))
    } else if roles.before_tool_call || roles.after_tool_call {
        "the plugin offers hooks and no tools: name it under [[hooks]] in an operator's file and \
         call the tools that it watches with `cofferdam run`"
            .into()
    } else {
        format!("there is no tool `{name}`: the plugin offers none")
    };
    for reason in reasons {
        text.push_str(&format!("; refused: {reason}"));
    }
    text
}
