//! Threads, open files and memory of this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// The sandbox's threads by name. Those of the test harness come and go.
    pub threads: BTreeMap<String, usize>,
    /// Open files, with what they are.
    pub files: Vec<String>,
}

impl Census {
    pub fn take() -> Self {
        let mut threads = BTreeMap::new();
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            // A thread may end while it is looked at.
            let name = std::fs::read_to_string(task.unwrap().path().join("comm"));
            let name = name.unwrap_or_default().trim().to_owned();
            if name.starts_with("cofferdam") || name.starts_with("tokio") {
                *threads.entry(name).or_insert(0) += 1;
            }
        }
        let mut files: Vec<String> = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
            .map(|to| to.display().to_string())
            .filter(|to| !to.contains("/fd"))
            .collect();
        files.sort();
        Self { threads, files }
    }

    /// Waits until the process holds what it held before. Threads that wait for work go after a
    /// while, and a connection closes when its task gets to it.
    pub fn wait_until_as_before(&self, what: &str) {
        let started = Instant::now();
        loop {
            let now = Self::take();
            if now.is_within(self) {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{what} left something: {now:?}, before: {self:?}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_within(&self, other: &Self) -> bool {
        self.files.len() <= other.files.len()
            && self.threads.iter().all(|(name, n)| other.threads.get(name).is_some_and(|m| n <= m))
    }
}

/// Resident memory in KiB.
pub fn resident_kib() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4
}
