//! What a provider answers.

use cofferdam_agent::message::{AssistantMessage, StopReason};
use cofferdam_agent::model::Step;
use cofferdam_agent::partial::Partial;
use cofferdam_providers::{Dialect, Wire, read_body};
use futures::executor::block_on;
use std::collections::HashSet;

const WIRES: [Wire; 4] =
    [Wire::Anthropic, Wire::Chat(Dialect::Generic), Wire::Responses, Wire::Gemini];

/// The longest body that is also read byte by byte.
const BYTEWISE_MAX: usize = 8 << 10;

/// Any body gives an order of steps that ends with one message, the same however it is cut, and a
/// call without whole arguments is marked. The first byte chooses the wire.
pub fn answer(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let wire = WIRES[usize::from(*choice) % WIRES.len()];
    let read = |size: usize| {
        let pieces = body.chunks(size).map(|piece| piece.to_vec().into());
        block_on(read_body(wire, pieces.collect()))
    };
    let steps = read(body.len().max(1));
    if body.len() <= BYTEWISE_MAX {
        assert_eq!(read(1), steps);
    }
    let Some((Step::Done(message), before)) = steps.split_last() else { panic!("{steps:?}") };
    let mut partial = Partial::default();
    for step in before {
        assert!(!matches!(step, Step::Done(_) | Step::Retry(_)), "{steps:?}");
        partial.fold(step);
    }
    assert!(partial.message().content.len() <= message.content.len(), "{steps:?}");
    check(message);
}

fn check(message: &AssistantMessage) {
    let calls: Vec<_> = message.tool_calls().collect();
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "two calls with one id: {message:?}");
    assert!(!ids.contains(""), "a call without an id: {message:?}");
    match message.stop_reason {
        StopReason::ToolUse => {
            assert!(!calls.is_empty());
            for call in calls {
                assert!(call.malformed.is_none() || call.arguments.is_empty(), "{message:?}");
            }
        }
        StopReason::Stop => assert!(calls.is_empty(), "{message:?}"),
        StopReason::Length => {}
        StopReason::Error => assert!(message.error_message.is_some()),
        StopReason::Aborted | StopReason::Pending => panic!("{message:?}"),
    }
}
