//! The terms of a plugin's calls: limits, grants, and the values that grants stand for, read once
//! when it is loaded.

use crate::blocking::Blocking;
use crate::engine::Sandbox;
use crate::error::LoadError;
use crate::grants::{Access, FileGrant, Grants};
use crate::inspect::sha256_hex;
use crate::limits::{Limits, kib};
use crate::services::kv::KeyValue;
use crate::services::secret::Secret;
use crate::state::Terms;
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
    grants.files.iter().try_for_each(check_directory)?;
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
        blocking: Blocking::new(limits.file_operations, sandbox.file_operations().clone()),
        http_script: sandbox.config().http.clone(),
        key_value,
        env,
        secrets,
        limits,
        grants,
    })
}

/// A granted directory that is not there is found when the plugin is loaded, not in its first call.
fn check_directory(grant: &FileGrant) -> Result<(), LoadError> {
    let refuse = |problem: String| LoadError::Grant {
        grant: format!("files {}", grant.host.display()),
        problem,
    };
    let found = std::fs::metadata(&grant.host).map_err(|error| refuse(error.to_string()))?;
    match (found.is_dir(), grant.access) {
        (true, Access::ReadOnly | Access::ReadWrite) => Ok(()),
        (false, _) => {
            Err(refuse("it is not a directory; grant the directory that holds it".into()))
        }
    }
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
