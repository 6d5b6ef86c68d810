//! The right to run: one at a time. Whatever becomes of a run, finished, failed, dropped in the
//! middle or unwound by a panic, giving the claim back leaves the agent idle and its transcript
//! valid.

use super::Inner;
use crate::AbortSignal;
use crate::error::AgentError;
use std::sync::Arc;

pub(crate) struct Claim {
    pub(crate) agent: Arc<Inner>,
    pub(crate) abort: AbortSignal,
}

impl Claim {
    /// Claims an idle agent, with a fresh signal: an abort of the run before says nothing about
    /// this one.
    pub(crate) fn new(agent: &Arc<Inner>) -> Result<Self, AgentError> {
        let abort = AbortSignal::new();
        agent.when_idle(|state| {
            state.active = Some(abort.clone());
        })?;
        agent.set_running(true);
        Ok(Self { agent: agent.clone(), abort })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.agent.state();
        state.settle();
        state.active = None;
        drop(state);
        self.agent.set_running(false);
    }
}
