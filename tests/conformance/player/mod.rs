//! Plays a recorded scenario on the loop and writes its trace.
//!
//! The world (`world`) holds what all scripted parties share: gates, records, delays. Each party
//! obeys lists of steps (`steps`): the model, the listener, the hooks, the script itself. Tools and
//! hooks come as a [`cast::Cast`], so that the same scenario can be played with native ones or with guests
//! behind the sandbox.

mod cast;
mod compare;
mod hooks;
mod listener;
mod model;
mod print;
mod puppet;
mod read;
mod rules;
mod script;
mod stage;
mod steps;
mod tool;
mod world;

pub use compare::{difference, parse};
pub use stage::Stage;
pub use world::Delays;

use serde_json::Value;
use std::time::Duration;

/// Who plays the tools and hooks.
#[derive(Clone, Default)]
pub enum Tools {
    /// Rust code in this process.
    #[default]
    Native,
    /// Guests behind the sandbox.
    Wasm(Stage),
}

/// Why there is no trace.
#[derive(Debug, PartialEq, Eq)]
pub enum Unplayed {
    /// No party of this kind can play the scenario.
    Unplayable(String),
    /// The scenario did not end in time.
    TimedOut,
}

/// Plays one scenario. Needs a tokio runtime with a clock.
pub async fn play(
    scenario: Value,
    tools: Tools,
    delays: Delays,
    limit: Duration,
) -> Result<Vec<Value>, Unplayed> {
    let world = world::World::new(scenario, delays);
    let (cast, _on_stage) = match tools {
        Tools::Native => (cast::Cast::native(&world), None),
        Tools::Wasm(stage) => {
            let (cast, on_stage) = stage.cast(&world).await.map_err(Unplayed::Unplayable)?;
            (cast, Some(on_stage))
        }
    };
    let played = tokio::time::timeout(limit, script::run(&world, cast)).await;
    played.map_err(|_| Unplayed::TimedOut)?;
    Ok(world.take_trace())
}
