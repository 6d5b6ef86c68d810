//! What a plugin offers when it is asked in the sandbox, without any grant.

use cofferdam_agent::tool::Execution;
use cofferdam_sandbox::text::visible;
use cofferdam_sandbox::{
    Code, Grants, Limits, Plugin, PluginSource, RefusedTool, Sandbox, SandboxConfig, ToolSpec,
};
use serde_json::{Map, Value, json};

/// What a plugin says of its tools when it is asked.
#[derive(Debug)]
pub enum Offer {
    /// Nobody asked.
    Unknown,
    /// It answered: its tools, and those that break a rule.
    Tools(Vec<ToolSpec>, Vec<RefusedTool>),
    /// It did not, and why: no host would load it.
    None(String),
}

/// Asks a component for its tools, under the default limits; compiling gets its time.
pub async fn ask(config: SandboxConfig, bytes: Vec<u8>) -> Offer {
    let name = "plugin".to_owned();
    let source = PluginSource { name, code: Code::Bytes(bytes), sha256: None, accept_text: false };
    let sandbox = match Sandbox::new(SandboxConfig { slots: 4, ..config }) {
        Ok(sandbox) => sandbox,
        Err(problem) => return Offer::None(problem.to_string()),
    };
    let limits = Limits { compile_seconds: crate::cases::COMPILE_SECONDS, ..Limits::default() };
    match Plugin::load(&sandbox, source, limits, Grants::default()).await {
        Ok(plugin) => Offer::Tools(plugin.tool_specs().to_vec(), plugin.refused_tools().to_vec()),
        Err(problem) => Offer::None(problem.to_string()),
    }
}

impl Offer {
    /// The names of the tools.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Tools(tools, _) => {
                tools.iter().map(|tool| tool.declaration.name.clone()).collect()
            }
            Self::Unknown | Self::None(_) => Vec::new(),
        }
    }

    /// As fields of a JSON object: `tools` and `refused_tools`, or `tools_problem`.
    pub fn to_json(&self) -> Map<String, Value> {
        let fields = match self {
            Self::Unknown => json!({}),
            Self::None(problem) => json!({ "tools": null, "tools_problem": problem }),
            Self::Tools(tools, refused) => json!({
                "tools": tools.iter().map(tool_json).collect::<Vec<_>>(),
                "refused_tools": refused,
            }),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

fn tool_json(tool: &ToolSpec) -> Value {
    json!({
        "name": tool.declaration.name,
        "label": tool.declaration.label,
        "description": tool.declaration.description,
        "parameters": tool.declaration.parameters,
        "execution": execution(&tool.execution),
        "meta": tool.meta,
    })
}

/// How a tool runs, in words.
pub fn execution(execution: &Execution) -> String {
    match execution {
        Execution::Parallel => "parallel".into(),
        Execution::Sequential => "sequential".into(),
        Execution::Exclusive(lanes) => {
            let lanes = lanes.iter().map(|lane| visible(lane, 80));
            format!("exclusive in {}", lanes.collect::<Vec<_>>().join(", "))
        }
    }
}
