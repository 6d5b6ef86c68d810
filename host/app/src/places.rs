//! Where a host keeps things of its own, by the customs of the system.

use cofferdam_sandbox::CacheConfig;
use std::path::PathBuf;

/// MiB of compiled code that are kept; the longest unused goes when there is more.
pub const CACHE_MIB: u64 = 2_048;

/// The folder of compiled code: `$COFFERDAM_CACHE_DIR`, or `cofferdam` in the user's cache folder.
/// None if there is no such folder, or if the variable is set to nothing.
pub fn cache() -> Option<CacheConfig> {
    let dir = match std::env::var_os("COFFERDAM_CACHE_DIR") {
        Some(dir) if dir.is_empty() => return None,
        Some(dir) => PathBuf::from(dir),
        None => dirs::cache_dir()?.join("cofferdam"),
    };
    Some(CacheConfig { dir, size_mib: CACHE_MIB })
}

/// The folder of sessions where the operator has not chosen one: `sessions` in
/// `$COFFERDAM_STATE_DIR`, or in `cofferdam` in the user's state folder. None if there is no such
/// folder.
pub fn sessions() -> Option<PathBuf> {
    let state = match std::env::var_os("COFFERDAM_STATE_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        // Not every system has a folder for state alone.
        None => dirs::state_dir().or_else(dirs::data_local_dir)?.join("cofferdam"),
    };
    Some(state.join("sessions"))
}
