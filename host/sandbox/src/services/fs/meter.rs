//! What one call does with files, counted and bounded.

use crate::limits::Limits;
use crate::receipt::Tally;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one call does with files. Shared with its streams.
#[derive(Debug)]
pub(crate) struct FileMeter {
    calls: AtomicU64,
    bytes: AtomicU64,
    written: AtomicU64,
    write_max: u64,
    created: AtomicU64,
    create_max: u64,
    over: AtomicU64,
    too_many: AtomicU64,
    links: AtomicU64,
    leading_out: AtomicU64,
    odd: AtomicU64,
    /// What no grant allows, in words.
    ungranted: Mutex<Vec<String>>,
}

/// Refusals of one call that are told apart; a plugin may try a thousand paths.
const UNGRANTED_MAX: usize = 8;

/// What a plugin may not do with files, whatever it was granted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Forbidden {
    /// A hard link outlives the grant.
    HardLink,
    /// The plugin itself cannot follow a symbolic link out of its directory; others may.
    LinkOut,
    /// Opening a pipe or a device can block a thread for good.
    OddFile,
}

impl FileMeter {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            calls: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_max: limits.file_write_kib << 10,
            created: AtomicU64::new(0),
            create_max: limits.files_created,
            over: AtomicU64::new(0),
            too_many: AtomicU64::new(0),
            links: AtomicU64::new(0),
            leading_out: AtomicU64::new(0),
            odd: AtomicU64::new(0),
            ungranted: Mutex::default(),
        })
    }

    /// Operations and bytes, and what was refused.
    pub(crate) fn bill(&self) -> (Tally, Vec<String>) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Most calls are refused nothing, and then no text is made.
        let refusal = |counter, text: &dyn Fn() -> String| (count(counter) > 0).then(text);
        let refusals = [
            refusal(&self.over, &|| {
                format!(
                    "a call may write {} KiB to files (limit file_write_kib)",
                    self.write_max >> 10
                )
            }),
            refusal(&self.too_many, &|| {
                format!(
                    "a call may create {} files, directories and links (limit files_created)",
                    self.create_max
                )
            }),
            refusal(&self.links, &|| "a plugin may not create hard links".to_owned()),
            refusal(&self.leading_out, &|| {
                "a plugin may create symbolic links to what is beside or below them only".to_owned()
            }),
            refusal(&self.odd, &|| {
                "a plugin may open regular files and directories only".to_owned()
            }),
        ];
        let ungranted = std::mem::take(&mut *self.ungranted());
        let refusals = refusals.into_iter().flatten().chain(ungranted).collect();
        (Tally { calls: count(&self.calls), bytes: count(&self.bytes) }, refusals)
    }

    pub(super) fn forbid(&self, what: Forbidden) {
        let counter = match what {
            Forbidden::HardLink => &self.links,
            Forbidden::LinkOut => &self.leading_out,
            Forbidden::OddFile => &self.odd,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes what no grant allows.
    pub(super) fn refuse(&self, refusal: String) {
        let mut ungranted = self.ungranted();
        if ungranted.len() < UNGRANTED_MAX && !ungranted.contains(&refusal) {
            ungranted.push(refusal);
        }
    }

    fn ungranted(&self) -> MutexGuard<'_, Vec<String>> {
        self.ungranted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation.
    pub(super) fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts something before it is created. False if there are too many.
    pub(super) fn create(&self) -> bool {
        let fits = take(&self.created, 1, self.create_max);
        if !fits {
            self.too_many.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// How much may still be written.
    pub(super) fn room(&self) -> u64 {
        self.write_max.saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// Counts bytes before they are written. False if they are too many.
    pub(super) fn write(&self, bytes: u64) -> bool {
        let fits = take(&self.written, bytes, self.write_max);
        match fits {
            true => self.bytes.fetch_add(bytes, Ordering::Relaxed),
            false => self.over.fetch_add(1, Ordering::Relaxed),
        };
        fits
    }
}

/// Counts so much more, if it fits.
fn take(counter: &AtomicU64, more: u64, max: u64) -> bool {
    let sum = |before: u64| before.checked_add(more).filter(|sum| *sum <= max);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_bounded() {
        let meter = FileMeter::new(&Limits { file_write_kib: 1, ..Limits::default() });
        assert!(meter.write(1_000));
        assert!(!meter.write(25));
        assert_eq!(meter.room(), 24);
        assert!(meter.write(24));
        let (tally, refusals) = meter.bill();
        assert_eq!((tally.bytes, refusals.len()), (1_024, 1));
    }
}
