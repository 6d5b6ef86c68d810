//! Fragments of calls, put together. Servers differ most in this: with and without indexes, with
//! ids in one fragment or in all, whole calls or pieces.
//!
//! The rule: with an index, a fragment belongs to the latest call of that index; without one, to
//! the call of its id; with neither, to the latest call. A new call begins where a fragment brings
//! another id and a name, or names a call while the one before it has all its arguments. An index
//! is a key and never a position (agentgateway/agentgateway 2965); empty ids, names and arguments
//! say nothing.

use crate::draft::{Draft, arguments, arguments_text};
use serde_json::Value;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Begun>,
}

#[derive(Debug)]
struct Begun {
    at: usize,
    index: Option<u64>,
    /// As the server gave it, which may not be the id that the call got.
    id: String,
    name: String,
}

struct Fragment<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: String,
}

impl Calls {
    /// Takes one entry of `delta.tool_calls`.
    pub(super) fn take(&mut self, entry: &Value, draft: &mut Draft) {
        let fragment = Fragment {
            index: entry["index"].as_u64(),
            id: entry["id"].as_str().unwrap_or_default(),
            name: entry["function"]["name"].as_str().unwrap_or_default(),
            arguments: arguments_text(&entry["function"]["arguments"]),
        };
        let says_nothing =
            fragment.id.is_empty() && fragment.name.is_empty() && fragment.arguments.is_empty();
        let which = self.which(&fragment, draft);
        if which.is_none() && says_nothing {
            return;
        }
        let which = which.unwrap_or_else(|| self.begin(&fragment, draft));
        let call = &mut self.calls[which];
        if call.id.is_empty() && !fragment.id.is_empty() {
            call.id = fragment.id.into();
            draft.identify(call.at, fragment.id);
        }
        if call.name.is_empty() && !fragment.name.is_empty() {
            call.name = fragment.name.into();
            draft.name(call.at, fragment.name);
        }
        draft.push(call.at, &fragment.arguments);
    }

    /// The call that a fragment belongs to; `None` if it begins one.
    fn which(&self, fragment: &Fragment<'_>, draft: &Draft) -> Option<usize> {
        let latest = |fits: &dyn Fn(&Begun) -> bool| self.calls.iter().rposition(fits);
        let found = match fragment.index {
            Some(index) => latest(&|call| call.index == Some(index))?,
            None if !fragment.id.is_empty() => {
                let same = latest(&|call| call.id == fragment.id);
                // A call that has no id yet may get it late.
                same.or_else(|| latest(&|call| call.id.is_empty()))?
            }
            None => self.calls.len().checked_sub(1)?,
        };
        (!begins(fragment, &self.calls[found], draft)).then_some(found)
    }

    fn begin(&mut self, fragment: &Fragment<'_>, draft: &mut Draft) -> usize {
        let Fragment { index, id, name, .. } = *fragment;
        let at = draft.call(id, name);
        self.calls.push(Begun { at, index, id: id.into(), name: name.into() });
        self.calls.len() - 1
    }
}

/// Whether a fragment begins a call of its own, though the call so far has its index or its id.
fn begins(fragment: &Fragment<'_>, call: &Begun, draft: &Draft) -> bool {
    if fragment.name.is_empty() {
        return false;
    }
    let both = !fragment.id.is_empty() && !call.id.is_empty();
    let other_id = both && fragment.id != call.id;
    let other_name = !call.name.is_empty() && fragment.name != call.name;
    let text = draft.text_of(call.at);
    let whole = !text.trim().is_empty() && arguments(text).is_ok();
    let says_more = other_name || !fragment.arguments.trim().is_empty();
    other_id || (whole && says_more) || (fragment.index.is_none() && other_name)
}
