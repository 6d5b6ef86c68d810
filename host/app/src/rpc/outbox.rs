//! What goes out, for a reader that may be slow. Putting something in never waits: text that streams
//! and reports of progress are joined while they wait, and events beyond a bound are left out, with
//! a line that says so; the reader gets what it missed by asking for the messages. Answers and
//! questions are never left out: the session reads no more requests while too much waits.

use super::event::Update;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes that wait, above which events are left out.
pub(super) const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that wait, above which no request is read.
pub(super) const BYTES_MAX: usize = 2 * EVENT_BYTES_MAX;
/// What a line costs beside its text.
const LINE_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// There is a line, or there will be none.
    filled: Notify,
    /// There is less than there was.
    emptied: Notify,
    over: Notify,
    gone: Notify,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    /// Nothing more comes.
    ended: bool,
    /// Nobody reads any more.
    given_up: bool,
}

enum Item {
    Line(String),
    Update(Update),
    /// So many events were left out here.
    Missed(u64),
}

impl Outbox {
    /// A line that must not be lost.
    pub(super) fn line(&self, line: String) {
        self.put(|queue| queue.push(Item::Line(line)));
    }

    /// An event that a reader who lags behind does without.
    pub(super) fn event(&self, line: String) {
        self.put(|queue| queue.push_event(Item::Line(line)));
    }

    /// A part of what grows; joined to what waits of it.
    pub(super) fn update(&self, update: Update) {
        self.put(|queue| {
            if let Some(update) = queue.join(update) {
                queue.push_event(Item::Update(update));
            }
        });
    }

    fn put(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.lock();
        if queue.given_up {
            return;
        }
        change(&mut queue);
        drop(queue);
        self.filled.notify_one();
    }

    /// The next line; none after the last. For one writer only.
    pub(super) async fn next(&self) -> Option<String> {
        loop {
            {
                let mut queue = self.lock();
                if let Some(item) = queue.items.pop_front() {
                    queue.bytes -= item.bytes();
                    drop(queue);
                    self.emptied.notify_one();
                    return Some(item.into_line());
                }
                if queue.ended || queue.given_up {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until requests may be read.
    pub(super) async fn room(&self) {
        while self.lock().bytes > BYTES_MAX {
            self.emptied.notified().await;
        }
    }

    /// Nothing more will be put in.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_one();
        self.over.notify_one();
    }

    /// Waits for [`Outbox::end`].
    pub(super) async fn ended(&self) {
        while !self.lock().ended {
            self.over.notified().await;
        }
    }

    /// Nobody reads any more.
    pub(super) fn give_up(&self) {
        let mut queue = self.lock();
        queue.items.clear();
        queue.bytes = 0;
        queue.given_up = true;
        drop(queue);
        self.emptied.notify_one();
        self.gone.notify_one();
    }

    /// Waits until nobody reads any more.
    pub(super) async fn gone(&self) {
        while !self.lock().given_up {
            self.gone.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn push(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    fn push_event(&mut self, item: Item) {
        if self.bytes <= EVENT_BYTES_MAX {
            return self.push(item);
        }
        match self.items.back_mut() {
            Some(Item::Missed(events)) => *events += 1,
            _ => self.push(Item::Missed(1)),
        }
    }

    /// Joins an update to one that waits, or gives it back. More text goes to the end of what was
    /// said last; a report takes the place of the one before it.
    fn join(&mut self, update: Update) -> Option<Update> {
        let over = self.bytes > EVENT_BYTES_MAX;
        let waits = match &update {
            Update::Text { .. } if over => None,
            Update::Text { .. } => self.items.back_mut(),
            Update::Report { .. } => self.items.iter_mut().rev().find(|item| match item {
                Item::Update(waits) => waits.is_same(&update),
                _ => false,
            }),
        };
        match waits {
            Some(Item::Update(waits)) if waits.is_same(&update) => {
                let before = waits.bytes();
                waits.join(update);
                self.bytes = self.bytes + waits.bytes() - before;
                None
            }
            _ => Some(update),
        }
    }
}

impl Item {
    fn bytes(&self) -> usize {
        LINE_BYTES
            + match self {
                Self::Line(line) => line.len(),
                Self::Update(update) => update.bytes(),
                Self::Missed(_) => 0,
            }
    }

    fn into_line(self) -> String {
        match self {
            Self::Line(line) => line,
            Self::Update(update) => update.into_line(),
            Self::Missed(events) => json!({"type": "missed", "events": events}).to_string(),
        }
    }
}
