//! A session as one JSON document: the transcript, and beside it each call with its moments.

use super::super::Record;
use super::super::timeline::{Item, Trace, What, items};
use super::Head;
use crate::json;
use serde_json::{Map, Value, json};

/// The document. Moments are microseconds since 1970, like `at_us` in the session file.
pub fn document(record: &Record) -> Value {
    let items = items(&record.lines);
    let head = Head::of(record, &items);
    let messages: Vec<Value> = record.messages().map(|message| json::message(message)).collect();
    json!({
        "session": {
            "id": head.id,
            "title": head.title,
            "cofferdam": record.header.cofferdam,
            "began_us": head.began_us,
            "ended_us": head.ended_us,
            "models": head.models,
            "runs": head.runs,
            "calls": head.calls,
            "failed_calls": head.failed,
        },
        "setup": record.last_setup(),
        "messages": messages,
        "batches": items.iter().filter_map(batch).collect::<Vec<_>>(),
    })
}

fn batch(item: &Item<'_>) -> Option<Value> {
    let What::Answer(_, batch) = &item.what else { return None };
    let calls: Vec<Value> = batch.calls.iter().map(call).collect();
    (!calls.is_empty()).then(|| json!({"answered_us": item.at_us, "calls": calls}))
}

fn call(trace: &Trace<'_>) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| {
        if !value.is_null() {
            fields.insert(key.into(), value);
        }
    };
    put("tool_call_id", trace.call.id.clone().into());
    put("tool_name", trace.call.name.clone().into());
    put("arguments", json!(*trace.call.arguments));
    put("ran_with", json!(trace.ran_with.map(|arguments| &**arguments)));
    put("outcome", trace.outcome().as_str().into());
    put("preflight_us", trace.start_us.into());
    put("started_us", trace.run_us.into());
    let progress = trace.progress.iter();
    let progress =
        progress.map(|(at, part)| json!({"at_us": at, "partial_result": json::tool_result(part)}));
    put("progress", progress.collect());
    put("ended_us", trace.end.map(|(at, _)| at).into());
    put("ended_as", trace.ended_as.into());
    put("retired_us", trace.retired_us.into());
    if let Some((_, end)) = trace.end {
        fields.extend(json::call_end(end));
    }
    fields.into()
}
