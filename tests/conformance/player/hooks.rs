//! The hooks of a scenario: one before and one after, which look up their rules by tool.

use super::print::digest;
use super::read::{contents, list};
use super::steps::{Party, thrown};
use super::template::Template;
use super::tool::holds;
use super::world::World;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{
    AfterHook, Amendment, BeforeHook, Hooked, HookedCall, Ran, Refusal, Verdict,
};
use cofferdam_agent::message::Arguments;
use cofferdam_agent::tool::Call;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) struct ScriptedHook {
    pub(super) world: Arc<World>,
    /// `before` or `after`.
    pub(super) kind: &'static str,
}

impl ScriptedHook {
    /// Records the call and finds its rule, with the strings filled in.
    fn enter(&self, call: &Call, also: impl FnOnce(&mut Value, &World)) -> Option<Value> {
        let mut record = json!({
            "rec": self.kind,
            "tool_call_id": &*call.id,
            "tool_name": &*call.name,
            "args": *call.arguments,
        });
        also(&mut record, &self.world);
        if self.world.config("probe_context") == true {
            let messages = self.world.agent().messages();
            record["agent_state"] = messages.iter().map(|m| Value::from(digest(m))).collect();
        }
        self.world.record(record);
        let nth = self.world.book().count(format!("{} {}", self.kind, call.name));
        let rules = &self.world.scenario[self.kind];
        let rules = rules.get(&*call.name).or_else(|| rules.get("*"))?;
        let fits = |rule: &&Value| holds(&rule["if"], &call.id, Some(nth), &call.arguments);
        list(rules).iter().find(fits).cloned()
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
            let rule = rule.unwrap_or_default();
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
    if rule.get("mutate").is_none() && rule.get("delete").is_none() {
        return Verdict::Proceed;
    }
    let mut arguments = arguments.clone();
    for (name, value) in rule["mutate"].as_object().into_iter().flatten() {
        arguments.insert(name.clone(), value.clone());
    }
    for name in list(&rule["delete"]).iter().filter_map(Value::as_str) {
        arguments.shift_remove(name);
    }
    Verdict::Rewrite(Arguments::new(arguments))
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
        let rule = self.enter(call, |record, world| {
            let mut book = world.book();
            book.host_texts.learn_failure(&call.id, ran.result, ran.ended_by);
            record["result"] = book.result(&call.id, ran.result, book.extras.get(&*call.id));
            record["is_error"] = ran.is_error.into();
        });
        Box::pin(async move {
            self.world.pause().await;
            let rule = rule.unwrap_or_default();
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
