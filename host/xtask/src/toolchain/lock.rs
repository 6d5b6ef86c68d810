//! One set-up at a time in a checkout. The lock goes with the process, however it ends.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::say;

/// Waits until the lock is free and holds it until the file is dropped.
pub(super) fn take(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    if file.try_lock().is_err() {
        say("another xtask builds guests in this checkout: waiting for it");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
