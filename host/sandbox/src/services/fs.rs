//! Granted directories.
//!
//! Paths are resolved by the engine's WASI under a handle of the granted directory, one component
//! at a time, so that neither `..` nor a symbolic link leads out of it.

use crate::grants::{Access, FileGrant};
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};

/// Opens the granted directories for one call. What cannot be opened is missing, with a reason.
pub(crate) fn preopen(builder: &mut WasiCtxBuilder, grants: &[FileGrant]) -> Vec<String> {
    grants
        .iter()
        .filter_map(|grant| {
            let access = match grant.access {
                Access::ReadOnly => FsPerms::ReadOnly,
                Access::ReadWrite => FsPerms::ReadWrite,
            };
            let error = builder.preopened_dir(&grant.host, &grant.guest, access).err()?;
            Some(format!(
                "the granted directory {} could not be opened: {}",
                grant.guest,
                error.root_cause()
            ))
        })
        .collect()
}
