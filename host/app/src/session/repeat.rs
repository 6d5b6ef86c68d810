//! One recorded call, made again in the sandbox: the same file by its digest, the same arguments, and
//! the same chance and time where the session has recorded them.
//!
//! What the plugin may touch comes from the operator's file of today, never from the session: a
//! session is a file like any other, and may come from anybody.

use super::Record;
use super::format::{Entry, PluginEntry, Setup};
use crate::Config;
use crate::json;
use crate::receipt::thousands;
use crate::registry::{Pinning, Registry, RegistryError};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::event::{CallEnd, HookAction};
use cofferdam_agent::message::{Arguments, Message};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Outcome, Tool, ToolResult};
use cofferdam_sandbox::{Chance, Sandbox, SandboxConfig, SandboxError, Seeds};
use serde_json::Value;
use std::sync::Arc;

/// A call of a session that ran.
#[derive(Debug)]
pub struct OldCall<'r> {
    /// The call's id.
    pub id: &'r str,
    /// The tool's name as the model wrote it.
    pub tool: &'r str,
    /// The plugin of the tool.
    pub plugin: &'r PluginEntry,
    /// What its random numbers and clocks came from, if that was recorded.
    pub seeds: Option<Seeds>,
    arguments: Arguments,
    end: &'r CallEnd,
}

/// A call that cannot be made again.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// The session has no such call.
    #[error("the session has no call `{wanted}` that ran{hint}")]
    NoSuchCall {
        /// What was asked for.
        wanted: String,
        /// Those that ran.
        hint: String,
    },
    /// The call never ran.
    #[error("the call `{id}` did not run: it ended by `{ended_by}` before")]
    NeverRan {
        /// The call.
        id: String,
        /// What ended it.
        ended_by: String,
    },
    /// The process ended before the call did.
    #[error("the call `{id}` never ended: there is nothing to compare with")]
    NeverEnded {
        /// The call.
        id: String,
    },
    /// The tool is none of a plugin.
    #[error("the tool `{tool}` is none of a plugin: there is nothing to run in the sandbox")]
    Native {
        /// The tool.
        tool: String,
    },
    /// The operator's file does not have the plugin.
    #[error(
        "{config} has no plugin `{plugin}`: what a call may touch comes from the operator's file and \
         not from the session; name that file with --config"
    )]
    NoPlugin {
        /// The operator's file.
        config: String,
        /// The plugin.
        plugin: String,
    },
    /// The operator pins another file.
    #[error(
        "the call ran in the plugin `{plugin}` with sha256 {recorded}, and {config} has it pinned to \
         {pinned}: the same call needs the same file"
    )]
    OtherFile {
        /// The operator's file.
        config: String,
        /// The plugin.
        plugin: String,
        /// The digest in the session.
        recorded: String,
        /// The digest of the operator.
        pinned: String,
    },
    /// The plugin offers no such tool under the operator's entry.
    #[error("the plugin `{plugin}` does not offer the tool `{tool}` as {config} has it")]
    NoTool {
        /// The operator's file.
        config: String,
        /// The plugin.
        plugin: String,
        /// The tool.
        tool: String,
    },
    /// The sandbox could not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The plugin cannot be loaded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// One thing about a call, then and now.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// What.
    pub what: &'static str,
    /// As the session has it.
    pub recorded: String,
    /// As it is now.
    pub now: String,
    /// Whether it must be the same: figures need not be, if chance and time are not.
    pub counts: bool,
}

impl Row {
    /// Whether it is the same as it was.
    pub fn is_same(&self) -> bool {
        self.recorded == self.now
    }
}

