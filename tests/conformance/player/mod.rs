//! Plays a recorded scenario on the loop and writes its trace.
//!
//! The world (`world`) holds what all scripted parties share: gates, records, delays. Each party
//! obeys lists of steps (`steps`): the model, the listener, the hooks, the script itself. Tools and
//! hooks come as a [`Cast`], so that the same scenario can be played with native ones or with guests
//! behind the sandbox.

mod cast;
mod compare;
mod hooks;
mod listener;
mod model;
mod prepare;
mod print;
mod read;
mod script;
mod steps;
mod template;
mod tool;
mod world;

pub use compare::{difference, parse};
pub use world::Delays;

use serde_json::Value;
use std::time::Duration;

/// Who plays the tools and hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tools {
    /// Rust code in this process.
    #[default]
    Native,
    /// Guests behind the sandbox.
    Wasm,
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
    let cast = match tools {
        Tools::Native => cast::Cast::native(&world),
        Tools::Wasm => {
            let reason = "no guest obeys scenarios yet: only native tools and hooks are built in";
            return Err(Unplayed::Unplayable(reason.into()));
        }
    };
    let played = tokio::time::timeout(limit, script::run(&world, cast)).await;
    played.map_err(|_| Unplayed::TimedOut)?;
    Ok(world.take_trace())
}
