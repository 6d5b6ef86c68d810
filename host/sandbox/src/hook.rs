//! A plugin's hooks as the loop sees them.

use crate::call::{Entry, GuestCall, GuestContext, GuestRan, Job, Reply};
use crate::plugin::Loaded;
use crate::tool::json_text;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{AfterHook, Amendment, BeforeHook, Hooked, HookedCall, Ran, Verdict};
use cofferdam_agent::message::{AssistantBlock, AssistantMessage};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

/// The hooks of one plugin.
pub(crate) struct PluginHook {
    plugin: Arc<Loaded>,
}

impl PluginHook {
    pub(crate) fn new(plugin: Arc<Loaded>) -> Self {
        Self { plugin }
    }

    async fn ask<T>(
        &self,
        entry: Entry,
        abort: &AbortSignal,
        pick: fn(Reply) -> Option<T>,
    ) -> Hooked<T> {
        let job = Job { plugin: self.plugin.clone(), entry, progress: None };
        let ended = job.perform(abort.clone()).await;
        let answer = match ended.reply {
            Ok(reply) => pick(reply).ok_or_else(|| "the sandbox mixed up an answer".to_owned()),
            Err(failure) => Err(failure.message),
        };
        Hooked { answer, receipt: Some(Arc::new(ended.receipt)) }
    }
}

impl BeforeHook for PluginHook {
    fn name(&self) -> &str {
        &self.plugin.terms.plugin
    }

    fn before<'a>(
        &'a self,
        call: HookedCall<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let entry = Entry::Before { call: guest_call(&call), context: context(&call) };
        Box::pin(self.ask(entry, abort, |reply| match reply {
            Reply::Verdict(verdict) => Some(verdict),
            _ => None,
        }))
    }
}

impl AfterHook for PluginHook {
    fn name(&self) -> &str {
        &self.plugin.terms.plugin
    }

    fn after<'a>(
        &'a self,
        call: HookedCall<'a>,
        ran: Ran<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        let ran = GuestRan {
            result: ran.result.clone(),
            is_error: ran.is_error,
            ended_by: ran.ended_by.map(Into::into),
            wall_ms: u64::try_from(ran.duration.as_millis()).unwrap_or(u64::MAX),
        };
        let entry = Entry::After { call: guest_call(&call), context: context(&call), ran };
        Box::pin(self.ask(entry, abort, |reply| match reply {
            Reply::Amendment(amendment) => Some(amendment),
            _ => None,
        }))
    }
}

fn guest_call(call: &HookedCall<'_>) -> GuestCall {
    GuestCall {
        id: call.call.id.clone(),
        name: call.call.name.clone(),
        arguments: json_text(&call.call.arguments),
    }
}

fn context(call: &HookedCall<'_>) -> GuestContext {
    GuestContext {
        plugin: call.plugin.into(),
        assistant: assistant_json(call.assistant).to_string(),
    }
}

/// The finished answer as hooks see it, in the words of the contract.
fn assistant_json(message: &AssistantMessage) -> Value {
    let content: Vec<Value> = message
        .content
        .iter()
        .map(|block| match block {
            AssistantBlock::Text(text) => json!({ "type": "text", "text": text.text }),
            AssistantBlock::Thinking(thinking) => {
                json!({ "type": "thinking", "thinking": thinking.thinking })
            }
            AssistantBlock::ToolCall(call) => json!({
                "type": "tool_call", "id": call.id, "name": call.name, "arguments": *call.arguments,
            }),
        })
        .collect();
    json!({ "role": "assistant", "content": content, "stop_reason": message.stop_reason.as_str() })
}
