//! What goes out, for a reader that may be slow. Putting something in never waits, and what one call
//! reports never costs the reader the end of another:
//!
//! - Text that streams and reports of progress are joined while they wait. Beyond a bound they are
//!   left out, with a line that says how many.
//! - Every other event comes out. Beyond the bound it comes in short: the long fields are empty, and
//!   it says which; the reader gets them by asking for the messages.
//! - Answers, questions and ends of runs come out whole. The session reads no more requests while too
//!   many of them wait.

use super::event::{EventLine, Update};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Bytes of events that wait, above which updates are left out and other events come in short; and
/// bytes of answers that wait, above which no request is read.
pub(super) const WAITING_MAX: usize = 8 * 1024 * 1024;
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
    waiting: Waiting,
    /// Nothing more comes.
    ended: bool,
    /// Nobody reads any more.
    given_up: bool,
}

/// Bytes that wait.
#[derive(Default)]
struct Waiting {
    answers: usize,
    events: usize,
    updates: usize,
}

enum Item {
    /// An answer, a question or the end of a run.
    Answer(String),
    Event(String),
    Update(Update),
    /// So many updates were left out here.
    Missed(u64),
}

impl Outbox {
    /// A line that comes out whole.
    pub(super) fn line(&self, line: String) {
        self.put(|queue| queue.push(Item::Answer(line)));
    }

    /// An event that comes out, whole or in short.
    pub(super) fn event(&self, event: EventLine) {
        self.put(|queue| {
            if queue.is_over() {
                queue.shed();
            }
            let line = if queue.is_over() { event.in_short() } else { event.whole() };
            queue.push(Item::Event(line));
        });
    }

    /// A part of what grows, which a reader who lags behind does without; joined to what waits of it.
    pub(super) fn update(&self, update: Update) {
        self.put(|queue| {
            if let Some(update) = queue.join(update) {
                queue.push_update(update);
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
                    *queue.waiting.of(&item) -= item.bytes();
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
        while self.lock().waiting.answers > WAITING_MAX {
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
        queue.waiting = Waiting::default();
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
        *self.waiting.of(&item) += item.bytes();
        self.items.push_back(item);
    }

    fn is_over(&self) -> bool {
        self.waiting.events + self.waiting.updates > WAITING_MAX
    }

    fn push_update(&mut self, update: Update) {
        if !self.is_over() {
            return self.push(Item::Update(update));
        }
        match self.items.back_mut() {
            Some(Item::Missed(events)) => *events += 1,
            _ => self.push(Item::Missed(1)),
        }
    }

    /// Leaves out the updates that wait, to make room for what must come out.
    fn shed(&mut self) {
        if self.waiting.updates == 0 {
            return;
        }
        for item in std::mem::take(&mut self.items) {
            let item = match item {
                Item::Update(update) => {
                    self.waiting.updates -= Item::Update(update).bytes();
                    self.waiting.events += LINE_BYTES;
                    Item::Missed(1)
                }
                item => item,
            };
            match (self.items.back_mut(), item) {
                (Some(Item::Missed(events)), Item::Missed(more)) => {
                    *events += more;
                    self.waiting.events -= LINE_BYTES;
                }
                (_, item) => self.items.push_back(item),
            }
        }
    }

    /// Joins an update to one that waits, or gives it back. More text goes to the end of what was
    /// said last; a report takes the place of the one before it.
    fn join(&mut self, update: Update) -> Option<Update> {
        let over = self.is_over();
        let waits = match &update {
            _ if self.waiting.updates == 0 => None,
            Update::Text { .. } if over => None,
            Update::Text { .. } => self.items.back_mut(),
            Update::Step { .. } => None,
            Update::Report { .. } => self.items.iter_mut().rev().find(|item| match item {
                Item::Update(waits) => waits.is_same(&update),
                _ => false,
            }),
        };
        match waits {
            Some(Item::Update(waits)) if waits.is_same(&update) => {
                let before = waits.bytes();
                waits.join(update);
                self.waiting.updates = self.waiting.updates + waits.bytes() - before;
                None
            }
            _ => Some(update),
        }
    }
}

impl Waiting {
    /// Where an item counts.
    fn of(&mut self, item: &Item) -> &mut usize {
        match item {
            Item::Answer(_) => &mut self.answers,
            Item::Event(_) | Item::Missed(_) => &mut self.events,
            Item::Update(_) => &mut self.updates,
        }
    }
}

impl Item {
    fn bytes(&self) -> usize {
        LINE_BYTES
            + match self {
                Self::Answer(line) | Self::Event(line) => line.len(),
                Self::Update(update) => update.bytes(),
                Self::Missed(_) => 0,
            }
    }

    fn into_line(self) -> String {
        match self {
            Self::Answer(line) | Self::Event(line) => line,
            Self::Update(update) => update.into_line(),
            Self::Missed(events) => json!({"type": "missed", "events": events}).to_string(),
        }
    }
}
