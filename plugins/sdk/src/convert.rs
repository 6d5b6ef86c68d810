//! Between the contract's types and those that authors see. JSON text becomes values here and
//! nowhere else.

use std::time::Duration;

use serde_json::Value;

use crate::contract::imports::types as wit;
use crate::contract::{after, before, tools};
use crate::failure::{Failure, FailureKind, Result};
use crate::hook::{Amendment, HookedCall, Outcome, Verdict};
use crate::reply::{Content, Reply};
use crate::tool::{Execution, Tool};

pub(crate) fn json(what: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|error| Failure::other(format!("{what} from the host: {error}")))
}

impl From<Content> for wit::Content {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text),
            Content::Image { media_type, data } => Self::Image(wit::Blob { media_type, data }),
            Content::Other { kind, data } => Self::Other(wit::Custom { kind, data }),
        }
    }
}

impl From<wit::Content> for Content {
    fn from(content: wit::Content) -> Self {
        match content {
            wit::Content::Text(text) => Self::Text(text),
            wit::Content::Image(wit::Blob { media_type, data }) => Self::Image { media_type, data },
            wit::Content::Other(wit::Custom { kind, data }) => Self::Other { kind, data },
        }
    }
}

impl From<Reply> for wit::ToolResult {
    fn from(reply: Reply) -> Self {
        Self {
            content: contents(reply.content),
            details: reply.details.map(|details| details.to_string()),
            is_error: reply.is_error,
            terminate: reply.terminate,
            meta: Vec::new(),
        }
    }
}

impl From<Failure> for wit::Failure {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Rejected => wit::FailureKind::Rejected,
            FailureKind::Denied => wit::FailureKind::Denied,
            FailureKind::Unavailable => wit::FailureKind::Unavailable,
            FailureKind::Other => wit::FailureKind::Other,
        };
        Self { kind, code: failure.code, message: failure.message }
    }
}

impl From<Tool> for tools::interface::Tool {
    fn from(tool: Tool) -> Self {
        use tools::interface::Execution as Wit;
        Self {
            parameters: tool.parameters().to_string(),
            name: tool.name,
            label: tool.label,
            description: tool.description,
            execution: match tool.execution {
                Execution::Parallel => Wit::Parallel,
                Execution::Sequential => Wit::Sequential,
                Execution::Exclusive(lanes) => Wit::Exclusive(lanes),
            },
            meta: tool.meta,
        }
    }
}

pub(crate) fn hooked_call(call: wit::ToolCall, context: wit::HookContext) -> Result<HookedCall> {
    Ok(HookedCall {
        id: call.id,
        tool: call.name,
        arguments: json("arguments", &call.arguments)?,
        plugin: context.plugin,
        assistant_message: json("assistant message", &context.assistant_message)?,
    })
}

impl From<Verdict> for before::interface::Verdict {
    fn from(verdict: Verdict) -> Self {
        use before::interface::{Question, Refusal};
        match verdict {
            Verdict::Proceed => Self::Proceed,
            Verdict::Rewrite(arguments) => Self::Rewrite(arguments.to_string()),
            Verdict::Block { reason, terminate } => Self::Block(Refusal { reason, terminate }),
            Verdict::Ask { title, message } => Self::Ask(Question { title, message }),
        }
    }
}

pub(crate) fn outcome(outcome: after::interface::Outcome) -> Result<Outcome> {
    let result = outcome.value;
    Ok(Outcome {
        reply: Reply {
            content: result.content.into_iter().map(Into::into).collect(),
            details: result.details.map(|details| json("details", &details)).transpose()?,
            is_error: result.is_error,
            terminate: result.terminate,
        },
        ended_by: outcome.ended_by,
        wall: Duration::from_millis(outcome.wall_ms),
    })
}

impl From<Amendment> for after::interface::Amendment {
    fn from(amendment: Amendment) -> Self {
        Self {
            content: amendment.content.map(contents),
            details: amendment.details.map(|details| details.to_string()),
            is_error: amendment.is_error,
            terminate: amendment.terminate,
        }
    }
}

fn contents(content: Vec<Content>) -> Vec<wit::Content> {
    content.into_iter().map(Into::into).collect()
}
