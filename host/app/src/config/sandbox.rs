//! `[sandbox]`: what all plugins share. What the file does not set stays as the embedder has it.

use super::keys::{keys, path, whole, word, words};
use crate::places;
use cofferdam_sandbox::{Allocation, SandboxConfig};
use serde::Deserialize;
use std::path::{Path, PathBuf};

keys! {
    /// `[sandbox]`: threads, slots and folders that all plugins share.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SandboxEntry {
        /// Calls that may run at the same time, all plugins together; more wait.
        pub slots: Option<u32> => whole(1, 10_000).or(SandboxConfig::default().slots),
        /// Threads that run plugins; 0 takes as many as there are processors.
        pub workers: Option<usize> => whole(0, 1_024).or(SandboxConfig::default().workers),
        /// MiB of linear memory of all calls together.
        pub memory_total_mib: Option<u64> =>
            whole(1, 1 << 30).or(SandboxConfig::default().memory_total_mib),
        /// KiB of stack for a plugin's own calls.
        pub stack_kib: Option<u64> => whole(64, 8_192).or(SandboxConfig::default().stack_kib),
        /// File operations that may run at the same time, all plugins together; more wait.
        pub file_operations: Option<u32> =>
            whole(1, 4_096).or(SandboxConfig::default().file_operations),
        /// Where memories come from.
        pub allocation: Option<AllocationEntry> =>
            word(AllocationEntry::WORDS).or(AllocationEntry::Auto),
        /// The folder of what plugins keep between calls.
        pub state_dir: Option<PathBuf> => path().or(STATE_DIR),
        /// The folder where the whole of a result goes that was cut.
        pub spill_dir: Option<PathBuf> =>
            path().or_else("nothing of it is kept").such_as("long-results"),
        /// MiB that may be written there in all.
        pub spill_total_mib: Option<u64> =>
            whole(1, 1_048_576).or(SandboxConfig::default().spill_total_mib),
        /// The folder of compiled code, private to this user. The variable `COFFERDAM_CACHE_DIR` names
        /// it too; set to nothing, that one keeps no code.
        pub cache_dir: Option<PathBuf> =>
            path().or_else("`cofferdam` in the user's cache folder").such_as("compiled"),
        /// MiB of compiled code that are kept; the longest unused goes when there is more.
        pub cache_mib: Option<u64> => whole(1, 1 << 30).or(places::CACHE_MIB),
    }
    beside {
        /// Whether `cache_dir` stands above the variable `COFFERDAM_CACHE_DIR`.
        #[serde(skip)]
        pub cache_dir_decided: bool,
    }
}

words! {
    /// Where memories come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub enum AllocationEntry {
        /// The fastest that the machine offers.
        Auto = "auto",
        /// Slots made ahead, reset by a scan of their pages.
        PooledScan = "pooled-scan",
        /// Slots made ahead, reset by rewriting.
        PooledRewrite = "pooled-rewrite",
        /// Mapped for each call.
        OnDemand = "on-demand",
    }
}

/// Where plugins keep values, beside the operator's file.
const STATE_DIR: &str = ".cofferdam/state";

/// One setting with the value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The key in `[sandbox]`.
    pub key: &'static str,
    /// The value in force.
    pub value: String,
    /// The value without configuration.
    pub default: String,
}

impl SandboxEntry {
    /// Settings of an embedder with those of the file over them.
    pub fn over(&self, mut config: SandboxConfig) -> SandboxConfig {
        fn set<T: Clone>(to: &mut T, from: &Option<T>) {
            if let Some(from) = from {
                *to = from.clone();
            }
        }
        set(&mut config.slots, &self.slots);
        set(&mut config.workers, &self.workers);
        set(&mut config.memory_total_mib, &self.memory_total_mib);
        set(&mut config.stack_kib, &self.stack_kib);
        set(&mut config.file_operations, &self.file_operations);
        set(&mut config.allocation, &self.allocation.map(Allocation::from));
        set(&mut config.spill_total_mib, &self.spill_total_mib);
        config.state_dir = self.state_dir.clone().or(config.state_dir);
        config.spill_dir = self.spill_dir.clone().or(config.spill_dir);
        let variable = match self.cache_dir_decided {
            true => None,
            false => std::env::var_os(places::CACHE_VARIABLE),
        };
        let dir = self.cache_dir.as_deref();
        config.cache = places::cache_over(variable, dir, self.cache_mib, config.cache);
        config
    }

