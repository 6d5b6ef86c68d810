//! The hooks of a scenario: one before and one after, which look up their rules by tool.

use super::print::digest;
use super::read::contents;
use super::rules::{self, Template, thrown};
use super::steps::Party;
use super::world::{Book, World};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{
    AfterHook, Amendment, BeforeHook, Hooked, HookedCall, Ran, Refusal, Verdict,
};
use cofferdam_agent::message::Arguments;
use cofferdam_agent::tool::{Call, ToolResult};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) struct ScriptedHook {
    pub(super) world: Arc<World>,
    /// `before` or `after`.
    pub(super) kind: &'static str,
}

/// Records that a hook was entered. Tells how often it was for this tool, and its rules.
pub(super) fn enter(
    world: &World,
    kind: &str,
    call: &Call,
    also: impl FnOnce(&mut Value, &mut Book),
) -> (u64, Value) {
    let mut record = json!({
        "rec": kind,
        "tool_call_id": &*call.id,
        "tool_name": &*call.name,
        "args": *call.arguments,
    });
    if world.config("probe_context") == true {
        let messages = world.agent().messages();
        record["agent_state"] = messages.iter().map(|m| Value::from(digest(m))).collect();
    }
    let mut book = world.book();
    also(&mut record, &mut book);
    book.push(record);
    let nth = book.count(format!("{kind} {}", call.name));
    let rules = &world.scenario[kind];
    let rules = rules.get(&*call.name).or_else(|| rules.get("*"));
    (nth, rules.cloned().unwrap_or_default())
}

/// What an after-hook records besides.
pub(super) fn note_ran(
    call: &Call,
    result: &ToolResult,
    is_error: bool,
    ended_by: Option<&str>,
) -> impl FnOnce(&mut Value, &mut Book) {
    move |record, book| {
        book.host_texts.learn_failure(&call.id, result, ended_by);
        record["result"] = book.result(&call.id, result, book.extras.get(&*call.id));
        record["is_error"] = is_error.into();
    }
}

impl ScriptedHook {
    /// Records the call and finds its rule.
    fn enter(&self, call: &Call, also: impl FnOnce(&mut Value, &mut Book)) -> Value {
        let (nth, rules) = enter(&self.world, self.kind, call, also);
        rules::rule(&rules, &call.id, nth, &call.arguments)
    }

    async fn obey(&self, rule: &Value, call: &Call, abort: &AbortSignal) -> Result<Value, String> {
        let template = Template { call: Some((&call.id, &call.arguments)) };
        let party = Party { world: &self.world, abort: Some(abort), template, progress: None };
        party.obey(&rule["steps"]).await;
        let rule = template.fill(rule);
        match thrown(&rule) {
            Some(message) => Err(message),
            None => Ok(rule),
        }
    }
}

impl BeforeHook for ScriptedHook {
    fn name(&self) -> &str {
        "scenario"
    }

    fn before<'a>(
        &'a self,
        hooked: HookedCall<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let call = hooked.call;
        let rule = self.enter(call, |_, _| {});
        Box::pin(async move {
            self.world.pause().await;
            match self.obey(&rule, call, abort).await {
                Ok(rule) => Ok(verdict(&rule, &call.arguments)).into(),
                Err(message) => Err(message).into(),
            }
        })
    }
}

fn verdict(rule: &Value, arguments: &Map<String, Value>) -> Verdict {
    if rule["block"] == true {
        let reason = rule["reason"].as_str().unwrap_or_default().to_owned();
        return Verdict::Block(Refusal { reason, terminate: rule["terminate"].as_bool() });
    }
    match rules::rewritten(rule, arguments) {
        Some(arguments) => Verdict::Rewrite(Arguments::new(arguments)),
        None => Verdict::Proceed,
    }
}

impl AfterHook for ScriptedHook {
    fn name(&self) -> &str {
        "scenario"
    }

    fn after<'a>(
        &'a self,
        hooked: HookedCall<'a>,
        ran: Ran<'a>,
        abort: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Amendment>> {
        let call = hooked.call;
        let rule = self.enter(call, note_ran(call, ran.result, ran.is_error, ran.ended_by));
        Box::pin(async move {
            self.world.pause().await;
            self.obey(&rule, call, abort).await.map(|rule| amendment(&rule)).into()
        })
    }
}

fn amendment(rule: &Value) -> Amendment {
    Amendment {
        content: rule.get("content").filter(|content| !content.is_null()).map(contents),
        details: rule.get("details").filter(|details| !details.is_null()).cloned(),
        is_error: rule["is_error"].as_bool(),
        terminate: rule["terminate"].as_bool(),
    }
}