impl<'r> OldCall<'r> {
    /// The last call of this id that ran.
    pub fn find(record: &'r Record, wanted: &str) -> Result<Self, RepeatError> {
        let mut found = Search::default();
        for line in &record.lines {
            found.look_at(&line.entry, wanted);
        }
        let id = wanted.to_owned();
        let Some(ran) = found.ran else {
            return Err(match found.end.and_then(|end| end.ended_by.clone()) {
                Some(ended_by) => RepeatError::NeverRan { id, ended_by },
                None => RepeatError::NoSuchCall { wanted: id, hint: hint(&found.ids) },
            });
        };
        let end = ran.end.ok_or(RepeatError::NeverEnded { id })?;
        let native = || RepeatError::Native { tool: ran.tool.to_owned() };
        let setup = ran.setup.ok_or_else(native)?;
        let tool = setup.tools.iter().find(|entry| entry.name == ran.tool).ok_or_else(native)?;
        let plugin = setup.plugins.iter().find(|entry| entry.name == tool.plugin);
        Ok(Self {
            id: ran.id,
            tool: ran.tool,
            plugin: plugin.ok_or_else(native)?,
            seeds: seeds(end),
            arguments: ran.arguments,
            end,
        })
    }

    /// Makes the call again under the operator's file, and compares.
    pub async fn repeat(
        &self,
        config: &Config,
        sandbox: SandboxConfig,
    ) -> Result<Vec<Row>, RepeatError> {
        let chance = self.seeds.map_or(Chance::System, Chance::Repeated);
        let sandbox = SandboxConfig { chance, ..config.sandbox.over(sandbox) };
        let sandbox = Sandbox::new(sandbox)?;
        let tool = self.tool(config, &sandbox).await?;
        let call =
            Call { id: self.id.into(), name: self.tool.into(), arguments: self.arguments.clone() };
        Ok(self.rows(&tool.call(call, Progress::default(), AbortSignal::new()).await))
    }

    async fn tool(&self, config: &Config, sandbox: &Sandbox) -> Result<Arc<dyn Tool>, RepeatError> {
        let (path, plugin) = (config.path.display().to_string(), self.plugin.name.clone());
        let entry = config.plugins.iter().find(|entry| entry.name == plugin);
        let mut entry = match entry {
            Some(entry) => entry.clone(),
            None => return Err(RepeatError::NoPlugin { config: path, plugin }),
        };
        match &entry.sha256 {
            Some(pinned) if !pinned.eq_ignore_ascii_case(&self.plugin.sha256) => {
                return Err(RepeatError::OtherFile {
                    config: path,
                    plugin,
                    recorded: self.plugin.sha256.clone(),
                    pinned: pinned.clone(),
                });
            }
            Some(_) => {}
            // What the operator has not pinned is pinned by the session: it must be that file.
            None => entry.sha256 = Some(self.plugin.sha256.clone()),
        }
        let config = Config { plugins: vec![entry], hooks: Vec::new(), ..config.clone() };
        let registry = Registry::load(sandbox, &config, Pinning::Required).await?;
        let tool = registry.tools().find(|tool| tool.declaration().name == self.tool);
        let missing = || RepeatError::NoTool { config: path, plugin, tool: self.tool.to_owned() };
        tool.ok_or_else(missing)
    }

    fn rows(&self, outcome: &Outcome) -> Vec<Row> {
        let (result, ended_by) = match &outcome.answer {
            Ok(result) => (result.clone(), None),
            Err(failure) => {
                let details = failure.details.clone();
                let result = ToolResult { details, ..ToolResult::text(&*failure.message) };
                (result, Some(failure.ended_by.as_str()))
            }
        };
        let then = self.end;
        let row = |what, recorded: String, now: String| Row { what, recorded, now, counts: true };
        let mut rows = vec![row(
            "outcome",
            outcome_word(then.ended_by.as_deref(), &then.result),
            outcome_word(ended_by, &result),
        )];
        let (content, details) = self.hidden();
        if !content {
            let text = |result: &ToolResult| json::contents(&result.content).to_string();
            rows.push(row("content", text(&then.result), text(&result)));
        }
        if !details {
            let text = |result: &ToolResult| result.details.clone().unwrap_or_default().to_string();
            rows.push(row("details", text(&then.result), text(&result)));
        }
        rows.extend(self.figures(outcome, ended_by));
        rows
    }

