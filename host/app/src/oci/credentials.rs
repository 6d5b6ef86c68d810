//! Who we are to a registry: what `docker login`, `oras login` and `podman login` leave in a file.
//! Helpers that keep credentials elsewhere are not run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_agent::model::Secret;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::PathBuf;

/// A name and a password for a registry.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The name.
    pub user: String,
    /// The password, or a token in its place.
    pub password: Secret,
}

/// The file with credentials, if there is one.
#[derive(Debug, Clone, Default)]
pub struct CredentialFile(Option<PathBuf>);

/// What a file has for a registry.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Here(Credential),
    /// By this helper.
    Elsewhere(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Format {
    #[serde(default)]
    auths: HashMap<String, Auth>,
    #[serde(default)]
    cred_helpers: HashMap<String, String>,
    #[serde(default)]
    creds_store: String,
}

#[derive(Deserialize)]
struct Auth {
    #[serde(default)]
    auth: String,
}

impl CredentialFile {
    /// This file, or none.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    /// `$REGISTRY_AUTH_FILE`, else `config.json` in `$DOCKER_CONFIG`, else `~/.docker/config.json`.
    pub fn of_user() -> Self {
        let named =
            |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = || named("DOCKER_CONFIG").or_else(|| Some(dirs::home_dir()?.join(".docker")));
        Self(named("REGISTRY_AUTH_FILE").or_else(|| Some(folder()?.join("config.json"))))
    }

    /// What it has for a registry. A file that is not there has nothing.
    pub(super) fn find(&self, host: &str) -> Result<Kept, String> {
        let Some(path) = &self.0 else { return Ok(Kept::Nothing) };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Kept::Nothing);
            }
            Err(problem) => {
                return Err(format!("read the credentials in {}: {problem}", path.display()));
            }
        };
        read(&text, host).map_err(|problem| {
            format!("the credentials for {host} in {} cannot be used: {problem}", path.display())
        })
    }
}

/// What a text has for a registry. What is wrong with it is told without being shown.
fn read(text: &str, host: &str) -> Result<Kept, &'static str> {
    let format: Format =
        serde_json::from_str(text).map_err(|_| "the file is not as docker has it")?;
    let is_its = |key: &str| {
        host_of(key) == host || (host == "docker.io" && key.contains("index.docker.io"))
    };
    let entry = format.auths.iter().find(|(key, _)| is_its(key)).map(|(_, entry)| entry);
    if let Some(auth) = entry.map(|entry| entry.auth.as_str()).filter(|auth| !auth.is_empty()) {
        let decoded = STANDARD.decode(auth).map_err(|_| "`auth` is not base64")?;
        let decoded = String::from_utf8(decoded).map_err(|_| "`auth` is no text")?;
        let (user, password) = decoded.split_once(':').ok_or("`auth` is no `name:password`")?;
        return Ok(Kept::Here(Credential { user: user.into(), password: Secret::new(password) }));
    }
    let helper = format.cred_helpers.into_iter().find(|(key, _)| is_its(key));
    Ok(match helper.map(|(_, helper)| helper) {
        Some(helper) => Kept::Elsewhere(helper),
        None if !format.creds_store.is_empty() => Kept::Elsewhere(format.creds_store),
        None => Kept::Nothing,
    })
}

/// Keys are hosts, and may be written as addresses.
fn host_of(key: &str) -> &str {
    let key = key.strip_prefix("https://").or(key.strip_prefix("http://")).unwrap_or(key);
    key.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_keeps_is_found_and_not_shown() {
        let auth = STANDARD.encode("me:s3:cret");
        let text = format!(
            r#"{{"auths": {{"ghcr.io": {{"auth": "{auth}"}}, "https://index.docker.io/v1/": {{"auth": "{auth}"}},
               "https://r.example.com/v2/": {{"auth": "{auth}"}}, "kept.example.com": {{}}}},
               "credHelpers": {{"ecr.example.com": "ecr-login"}}}}"#
        );
        for host in ["ghcr.io", "docker.io", "r.example.com"] {
            let Ok(Kept::Here(found)) = read(&text, host) else { panic!("{host}") };
            assert_eq!((&*found.user, found.password.expose()), ("me", "s3:cret"));
            assert!(!format!("{found:?}").contains("s3:cret"));
        }
        assert!(matches!(read(&text, "other.example.com"), Ok(Kept::Nothing)));
        assert!(
            matches!(read(&text, "ecr.example.com"), Ok(Kept::Elsewhere(name)) if name == "ecr-login")
        );
        let store = r#"{"credsStore": "desktop", "auths": {"a.io": {}}}"#;
        assert!(matches!(read(store, "a.io"), Ok(Kept::Elsewhere(name)) if name == "desktop"));
    }

    #[test]
    fn what_is_wrong_is_told_without_being_shown() {
        for text in [
            "s3cret",
            r#"{"auths": {"a.io": {"auth": "s3cret!"}}}"#,
            &format!(r#"{{"auths": {{"a.io": {{"auth": "{}"}}}}}}"#, STANDARD.encode("s3cret")),
        ] {
            let problem = read(text, "a.io").expect_err(text);
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }
}
