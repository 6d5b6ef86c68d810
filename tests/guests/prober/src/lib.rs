//! Tries whatever a test tells it to try, step by step, and answers with what each step came to.
#![cfg(target_family = "wasm")]

mod files;
mod web;

use std::hash::{BuildHasher as _, RandomState};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cofferdam_plugin::{
    Amendment, Content, Deserialize, Failure, HookedCall, JsonSchema, Outcome, Reply, Result,
    Value, Verdict, call, config, export, json, key_value, log, tool,
};

#[derive(Deserialize, JsonSchema)]
struct Probe {
    /// What to try, in this order.
    #[serde(default)]
    steps: Vec<Step>,
    /// For the hook before this call: steps, and a verdict in which `$0` stands for an outcome.
    #[serde(default)]
    #[allow(dead_code)]
    before: Option<Step>,
    /// For the hook after this call: steps, and content.
    #[serde(default)]
    #[allow(dead_code)]
    after: Option<Step>,
}

/// Any object.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct Step(serde_json::Map<String, Value>);

fn probe(args: Probe) -> Result<Reply> {
    let steps = args.steps.into_iter().map(|step| Value::Object(step.0)).collect();
    let outcomes = run(steps)?;
    Ok(Reply::text(Value::Array(outcomes).to_string()))
}

fn run(steps: Vec<Value>) -> Result<Vec<Value>> {
    let mut outcomes = Vec::new();
    for mut step in steps {
        fill(&mut step, &outcomes);
        let outcome = attempt(&step)?;
        outcomes.push(outcome.map_or_else(|err| json!({ "err": err }), |ok| json!({ "ok": ok })));
    }
    Ok(outcomes)
}

/// Puts earlier outcomes in the place of `$0` and so on.
fn fill(value: &mut Value, outcomes: &[Value]) {
    match value {
        Value::String(text) => {
            for (index, outcome) in outcomes.iter().enumerate() {
                let ok = &outcome["ok"];
                let shown = ok["body"].as_str().or(ok.as_str());
                let shown = shown.map_or_else(|| outcome.to_string(), str::to_owned);
                *text = text.replace(&format!("${index}"), &shown);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, outcomes)),
        Value::Object(map) => map.values_mut().for_each(|item| fill(item, outcomes)),
        _ => {}
    }
}

/// What one step came to. `Err` outside ends the call.
fn attempt(step: &Value) -> Result<Result<Value, String>> {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    let number = |name: &str| step[name].as_u64().unwrap_or_default();
    let fine = Ok(Ok(Value::Null));
    let stored = |result: Result<Value, key_value::Error>| Ok(result.map_err(|e| format!("{e:?}")));
    match text("do") {
        "env" => {
            let all = std::env::vars().map(|(key, value)| (key, Value::from(value)));
            Ok(Ok(Value::Object(all.collect())))
        }
        "config" => Ok(Ok(json!(config::read(text("key"))))),
        "kv_read" => {
            let value = key_value::read(text("key"));
            stored(
                value.map(|value| json!(value.map(|v| String::from_utf8_lossy(&v).into_owned()))),
            )
        }
        "kv_write" => {
            let mut value = text("value").repeat(number("times").max(1) as usize).into_bytes();
            value.extend(step["raw"].as_u64().map(|byte| byte as u8));
            stored(key_value::write(text("key"), value).map(|()| Value::Null))
        }
        "kv_remove" => stored(key_value::remove(text("key")).map(|()| Value::Null)),
        "kv_keys" => {
            let limit = step["limit"].as_u64().map_or(u32::MAX, |limit| limit as u32);
            stored(key_value::keys(text("prefix"), step["after"].as_str(), limit).map(|k| json!(k)))
        }
        "log" => {
            (0..number("times").max(1)).for_each(|_| log::info(text("text")));
            fine
        }
        "progress" => {
            (0..number("times").max(1)).for_each(|_| call::progress(text("text")));
            fine
        }
        "stdout" => {
            web::say(false, text("text"), number("times"));
            fine
        }
        "stderr" => {
            web::say(true, text("text"), number("times"));
            fine
        }
        "sleep" => {
            thread::sleep(Duration::from_millis(number("ms")));
            fine
        }
        "spin" => loop {
            std::hint::black_box(0);
        },
        "cancelled" => Ok(Ok(json!([call::is_cancelled(), call::remaining().as_millis() as u64]))),
        "random" => Ok(Ok(json!(wasip2::random::random::get_random_bytes(number("bytes")).len()))),
        "chance" => Ok(Ok(chance(number("ms")))),
        "exit" => std::process::exit(number("status") as i32),
        "panic" => panic!("{}", text("text")),
        "fail" => Err(Failure::other(text("text"))),
        "grow" => {
            Ok(Ok(json!(core::arch::wasm32::memory_grow::<0>((number("mib") * 16) as usize))))
        }
        "http" => Ok(web::request(step)),
        "drip" => Ok(web::drip(step)),
        _ => Ok(files::attempt(step)),
    }
}

/// Whatever a guest has of chance and time, with a sleep in between.
fn chance(ms: u64) -> Value {
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
    let (began, clock) = (Instant::now(), now());
    thread::sleep(Duration::from_millis(ms));
    json!({
        "random": wasip2::random::random::get_random_bytes(8),
        "insecure": wasip2::random::insecure::get_insecure_random_u64().to_string(),
        // Of the seed that is drawn for a process.
        "hashes": RandomState::new().hash_one(1).to_string(),
        "clock_us": clock,
        "slept_us": now() - clock,
        "elapsed_us": began.elapsed().as_micros() as u64,
    })
}

fn before(hooked: &HookedCall) -> Result<Verdict> {
    let plan = &hooked.arguments["before"];
    let steps = plan["steps"].as_array().cloned().unwrap_or_default();
    let outcomes = run(steps)?;
    let mut plan = plan.clone();
    fill(&mut plan, &outcomes);
    Ok(match (plan["block"].as_str(), plan["ask"].as_str()) {
        (Some(reason), _) => Verdict::block(reason),
        (_, Some(message)) => Verdict::ask(message, message),
        _ if plan["rewrite"].is_object() => Verdict::Rewrite(plan["rewrite"].clone()),
        _ => Verdict::Proceed,
    })
}

fn after(hooked: &HookedCall, _: &Outcome) -> Result<Amendment> {
    let plan = &hooked.arguments["after"];
    let steps = plan["steps"].as_array().cloned().unwrap_or_default();
    let outcomes = run(steps)?;
    let mut plan = plan.clone();
    fill(&mut plan, &outcomes);
    Ok(match plan["content"].as_str() {
        Some(content) => Amendment::keep().content(vec![Content::from(content)]),
        None => Amendment::keep(),
    })
}

export! {
    tools: [tool("probe", "Tries steps and answers with what they came to.", probe)],
    before: before,
    after: after,
}