    /// Whether hooks put something in the place of the tool's own content and details: what that was
    /// the session does not say.
    fn hidden(&self) -> (bool, bool) {
        let replaces = |field: fn(&cofferdam_agent::hook::Amendment) -> bool| {
            self.end.hooks.iter().any(|record| match &record.action {
                HookAction::Amended(amendment) => field(amendment),
                // It may have become the result.
                HookAction::Failed(_) => true,
                _ => false,
            })
        };
        (replaces(|a| a.content.is_some()), replaces(|a| a.details.is_some()))
    }

    /// With the same chance and time a guest computes the same, unless something from outside
    /// stopped it.
    fn figures(&self, outcome: &Outcome, ended_by: Option<&str>) -> Vec<Row> {
        let bill = |receipt: Option<&cofferdam_agent::receipt::SharedReceipt>| {
            receipt.map(|receipt| receipt.to_json()).unwrap_or_default()
        };
        let (then, now) = (bill(self.end.receipt.as_ref()), bill(outcome.receipt.as_ref()));
        let stopped = matches!(ended_by, Some("time-limit" | "aborted"));
        let counts = self.seeds.is_some() && !stopped;
        let figure = |what, key: &str| {
            let of = |bill: &Value| match bill.get(key).and_then(Value::as_u64) {
                Some(figure) => thousands(figure),
                None => "none".into(),
            };
            Row { what, recorded: of(&then), now: of(&now), counts }
        };
        vec![figure("fuel", "fuel"), figure("memory", "memory_peak_bytes")]
    }
}

/// What is known of a call while the lines go by.
#[derive(Default)]
struct Search<'r> {
    setup: Option<&'r Setup>,
    answer: Option<&'r Message>,
    ids: Vec<&'r str>,
    /// The last call of the id that ran.
    ran: Option<Ran<'r>>,
    /// The end of one that did not.
    end: Option<&'r CallEnd>,
}

struct Ran<'r> {
    id: &'r str,
    tool: &'r str,
    setup: Option<&'r Setup>,
    arguments: Arguments,
    end: Option<&'r CallEnd>,
}

impl<'r> Search<'r> {
    fn look_at(&mut self, entry: &'r Entry, wanted: &str) {
        match entry {
            Entry::Setup(setup) => self.setup = Some(setup),
            Entry::Message(message) if message.as_assistant().is_some() => {
                self.answer = Some(message);
            }
            Entry::CallRun { id, arguments } => {
                self.ids.push(id);
                let mut calls = self.answer.and_then(Message::as_assistant).into_iter();
                let call = calls.find_map(|answer| answer.tool_calls().find(|call| call.id == *id));
                if let Some(call) = call.filter(|_| id == wanted) {
                    self.ran = Some(Ran {
                        id,
                        tool: &call.name,
                        setup: self.setup,
                        arguments: arguments.clone().unwrap_or_else(|| call.arguments.clone()),
                        end: None,
                    });
                }
            }
            Entry::CallEnd { id, end, .. } if id == wanted => match &mut self.ran {
                Some(ran) if ran.end.is_none() => ran.end = Some(end),
                _ => self.end = Some(end),
            },
            _ => {}
        }
    }
}

fn hint(ids: &[&str]) -> String {
    const IDS_MAX: usize = 20;
    match ids {
        [] => ": none did".into(),
        ids => {
            let more = if ids.len() > IDS_MAX { ", …" } else { "" };
            let shown: Vec<&str> = ids.iter().take(IDS_MAX).copied().collect();
            format!("; those that did: {}{more}", shown.join(", "))
        }
    }
}

fn seeds(end: &CallEnd) -> Option<Seeds> {
    let receipt = end.receipt.as_ref()?.to_json();
    serde_json::from_value(receipt.get("seeds")?.clone()).ok()
}

fn outcome_word(ended_by: Option<&str>, result: &ToolResult) -> String {
    match (ended_by, result.is_error) {
        (Some(code), _) => code.to_owned(),
        (None, Some(true)) => "error result".into(),
        (None, _) => "result".into(),
    }
}
