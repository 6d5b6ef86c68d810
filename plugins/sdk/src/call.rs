//! The call at hand: its name, its progress, and whether it should end.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::Value;

use crate::host;
use crate::reply::Content;

thread_local! {
    // An instance serves one call, so there is only ever one.
    static CURRENT: RefCell<(String, String)> = RefCell::default();
}

/// Identifies the call in events, transcript and receipts. Empty outside a call.
pub fn id() -> String {
    CURRENT.with_borrow(|(id, _)| id.clone())
}

/// The name under which the call came: the tool's own in a tool, the model's in a hook.
pub fn name() -> String {
    CURRENT.with_borrow(|(_, name)| name.clone())
}

/// Shows people a line of progress; the model never sees it. Dropped outside a tool's call.
///
/// Call it as often as there is something to show: every tenth file, not every byte. The host
/// limits count and bytes, and ends a call that goes above.
pub fn progress(text: impl Into<String>) {
    report(vec![Content::Text(text.into())], None);
}

/// Shows people a partial result: content, and structured facts for interfaces.
pub fn report(content: Vec<Content>, details: Option<Value>) {
    host::report(content, details);
}

/// True from the moment the call was aborted. Cheap: ask often.
///
/// Asking buys time: a call that has asked gets a grace period after an abort to end tidily; any
/// other is stopped at once.
pub fn is_cancelled() -> bool {
    host::is_cancelled()
}

/// Wall time left to this call; after an abort, what is left of the grace period.
pub fn remaining() -> Duration {
    host::remaining()
}

pub(crate) fn begin(id: String, name: String) {
    CURRENT.set((id, name));
}
