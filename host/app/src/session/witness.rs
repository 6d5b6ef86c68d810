//! A tool under observation: what only the tool itself sees goes into the session as well, the
//! arguments as it prepared them and the moment at which it begins to run.

use super::recorder::Recorder;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Arguments;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, Declaration, Execution, Outcome, Tool};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// A tool whose calls are noted as they begin.
pub(super) struct Witnessed {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) recorder: Arc<Recorder>,
}

impl Tool for Witnessed {
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
        let preparing = self.tool.prepare(arguments, abort)?;
        Some(Box::pin(async move {
            let prepared = preparing.await;
            self.recorder.prepared(prepared.clone());
            prepared
        }))
    }

    fn call<'a>(
        &'a self,
        call: Call,
        progress: Progress,
        abort: AbortSignal,
    ) -> BoxFuture<'a, Outcome> {
        // Before anything can happen outside: after a crash it is known what may have begun.
        self.recorder.runs(&call.id, &call.arguments);
        self.tool.call(call, progress, abort)
    }
}
