//! Where a host keeps things of its own, by the customs of the system.

use cofferdam_sandbox::CacheConfig;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// MiB of compiled code that are kept if nobody says otherwise.
pub const CACHE_MIB: u64 = 2_048;

/// The variable that names the folder of compiled code; set to nothing, no code is kept.
pub const CACHE_VARIABLE: &str = "COFFERDAM_CACHE_DIR";

/// The folder of compiled code: that of the variable, or `cofferdam` in the user's cache folder.
/// None if there is no such folder, or if the variable is set to nothing.
pub fn cache() -> Option<CacheConfig> {
    let dir = match std::env::var_os(CACHE_VARIABLE) {
        Some(dir) if dir.is_empty() => return None,
        Some(dir) => PathBuf::from(dir),
        None => dirs::cache_dir()?.join("cofferdam"),
    };
    Some(CacheConfig { dir, size_mib: CACHE_MIB })
}

/// What an operator's file says of compiled code, over what an embedder has. The variable, if it is
/// given, stands above both: it belongs to whoever starts the process.
pub(crate) fn cache_over(
    variable: Option<OsString>,
    dir: Option<&Path>,
    size_mib: Option<u64>,
    embedder: Option<CacheConfig>,
) -> Option<CacheConfig> {
    let size = |kept: u64| size_mib.unwrap_or(kept);
    match (variable, dir, embedder) {
        (Some(variable), _, _) if variable.is_empty() => None,
        (Some(variable), _, _) => {
            Some(CacheConfig { dir: variable.into(), size_mib: size(CACHE_MIB) })
        }
        (None, Some(dir), _) => Some(CacheConfig { dir: dir.into(), size_mib: size(CACHE_MIB) }),
        (None, None, Some(kept)) => Some(CacheConfig { size_mib: size(kept.size_mib), ..kept }),
        (None, None, None) => None,
    }
}

/// The folder of sessions where the operator has not chosen one: `sessions` in the state folder.
pub fn sessions() -> Option<PathBuf> {
    Some(state()?.join("sessions"))
}

/// The folder of notes on components that were allowed: `allowed` in the state folder.
pub fn allowed() -> Option<PathBuf> {
    Some(state()?.join("allowed"))
}

/// The file of what was typed at the terminal: `history.jsonl` in the state folder.
pub fn history() -> Option<PathBuf> {
    Some(state()?.join("history.jsonl"))
}

/// What a host keeps from run to run: `$COFFERDAM_STATE_DIR`, or `cofferdam` in the user's state
/// folder. None if there is no such folder.
fn state() -> Option<PathBuf> {
    match std::env::var_os("COFFERDAM_STATE_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => Some(PathBuf::from(dir)),
        // Not every system has a folder for state alone.
        None => Some(dirs::state_dir().or_else(dirs::data_local_dir)?.join("cofferdam")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_stands_above_the_file_and_the_file_above_the_embedder() {
        let kept = |dir: &str, size_mib| Some(CacheConfig { dir: dir.into(), size_mib });
        let file = Some(Path::new("file"));
        for (variable, dir, size, embedder, expected) in [
            (Some("var"), file, Some(5), kept("own", 7), kept("var", 5)),
            (Some(""), file, Some(5), kept("own", 7), None),
            (None, file, None, kept("own", 7), kept("file", CACHE_MIB)),
            (None, None, Some(5), kept("own", 7), kept("own", 5)),
            (None, None, None, kept("own", 7), kept("own", 7)),
            (None, None, Some(5), None, None),
        ] {
            assert_eq!(cache_over(variable.map(Into::into), dir, size, embedder), expected);
        }
    }
}