    /// Every setting with its value in force, which is that of a sandbox made with [`Self::over`].
    pub fn rows_in(&self, in_force: &SandboxConfig) -> Vec<SettingRow> {
        let defaults = values(&SandboxConfig::default());
        let row = |((key, value), (_, default))| SettingRow { key, value, default };
        values(in_force).into_iter().zip(defaults).map(row).collect()
    }

    pub(super) fn relative_to(mut self, folder: &Path) -> Self {
        self.state_dir = Some(folder.join(self.state_dir.as_deref().unwrap_or(STATE_DIR.as_ref())));
        self.spill_dir = self.spill_dir.map(|dir| folder.join(dir));
        self.cache_dir = self.cache_dir.map(|dir| folder.join(dir));
        self
    }
}

/// The settings that an operator may make, as they are shown.
fn values(config: &SandboxConfig) -> [(&'static str, String); 11] {
    let folder = |path: &Option<PathBuf>, none: &str| {
        path.as_ref().map_or_else(|| none.to_owned(), |path| path.display().to_string())
    };
    let cache = config.cache.as_ref();
    [
        ("slots", config.slots.to_string()),
        ("workers", config.workers.to_string()),
        ("memory_total_mib", config.memory_total_mib.to_string()),
        ("stack_kib", config.stack_kib.to_string()),
        ("file_operations", config.file_operations.to_string()),
        ("allocation", config.allocation.to_string()),
        ("state_dir", folder(&config.state_dir, "none, values live in memory")),
        ("spill_dir", folder(&config.spill_dir, "none, nothing is kept")),
        ("spill_total_mib", config.spill_total_mib.to_string()),
        ("cache_dir", folder(&cache.map(|kept| kept.dir.clone()), "none, nothing is kept")),
        ("cache_mib", cache.map_or(places::CACHE_MIB, |kept| kept.size_mib).to_string()),
    ]
}

impl From<AllocationEntry> for Allocation {
    fn from(entry: AllocationEntry) -> Self {
        match entry {
            AllocationEntry::Auto => Self::Auto,
            AllocationEntry::PooledScan => Self::PooledScan,
            AllocationEntry::PooledRewrite => Self::PooledRewrite,
            AllocationEntry::OnDemand => Self::OnDemand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reaches_the_sandbox() {
        let entry: SandboxEntry = toml::from_str(
            r#"
            slots = 3
            workers = 2
            memory_total_mib = 77
            stack_kib = 128
            file_operations = 5
            allocation = "on-demand"
            state_dir = "s"
            spill_dir = "p"
            spill_total_mib = 9
            cache_dir = "c"
            cache_mib = 11
            "#,
        )
        .unwrap();
        let rows = entry.rows_in(&entry.over(SandboxConfig::default()));
        assert!(rows.iter().all(|row| row.value != row.default), "{rows:?}");
        let config = entry.over(SandboxConfig::default());
        assert_eq!((config.slots, config.workers, config.memory_total_mib), (3, 2, 77));
        assert_eq!((config.stack_kib, config.file_operations), (128, 5));
        assert_eq!((config.allocation, config.spill_total_mib), (Allocation::OnDemand, 9));
        assert_eq!(config.state_dir, Some("s".into()));
        assert_eq!(config.spill_dir, Some("p".into()));
        let kept = config.cache.unwrap();
        assert_eq!((kept.dir, kept.size_mib), ("c".into(), 11));
    }

    #[test]
    fn what_the_file_does_not_set_is_the_embedders() {
        let embedder = SandboxConfig { slots: 7, ..SandboxConfig::default() };
        assert_eq!(SandboxEntry::default().over(embedder).slots, 7);
        let beside = SandboxEntry::default().relative_to(Path::new("conf"));
        assert_eq!(beside.state_dir, Some("conf/.cofferdam/state".into()));
    }
}
