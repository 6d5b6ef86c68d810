//! One set-up at a time in a checkout. The lock goes with the process, however it ends.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::say;

/// Waits until the lock of a directory is free and holds it until the file is dropped.
pub(crate) fn take(directory: &Path) -> Result<File> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create {}", directory.display()))?;
    let path = directory.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    if file.try_lock().is_err() {
        say("another xtask builds guests in this checkout: waiting for it");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
