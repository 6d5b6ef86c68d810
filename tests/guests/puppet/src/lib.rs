//! Obeys a scenario of the conformance tests from behind the wall. What a call comes to is worked out
//! here; what needs the world outside (gates, queues, aborts, records) is asked of the runner, which
//! is an import of its own beside the contract.

mod content;
#[path = "../../../conformance/player/rules/mod.rs"]
mod rules;
mod stage;

use cofferdam_plugin::{
    Amendment, Failure, HookedCall, Outcome, Reply, Result, Tool, Value, Verdict, call, export,
    json, tool_with_schema,
};
use serde_json::Map;

use content::{contents, given, reply, shown};
use rules::{Ending, Template, ending, list, thrown};

/// The tools of the scenario. Asked for in every instance: nothing survives a call.
fn tools() -> Vec<Tool> {
    list(&stage::tools()).iter().map(tool).collect()
}

fn tool(spec: &Value) -> Tool {
    let text = |name: &str| spec[name].as_str().filter(|text| !text.is_empty());
    let name = text("name").unwrap_or_default();
    // The wall wants a description, and the schema to say that arguments are an object. A scenario
    // may leave out both.
    let description = text("description").unwrap_or(name);
    let mut parameters = spec.get("parameters").cloned().unwrap_or(json!({}));
    if let Some(schema) = parameters.as_object_mut() {
        schema.entry("type").or_insert(json!("object"));
    }
    let sequential = spec["execution_mode"] == "sequential";
    let spec = spec.clone();
    let tool = tool_with_schema(name, description, parameters, move |args| play(&spec, &args));
    if sequential { tool.sequential() } else { tool }
}

/// One call of a tool.
fn play(spec: &Value, args: &Map<String, Value>) -> Result<Reply> {
    heed_aborts();
    let id = call::id();
    stage::enter(&json!({
        "party": "tool", "tool": spec["name"], "args": args, "variant": spec["variant"],
    }));
    let template = Template { call: Some((&id, args)) };
    match obey(&rules::steps(spec, &id, args), template) {
        Ending::Threw(message) => Err(Failure::other(message)),
        Ending::Returned(result) if result.is_object() => {
            stage::leave(&result);
            Ok(reply(&result))
        }
        // The type has no room for nothing; a plugin that breaks its contract panics.
        Ending::Returned(_) | Ending::Nothing => panic!("the tool returned nothing"),
    }
}

/// A call that has asked whether it was cancelled is not cut by an abort but has its grace period, in
/// which it can go on as its scenario says.
fn heed_aborts() {
    call::is_cancelled();
}

fn obey(steps: &Value, template: Template<'_>) -> Ending {
    for step in list(steps) {
        let step = template.fill(step);
        if let Some(ending) = ending(&step) {
            return ending;
        }
        match step.get("progress") {
            Some(partial) => {
                call::report(contents(&partial["content"]), given(partial, "details").cloned());
            }
            None => stage::step(&step),
        }
    }
    Ending::Nothing
}

fn prepare(tool: &str, arguments: Value) -> Result<Value> {
    let tools = stage::tools();
    let spec = list(&tools).iter().find(|spec| spec["name"] == tool);
    match spec.and_then(|spec| spec.get("prepare")) {
        Some(rules) => rules::prepared(rules, &object(&arguments)).map_err(Failure::other),
        None => Ok(arguments),
    }
}

/// Enters a hook, finds its rule and obeys the steps of the rule.
fn hook(party: &str, call: &HookedCall, ran: Value) -> Result<Value> {
    heed_aborts();
    let args = object(&call.arguments);
    let mut entered = json!({"party": party, "tool": call.tool, "args": args});
    if let (Some(entered), Value::Object(ran)) = (entered.as_object_mut(), ran) {
        entered.extend(ran);
    }
    let told = stage::enter(&entered);
    let nth = told["nth"].as_u64().unwrap_or_default();
    let rule = rules::rule(&told["rules"], &call.id, nth, &args);
    let template = Template { call: Some((&call.id, &args)) };
    obey(&rule["steps"], template);
    let rule = template.fill(&rule);
    match thrown(&rule) {
        Some(message) => Err(Failure::other(message)),
        None => Ok(rule),
    }
}

fn before(call: &HookedCall) -> Result<Verdict> {
    let rule = hook("before", call, Value::Null)?;
    if rule["block"] == true {
        let reason = rule["reason"].as_str().unwrap_or_default().to_owned();
        return Ok(Verdict::Block { reason, terminate: rule["terminate"].as_bool() });
    }
    Ok(match rules::rewritten(&rule, &object(&call.arguments)) {
        Some(args) => Verdict::Rewrite(Value::Object(args)),
        None => Verdict::Proceed,
    })
}

fn after(call: &HookedCall, outcome: &Outcome) -> Result<Amendment> {
    let ran = json!({
        "result": shown(outcome),
        "is_error": outcome.reply.is_error,
        "ended_by": outcome.ended_by,
    });
    let rule = hook("after", call, ran)?;
    Ok(Amendment {
        content: given(&rule, "content").map(contents),
        details: given(&rule, "details").cloned(),
        is_error: rule["is_error"].as_bool(),
        terminate: rule["terminate"].as_bool(),
    })
}

fn object(arguments: &Value) -> Map<String, Value> {
    arguments.as_object().cloned().unwrap_or_default()
}

export! { tools: tools(), prepare: prepare, before: before, after: after }
