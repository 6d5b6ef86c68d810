//! A guest that asks whether it was cancelled gets time to end tidily.

use crate::state::State;

/// Whether the call was aborted.
pub(crate) fn is_cancelled(state: &mut State) -> bool {
    state.receipt.host_calls.cancellation.add(0);
    state.brake.ask()
}

/// Milliseconds left to the call.
pub(crate) fn remaining_ms(state: &mut State) -> u64 {
    state.receipt.host_calls.cancellation.add(0);
    state.brake.ask();
    u64::try_from(state.brake.remaining().as_millis()).unwrap_or(u64::MAX)
}
