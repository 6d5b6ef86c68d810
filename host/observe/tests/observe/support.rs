//! A collector that keeps what it is sent, and an agent whose run has everything in it.

use cofferdam_agent::config::BeforeEntry;
use cofferdam_agent::hook::{BeforeHook, Hooked, HookedCall, Refusal, Verdict};
use cofferdam_agent::message::{AssistantMessage, Usage};
use cofferdam_agent::receipt::Receipt;
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer};
use cofferdam_agent::tool::{Declaration, Outcome, Tool, ToolFailure, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset, progress::Progress};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::any::Any;
use std::sync::Arc;

/// What no log, no trace and no figure may hold unless it is asked for.
pub(crate) const SECRET: &str = "swordfish";

#[derive(Debug)]
struct Bill;

impl Receipt for Bill {
    fn to_json(&self) -> Value {
        json!({
            "plugin": "adder", "fuel": 1234, "memory_peak_bytes": 131_072, "wall_us": 70,
            "waiting_us": 5, "http_requests": 0, "refusals": ["`../a` is not granted; to allow it: a line"], "cuts": [],
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A tool with a receipt.
struct Add(Arc<Declaration>);

impl Tool for Add {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.0
    }

    fn call<'a>(
        &'a self,
        call: cofferdam_agent::tool::Call,
        _: Progress,
        _: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        let answer = match call.arguments.get("trap") {
            None => Ok(ToolResult::text(SECRET)),
            Some(_) => Err(ToolFailure { ended_by: "trap".into(), ..ToolFailure::new(SECRET) }),
        };
        Box::pin(async { Outcome { answer, receipt: Some(Arc::new(Bill)) } })
    }
}

struct Guard;

impl BeforeHook for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    fn before<'a>(
        &'a self,
        hooked: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let verdict = match &*hooked.call.name {
            "write" => Verdict::Block(Refusal { reason: SECRET.into(), terminate: None }),
            _ => Verdict::Proceed,
        };
        Box::pin(async { Ok(verdict).into() })
    }
}

/// An answer that asks for four calls at once: one works, one traps, one is blocked, one is of no
/// tool and has a name that would drive a terminal and begin a line of its own.
pub(crate) fn calls() -> AssistantMessage {
    let calls = answer::calls([
        ("c1", "add", json!({"text": SECRET})),
        ("c2", "add", json!({"trap": SECRET})),
        ("c3", "write", json!({"text": SECRET})),
        ("c4", "no\u{1b}[31m\n\u{9b}2J\u{202e}", json!({})),
    ]);
    let usage = Usage { input: 10, output: 20, cache_read: 30, cache_write: 40 };
    AssistantMessage { usage, provider: "gemini".into(), model: "test-model".into(), ..calls }
}

/// An idle agent that makes those calls and then answers.
pub(crate) fn agent() -> Agent {
    let last = answer::text(SECRET);
    let last = AssistantMessage { provider: "gemini".into(), model: "test-model".into(), ..last };
    agent_of(ScriptedModel::new([calls(), last]))
}

/// An idle agent with the same tools.
pub(crate) fn agent_of(model: ScriptedModel) -> Agent {
    let declaration = Declaration {
        name: "add".into(),
        label: None,
        description: "Adds".into(),
        parameters: json!({"type": "object"}),
    };
    let add: Arc<dyn Tool> = Arc::new(Add(Arc::new(declaration)));
    let toolset = Toolset::new([add, FnTool::text("write", "written").shared()], Rules::Portable);
    let mut config = AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset));
    config.before = vec![BeforeEntry::new(Arc::new(Guard))];
    Agent::new(config)
}
