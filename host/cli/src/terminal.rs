//! The terminal of `cofferdam run`: somebody sits here, sees what the agent does and talks to it.
//!
//! [`screen`] is what is shown and what keys mean, as a pure state; [`pane`] brings its rows to the
//! terminal; [`desk`] is the loop that joins the two with the agent: events, keys, questions, ticks.

mod answer;
mod call;
mod desk;
mod history;
mod input;
mod pane;
mod raw;
mod screen;
mod theme;

pub(crate) use history::History;

use crate::exit::Exit;
use cofferdam_agent::Agent;
use cofferdam_app::approve::Questions;
use cofferdam_app::reload::Reload;
use desk::Desk;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;

/// What happens first.
pub(crate) enum First {
    /// A run with this prompt.
    Prompt(String),
    /// A run from where the transcript stops, if there is anything to go on with.
    GoOn,
}

/// Whether there is a terminal at both ends, and one that can move its cursor.
pub(crate) fn is_possible() -> bool {
    let dumb = match std::env::var_os("TERM") {
        Some(term) => term == "dumb" || term.is_empty(),
        None => cfg!(unix),
    };
    io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

/// Sits at the terminal until the person leaves. The exit code is that of the last run.
pub(crate) async fn run(
    agent: Agent,
    reload: Arc<Reload>,
    questions: Questions,
    history: History,
    first: Option<First>,
) -> anyhow::Result<Exit> {
    let mut desk = Desk::new(agent, reload, questions, history)?;
    let left = desk.sit(first).await;
    let cleared = desk.clear();
    drop(desk);
    let exit = left?;
    cleared?;
    Ok(exit)
}
