//! Running cases: each against a fresh set of grants, on one compiled plugin.

use super::check::{Came, check};
use super::read::{Case, Given};
use super::script::Stage;
use crate::direct;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{HookedCall, Ran, Verdict};
use cofferdam_agent::message::{
    Arguments, AssistantBlock, AssistantMessage, Content, StopReason, ToolCall,
};
use cofferdam_agent::receipt::SharedReceipt;
use cofferdam_agent::tool::{Call, Outcome, ToolResult};
use cofferdam_sandbox::{
    Limits, LoadError, Plugin, PluginSource, Sandbox, SandboxConfig, SandboxError,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Where the cases of one plugin run.
pub struct Bench {
    sandbox: Sandbox,
    source: PluginSource,
    stage: Stage,
    /// With fuel counted and without, loaded when first needed.
    loaded: [Option<Plugin>; 2],
}

/// The least that compiling may take.
pub const COMPILE_SECONDS: u64 = 900;

/// What became of a case.
#[derive(Debug, Clone)]
pub struct Report {
    /// The case's name.
    pub name: String,
    /// What is not as expected; empty if the case passes.
    pub problems: Vec<String>,
    /// The bill of the call; none if it did not run.
    pub receipt: Option<Value>,
    /// Whether a golden file was written.
    pub blessed: bool,
}

impl Bench {
    /// A place for the cases of this plugin. HTTP requests of `config` are answered from the cases.
    pub fn new(config: SandboxConfig, source: PluginSource) -> Result<Self, SandboxError> {
        let stage = Stage::default();
        let config = SandboxConfig { http: Some(stage.script()), ..config };
        Ok(Self { sandbox: Sandbox::new(config)?, source, stage, loaded: [None, None] })
    }

    /// Runs one case. With `bless`, a golden file that differs is written and not a problem.
    pub async fn run(&mut self, case: &Case, bless: bool) -> Report {
        self.stage.set(&case.http);
        let came = match self.plugin(case).await {
            Ok(plugin) => came(&plugin, case).await,
            Err(problem) => Err(format!("the plugin cannot be loaded: {problem}")),
        };
        let (requests, unanswered) = self.stage.asked();
        let mut problems: Vec<String> = unanswered
            .iter()
            .map(|request| format!("no [[case.http]] answers `{request}`"))
            .collect();
        let mut blessed = false;
        let mut receipt = None;
        match came {
            Ok(came) => {
                let (found, wrote) = check(&case.expect, &came, &requests, bless);
                problems.extend(found);
                blessed = wrote;
                receipt = came.receipt;
            }
            Err(problem) => problems.push(problem),
        }
        Report { name: case.name.clone(), problems, receipt, blessed }
    }

    async fn plugin(&mut self, case: &Case) -> Result<Plugin, LoadError> {
        // Compiling is not what is tested, and an author's host may be a slow one.
        let compile_seconds = case.limits.compile_seconds.max(COMPILE_SECONDS);
        let limits = Limits { compile_seconds, ..case.limits.clone() };
        let place = &mut self.loaded[usize::from(case.limits.fuel.is_some())];
        if let Some(plugin) = place {
            return plugin.on_terms(limits, case.grants.clone()).await;
        }
        let grants = case.grants.clone();
        let plugin = Plugin::load(&self.sandbox, self.source.clone(), limits, grants).await?;
        Ok(place.insert(plugin).clone())
    }
}

/// What the call of a case came to; `Err` if it could not be made.
async fn came(plugin: &Plugin, case: &Case) -> Result<Came, String> {
    let arguments: Arguments = Arc::new(case.arguments.clone());
    match (&case.tool, &case.before, &case.after) {
        (Some(tool), ..) => {
            let mut progress = Vec::new();
            let outcome = direct::call(plugin, tool, arguments, AbortSignal::new(), |partial| {
                progress.push(text(&partial.content));
            });
            let outcome = outcome.await.map_err(|problem| problem.to_string())?;
            Ok(Came { progress, ..Came::from(outcome) })
        }
        (_, Some(tool), _) => {
            let hook = plugin.before_hook().ok_or("the plugin has no hook before calls")?;
            let (call, assistant) = hooked(tool, arguments);
            let hooked = HookedCall { call: &call, plugin: "", assistant: &assistant };
            let answer = hook.before(hooked, &AbortSignal::new()).await;
            Ok(Came { receipt: bill(answer.receipt), ..verdict(answer.answer) })
        }
        (.., Some(tool)) => {
            let hook = plugin.after_hook().ok_or("the plugin has no hook after calls")?;
            let (call, assistant) = hooked(tool, arguments);
            let hooked = HookedCall { call: &call, plugin: "", assistant: &assistant };
            let result = given(&case.result);
            let ran = Ran {
                result: &result,
                is_error: case.result.is_error,
                ended_by: case.result.ended_by.as_deref(),
                duration: Duration::from_millis(1),
            };
            let answer = hook.after(hooked, ran, &AbortSignal::new()).await;
            let receipt = bill(answer.receipt);
            Ok(match answer.answer {
                Ok(amendment) => Came {
                    text: text(amendment.content.as_ref().unwrap_or(&result.content)),
                    details: amendment.details.or(result.details),
                    is_error: amendment.is_error.unwrap_or(case.result.is_error),
                    receipt,
                    ..Came::default()
                },
                Err(problem) => Came { receipt, ..failed(problem) },
            })
        }
        (None, None, None) => Err("the case names no tool".into()),
    }
}

/// A call as a model would have made it.
fn hooked(tool: &str, arguments: Arguments) -> (Call, Arc<AssistantMessage>) {
    let call = Call { id: "call".into(), name: tool.into(), arguments: arguments.clone() };
    let asked = ToolCall {
        id: call.id.to_string(),
        name: tool.into(),
        arguments,
        malformed: None,
        signature: None,
    };
    let assistant = AssistantMessage {
        content: vec![AssistantBlock::ToolCall(asked)],
        stop_reason: StopReason::ToolUse,
        ..AssistantMessage::pending()
    };
    (call, Arc::new(assistant))
}

fn given(given: &Given) -> ToolResult {
    ToolResult {
        details: given.details.clone(),
        is_error: Some(given.is_error),
        ..ToolResult::text(given.text.clone())
    }
}

fn verdict(answer: Result<Verdict, String>) -> Came {
    let (verdict, text, arguments) = match answer {
        Ok(Verdict::Proceed) => ("proceed", String::new(), None),
        Ok(Verdict::Rewrite(arguments)) => {
            ("rewrite", String::new(), Some(Value::Object((*arguments).clone())))
        }
        Ok(Verdict::Block(refusal)) => ("block", refusal.reason, None),
        Ok(Verdict::Ask(question)) => {
            ("ask", format!("{}\n{}", question.title, question.message), None)
        }
        Err(problem) => return failed(problem),
    };
    Came { verdict: Some(verdict), text, arguments, ..Came::default() }
}

fn failed(problem: String) -> Came {
    Came { text: problem, is_error: true, ended_by: Some("failure".into()), ..Came::default() }
}

fn bill(receipt: Option<SharedReceipt>) -> Option<Value> {
    receipt.map(|receipt| receipt.to_json())
}

impl From<Outcome> for Came {
    fn from(outcome: Outcome) -> Self {
        let receipt = bill(outcome.receipt);
        match outcome.answer {
            Ok(result) => Came {
                text: text(&result.content),
                details: result.details,
                is_error: result.is_error == Some(true),
                receipt,
                ..Came::default()
            },
            Err(failure) => Came {
                ended_by: Some(failure.ended_by),
                details: failure.details,
                receipt,
                ..failed(failure.message)
            },
        }
    }
}

fn text(content: &[Content]) -> String {
    let one = |block: &Content| match block {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("[{}, {} bytes]", image.media_type, image.data.len()),
    };
    content.iter().map(one).collect::<Vec<_>>().join("\n")
}
