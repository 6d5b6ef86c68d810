//! A plugin's tool as the loop sees it.

use crate::call::{Ended, Entry, GuestCall, Job, Reply};
use crate::declare::ToolSpec;
use crate::error::Failure;
use crate::plugin::{Loaded, unexpected};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool, ToolFailure};
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One tool of one plugin.
pub(crate) struct PluginTool {
    plugin: Arc<Loaded>,
    /// With the operator's prefix.
    declaration: Arc<Declaration>,
    /// As the plugin declared it.
    own_name: Arc<str>,
    execution: Execution,
    prepares: bool,
}

impl PluginTool {
    pub(crate) fn new(
        plugin: Arc<Loaded>,
        spec: &ToolSpec,
        declaration: Declaration,
        prepares: bool,
    ) -> Self {
        Self {
            plugin,
            declaration: Arc::new(declaration),
            own_name: spec.declaration.name.as_str().into(),
            execution: spec.execution.clone(),
            prepares,
        }
    }

    fn job(&self, entry: Entry, progress: Option<Progress>) -> Job {
        Job { plugin: self.plugin.clone(), entry, progress }
    }
}

impl Tool for PluginTool {
    fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    fn execution(&self) -> &Execution {
        &self.execution
    }

    fn plugin(&self) -> &str {
        &self.plugin.terms.plugin
    }

    fn prepare<'a>(
        &'a self,
        arguments: &'a Arguments,
        abort: &'a AbortSignal,
    ) -> Option<BoxFuture<'a, Result<Value, String>>> {
        self.prepares.then(|| {
            let entry =
                Entry::Prepare { tool: self.own_name.clone(), arguments: json_text(arguments) };
            let job = self.job(entry, None);
            Box::pin(async move {
                let ended = job.perform(abort.clone()).await;
                match ended.reply {
                    Ok(Reply::Prepared(value)) => Ok(value),
                    Err(failure) => Err(failure.message),
                    Ok(_) => Err(unexpected(&ended)),
                }
            }) as BoxFuture<'a, _>
        })
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        let call = GuestCall {
            id: call.id,
            name: self.own_name.clone(),
            arguments: json_text(&call.arguments),
        };
        let job = self.job(Entry::CallTool { call }, Some(progress));
        Box::pin(async move { outcome(job.perform(abort).await) })
    }
}

/// An ended call as the loop takes it.
pub(crate) fn outcome(ended: Ended) -> Outcome {
    let answer = match ended.reply {
        Ok(Reply::Tool(result)) => Ok(result),
        Err(failure) => Err(tool_failure(failure)),
        Ok(_) => Err(ToolFailure::new(unexpected(&ended))),
    };
    Outcome { answer, receipt: Some(Arc::new(ended.receipt)) }
}

fn tool_failure(failure: Failure) -> ToolFailure {
    ToolFailure {
        message: failure.message,
        ended_by: failure.ended_by.into(),
        details: Some(failure.details),
    }
}

/// Arguments as the guest gets them.
pub(crate) fn json_text(arguments: &Map<String, Value>) -> String {
    // A map of JSON values has nothing that could fail.
    serde_json::to_string(arguments).unwrap_or_default()
}
