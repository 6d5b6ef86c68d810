//! The terms of a plugin's calls: limits, grants, and the values that grants stand for, read once
//! when it is loaded.

use crate::blocking::Blocking;
use crate::engine::Sandbox;
use crate::error::LoadError;
use crate::grants::{Access, FileGrant, Grants};
use crate::inspect::sha256_hex;
use crate::limits::{Limits, kib, mib};
use crate::services::fs;
use crate::services::kv::KeyValue;
use crate::services::secret::Secret;
use crate::state::Terms;
use std::path::Path;
use std::sync::Arc;

/// The terms of a plugin's calls: limits, grants, and the values that grants stand for.
pub(super) fn terms(
    sandbox: &Sandbox,
    name: String,
    limits: Limits,
    grants: Grants,
) -> Result<Terms, LoadError> {
    grants
        .check()
        .map_err(|error| LoadError::Grant { grant: "env".into(), problem: error.to_string() })?;
    grants.files.iter().try_for_each(|grant| check_directory(grant, sandbox))?;
    let files = fs::open(&grants.files).map_err(|(grant, problem)| refused(grant, problem))?;
    let env =
        grants.env.iter().filter_map(|key| Some((key.clone(), std::env::var(key).ok()?))).collect();
    let secrets = grants
        .secrets
        .iter()
        .map(Secret::from_grant)
        .collect::<Result<_, _>>()
        .map_err(|problem| LoadError::Grant { grant: "secrets".into(), problem })?;
    let key_value = match grants.kv_kib {
        Some(quota) => Some(Arc::new(open_store(sandbox, &name, kib(quota))?)),
        None => None,
    };
    Ok(Terms {
        plugin: name.into(),
        log_sink: sandbox.config().log.clone(),
        files,
        blocking: Blocking::new(limits.file_operations, sandbox.file_operations().clone()),
        memory_total: sandbox.memory_total().clone(),
        memory_total_max: mib(sandbox.config().memory_total_mib),
        http_script: sandbox.config().http.clone(),
        key_value,
        env,
        secrets,
        limits,
        grants,
    })
}

/// Looks at a granted directory when the plugin is loaded, not in its first call. That of compiled
/// code is not granted for writing: it is run as it is.
fn check_directory(grant: &FileGrant, sandbox: &Sandbox) -> Result<(), LoadError> {
    let found =
        std::fs::metadata(&grant.host).map_err(|error| refused(grant, error.to_string()))?;
    if !found.is_dir() {
        return Err(refused(
            grant,
            "it is not a directory; grant the directory that holds it".into(),
        ));
    }
    match &sandbox.config().cache {
        Some(cache) if grant.access == Access::ReadWrite && overlap(&grant.host, &cache.dir) => {
            Err(refused(
                grant,
                format!(
                    "the host keeps compiled code in {}, and whoever may write there gets around every \
                     grant; grant a smaller directory, or read-only",
                    cache.dir.display()
                ),
            ))
        }
        _ => Ok(()),
    }
}

/// Whether one directory is in the other, as far as they are there.
fn overlap(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
        there.map(|(above, real)| real.join(path.strip_prefix(above).unwrap_or(Path::new(""))))
    };
    match (real(one), real(other)) {
        (Some(one), Some(other)) => one.starts_with(&other) || other.starts_with(&one),
        _ => false,
    }
}

fn refused(grant: &FileGrant, problem: String) -> LoadError {
    LoadError::Grant { grant: format!("files {}", grant.host.display()), problem }
}

fn open_store(sandbox: &Sandbox, name: &str, quota: usize) -> Result<KeyValue, LoadError> {
    // The name is the operator's, yet a digest of it is a file name everywhere.
    let path = sandbox
        .config()
        .state_dir
        .as_ref()
        .map(|dir| dir.join("kv").join(sha256_hex(name.as_bytes())));
    KeyValue::open(path, quota)
        .map_err(|error| LoadError::Grant { grant: "kv".into(), problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn folders_in_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).expect("a folder");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        for (one, other, expected) in [
            (&real, &link.join("a/b"), true),
            (&link.join("a"), &real, true),
            (&real, &folder.path().join("reality"), false),
            (&folder.path().to_path_buf(), &real, true),
            (&real.join("a"), &real.join("b"), false),
        ] {
            assert_eq!(overlap(one, other), expected, "{one:?} {other:?}");
        }
    }
}
