//! The figures of a receipt that logs, traces and metrics tell. The loop does not look into
//! receipts, and neither does this crate know their type: it reads their JSON.

use cofferdam_agent::event::{CallEnd, HookAction, HookRecord};
use cofferdam_agent::hook::Decision;
use cofferdam_agent::receipt::SharedReceipt;
use serde_json::Value;

/// What a call or a hook cost, as far as its runner measured it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) plugin: Option<String>,
    pub(crate) fuel: Option<u64>,
    pub(crate) memory_peak_bytes: Option<u64>,
    pub(crate) wall_us: Option<u64>,
    pub(crate) waiting_us: Option<u64>,
    pub(crate) http_requests: Option<u64>,
    /// What was refused to it, each with its rule and the line that would allow it.
    pub(crate) refusals: Vec<String>,
    /// How often something of it was cut.
    pub(crate) cuts: u64,
}

impl Bill {
    /// The bill of a receipt; empty if there is none.
    pub(crate) fn of(receipt: &Option<SharedReceipt>) -> Self {
        receipt.as_ref().map(|receipt| Self::read(&receipt.to_json())).unwrap_or_default()
    }

    fn read(receipt: &Value) -> Self {
        let number = |key| receipt.get(key).and_then(Value::as_u64);
        let count =
            |key| receipt.get(key).and_then(Value::as_array).map_or(0, |list| list.len() as u64);
        let refusals = receipt.get("refusals").and_then(Value::as_array).into_iter().flatten();
        Self {
            plugin: receipt.get("plugin").and_then(Value::as_str).map(str::to_owned),
            fuel: number("fuel"),
            memory_peak_bytes: number("memory_peak_bytes"),
            wall_us: number("wall_us"),
            waiting_us: number("waiting_us"),
            http_requests: number("http_requests"),
            refusals: refusals.filter_map(Value::as_str).map(str::to_owned).collect(),
            cuts: count("cuts"),
        }
    }
}

/// How a call ended, in one word: a code of what ended it, `error` if the tool itself called its
/// result one, `ok` else.
pub(crate) fn ending(end: &CallEnd) -> &str {
    match &end.ended_by {
        Some(code) => code,
        None if end.is_error => "error",
        None => "ok",
    }
}

/// What a hook did, in one word.
pub(crate) fn action(record: &HookRecord) -> &'static str {
    match &record.action {
        HookAction::Kept => "kept",
        HookAction::Rewrote { .. } => "rewrote",
        HookAction::Blocked(_) => "blocked",
        HookAction::Asked(Decision::Approved) => "approved",
        HookAction::Asked(Decision::Declined { .. }) => "declined",
        HookAction::Asked(Decision::Unanswered { .. }) => "unanswered",
        HookAction::Amended(_) => "amended",
        HookAction::Failed(_) => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_receipt_is_read_by_its_names_and_nothing_is_made_up() {
        let receipt = json!({"plugin": "calc", "fuel": 7, "refusals": ["a", "b"], "wall_us": -1});
        let bill = Bill::read(&receipt);
        let want = Bill {
            plugin: Some("calc".into()),
            fuel: Some(7),
            refusals: vec!["a".into(), "b".into()],
            ..Bill::default()
        };
        assert_eq!(bill, want);
    }
}
