//! Messages that wait for their turn: first in, first out, polled at the boundaries of turns (seed:
//! "Two queues, two loops").

use crate::message::Message;
use std::collections::VecDeque;

/// How many messages one poll takes. Read at each poll, so a change holds from the next one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueMode {
    /// The oldest one.
    #[default]
    OneAtATime,
    /// All that wait.
    All,
}

/// The two queues of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// For a running agent: delivered between turns, before the next request. Never skips a call.
    Steering,
    /// For after the work: delivered when the run would end, and revives it.
    FollowUp,
}

/// One queue.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    messages: VecDeque<Message>,
    pub(crate) mode: QueueMode,
}

/// Both queues.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    pub(crate) steering: Queue,
    pub(crate) follow_up: Queue,
}

impl Queue {
    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push_back(message);
    }

    /// What a poll would take now.
    pub(crate) fn peek(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().take(self.batch())
    }

    /// Takes what is due.
    pub(crate) fn poll(&mut self) -> Vec<Message> {
        self.messages.drain(..self.batch()).collect()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn batch(&self) -> usize {
        match self.mode {
            QueueMode::OneAtATime => self.messages.len().min(1),
            QueueMode::All => self.messages.len(),
        }
    }
}

impl Queues {
    pub(crate) fn of(&mut self, kind: QueueKind) -> &mut Queue {
        match kind {
            QueueKind::Steering => &mut self.steering,
            QueueKind::FollowUp => &mut self.follow_up,
        }
    }

    /// Steering goes before follow-ups.
    pub(crate) fn next(&self) -> Vec<Message> {
        let queue = if self.steering.is_empty() { &self.follow_up } else { &self.steering };
        queue.peek().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.steering.clear();
        self.follow_up.clear();
    }
}
