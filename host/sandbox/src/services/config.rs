//! Values that the operator set for a plugin.

use crate::state::State;

/// The value of this key, if the operator set one.
pub(crate) fn read(state: &mut State, key: &str) -> Option<String> {
    let value = state.grants().and_then(|grants| grants.config.get(key)).cloned();
    state.receipt.host_calls.config.add(value.as_ref().map_or(0, String::len));
    value
}
