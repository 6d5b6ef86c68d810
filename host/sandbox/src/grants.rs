//! What a plugin may reach beyond its own memory. Nothing by default: no files, no network, no
//! environment, no stored values.
//!
//! Grants are values and the checks on them are pure functions; the services ask them before they
//! do anything.

pub mod address;
mod compare;
pub mod http;
mod secret;

pub use http::HttpRule;
pub use secret::SecretGrant;

use crate::nearest::nearest;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that the operator allows one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Directories, as the plugin sees them.
    pub files: Vec<FileGrant>,
    /// Requests that the plugin may make.
    pub http: Vec<HttpRule>,
    /// Environment variables of the host that the plugin may read, by name.
    pub env: Vec<String>,
    /// Values for the plugin's `config` interface.
    pub config: BTreeMap<String, String>,
    /// The quota of the plugin's key-value store in KiB; none denies it.
    pub kv_kib: Option<u64>,
    /// Credentials that the host adds to matching requests; the plugin never sees them.
    pub secrets: Vec<SecretGrant>,
}

/// One directory of the host as a directory of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileGrant {
    /// The directory on the host.
    pub host: PathBuf,
    /// The path under which the plugin sees it; absolute.
    pub guest: String,
    /// What the plugin may do there.
    #[serde(default)]
    pub access: Access,
}

/// What may be done in a granted directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Look, list and read.
    #[default]
    ReadOnly,
    /// Create, change and delete as well.
    ReadWrite,
}

/// A grant that cannot be given as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// No grant has this name.
    #[error("unknown grant `{key}`; did you mean `{suggestion}`?")]
    Unknown {
        /// What was asked for.
        key: String,
        /// The nearest existing key.
        suggestion: &'static str,
    },
    /// The value is not one that this grant takes.
    #[error("grant `{key}` cannot be `{value}`: {problem}")]
    Value {
        /// The grant.
        key: String,
        /// What was asked for.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Not of the form `KEY=VALUE`.
    #[error("`{0}` is not of the form KEY=VALUE, such as files=./data:/data:read-only")]
    Form(String),
}

/// The quota of a key-value store that was granted without a number, in KiB.
pub const KV_KIB_DEFAULT: u64 = 1_024;
/// The largest quota of a key-value store, in KiB.
pub const KV_KIB_MAX: u64 = 1_048_576;

impl Grants {
    /// The names of all grants.
    pub const KEYS: &[&str] = &["files", "http", "env", "config", "kv", "secrets"];

    /// Adds one grant from `KEY=VALUE`, as the command line has it: `files=HOST:GUEST:read-only`,
    /// `http=GET https://api.example.com/`, `env=LANG`, `config.color=red`, `kv=on`,
    /// `secrets=ENV:HEADER:ORIGIN`.
    pub fn add_pair(&mut self, pair: &str) -> Result<(), GrantError> {
        let (key, value) = pair.split_once('=').ok_or_else(|| GrantError::Form(pair.into()))?;
        self.add(key.trim(), value.trim())
    }

    /// Adds one grant from text.
    pub fn add(&mut self, key: &str, value: &str) -> Result<(), GrantError> {
        let refuse =
            |problem: String| GrantError::Value { key: key.into(), value: value.into(), problem };
        match key {
            "files" => self.files.push(FileGrant::parse(value).map_err(refuse)?),
            "http" => self.http.push(HttpRule::parse(value).map_err(refuse)?),
            "env" => self.env.push(env_name(value).map_err(refuse)?),
            "kv" => self.kv_kib = quota(value).map_err(refuse)?,
            "secrets" => self.secrets.push(SecretGrant::parse(value).map_err(refuse)?),
            _ => match key.strip_prefix("config.") {
                Some(name) if !name.is_empty() => {
                    self.config.insert(name.into(), value.into());
                }
                _ if key == "config" => {
                    return Err(refuse("name the value, as in config.KEY=VALUE".into()));
                }
                _ => return Err(unknown(key)),
            },
        }
        Ok(())
    }

    /// Whether the grants agree with each other: a variable that holds a secret is not readable as
    /// well. `Err` says which line contradicts which.
    pub fn check(&self) -> Result<(), GrantError> {
        let secret = |name: &&String| self.secrets.iter().any(|secret| secret.env == **name);
        match self.env.iter().find(secret) {
            None => Ok(()),
            Some(name) => Err(GrantError::Value {
                key: "env".into(),
                value: name.clone(),
                problem: "it holds a secret of `secrets`, which the plugin must not read".into(),
            }),
        }
    }

    /// Makes relative directories relative to `base`, usually the folder of the configuration.
    #[must_use]
    pub fn relative_to(mut self, base: &Path) -> Self {
        for grant in &mut self.files {
            grant.host = base.join(&grant.host);
        }
        self
    }

    /// Reads one key of a configuration.
    fn read(&mut self, key: &str, value: Value) -> Result<(), GrantError> {
        let refuse =
            |problem: String| GrantError::Value { key: key.into(), value: "…".into(), problem };
        let wrong = |error: serde_json::Error| refuse(error.to_string());
        match key {
            "files" => {
                self.files = serde_json::from_value(value).map_err(wrong)?;
                self.files.iter().try_for_each(FileGrant::check).map_err(refuse)
            }
            "http" | "env" => {
                let entries: Vec<String> = serde_json::from_value(value).map_err(wrong)?;
                entries.iter().try_for_each(|entry| self.add(key, entry))
            }
            "config" => {
                let entries: BTreeMap<String, Value> =
                    serde_json::from_value(value).map_err(wrong)?;
                self.config = entries.into_iter().map(|(key, value)| (key, plain(value))).collect();
                Ok(())
            }
            "kv" => self.add(key, &plain(value)),
            "secrets" => {
                self.secrets = serde_json::from_value(value).map_err(wrong)?;
                self.secrets.iter().try_for_each(SecretGrant::check).map_err(refuse)
            }
            _ => Err(unknown(key)),
        }
    }
}

impl<'de> Deserialize<'de> for Grants {
    /// Reads the `grants` map of a plugin in a configuration.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut grants = Self::default();
        for (key, value) in BTreeMap::<String, Value>::deserialize(deserializer)? {
            grants.read(&key, value).map_err(D::Error::custom)?;
        }
        grants.check().map_err(D::Error::custom)?;
        Ok(grants)
    }
}

impl FileGrant {
    /// Reads `HOST:GUEST[:read-only|:read-write]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, access) = match text.rsplit_once(':') {
            Some((rest, "read-only")) => (rest, Access::ReadOnly),
            Some((rest, "read-write")) => (rest, Access::ReadWrite),
            _ => (text, Access::ReadOnly),
        };
        let (host, guest) = rest
            .rsplit_once(':')
            .filter(|(host, _)| !host.is_empty())
            .ok_or("it takes HOST:GUEST:read-only or HOST:GUEST:read-write")?;
        let grant = Self { host: host.into(), guest: guest.into(), access };
        grant.check()?;
        Ok(grant)
    }

    fn check(&self) -> Result<(), String> {
        if self.guest.starts_with('/') && !self.guest.split('/').any(|part| part == "..") {
            Ok(())
        } else {
            Err(format!("the plugin's path `{}` must be absolute and without `..`", self.guest))
        }
    }
}

/// The name of an environment variable that a plugin may get: no credential, because whatever a
/// plugin can read it can send on.
fn env_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err("it takes the name of an environment variable".into());
    }
    if is_credential(name) {
        return Err(
            "it looks like a credential, which a plugin must not hold; grant it with `secrets`, so \
             that the host adds it to the plugin's requests"
                .into(),
        );
    }
    Ok(name.into())
}

/// Whether a variable of this name is likely to hold a credential: by a word of it, or by what it
/// contains.
pub fn is_credential(name: &str) -> bool {
    const WORDS: [&str; 8] = ["KEY", "PAT", "PASS", "PASSWD", "JWT", "COOKIE", "DSN", "AUTH"];
    const PARTS: [&str; 9] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSPHRASE",
        "CREDENTIAL",
        "APIKEY",
        "PRIVATEKEY",
        "ACCESSKEY",
        "BEARER",
    ];
    let upper = name.to_ascii_uppercase();
    let joined = upper.replace(['_', '-', '.'], "");
    upper.split(['_', '-', '.']).any(|word| WORDS.contains(&word))
        || PARTS.iter().any(|part| joined.contains(part))
}

/// A key-value quota: a switch or a number of KiB.
fn quota(text: &str) -> Result<Option<u64>, String> {
    match text {
        "on" | "true" => Ok(Some(KV_KIB_DEFAULT)),
        "off" | "false" => Ok(None),
        _ => text
            .parse()
            .ok()
            .filter(|kib| (1..=KV_KIB_MAX).contains(kib))
            .map(Some)
            .ok_or_else(|| "it takes `on`, `off` or a quota in KiB".into()),
    }
}

/// A scalar of a configuration as the text that a plugin gets.
fn plain(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn unknown(key: &str) -> GrantError {
    GrantError::Unknown { key: key.into(), suggestion: nearest(key, Grants::KEYS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_the_command_line() {
        let mut grants = Grants::default();
        for pair in [
            "files=./data:/data:read-write",
            "http=GET https://api.example.com/v1/",
            "env=LANG",
            "config.allow=src/**",
            "kv=on",
        ] {
            grants.add_pair(pair).expect(pair);
        }
        assert_eq!(
            grants.files,
            [FileGrant { host: "./data".into(), guest: "/data".into(), access: Access::ReadWrite }]
        );
        assert_eq!(grants.kv_kib, Some(KV_KIB_DEFAULT));
        assert_eq!(grants.config["allow"], "src/**");
        assert_eq!(grants.env, ["LANG"]);
        for name in ["PATH", "HOME", "PWD", "KEYBOARD", "TZ", "XAUTHORITY", "NO_COLOR"] {
            grants.add("env", name).expect(name);
        }
    }

    #[test]
    fn refusals_name_the_key() {
        for (pair, part) in [
            ("file=./a:/a", "did you mean `files`"),
            ("files=/data", "HOST:GUEST:read-only"),
            ("files=./a:data", "must be absolute"),
            ("files=./a:/data/../x:read-only", "without `..`"),
            ("env=OPENAI_API_KEY", "looks like a credential"),
            ("env=GITHUB_PAT", "looks like a credential"),
            ("env=mytoken", "looks like a credential"),
            ("env=AWS_ACCESS_KEY_ID", "looks like a credential"),
            ("env=PRIVATE-KEY", "looks like a credential"),
            ("env=A=B", "the name of an environment variable"),
            ("http=CONNECT https://a.com", "CONNECT cannot be granted"),
            ("config=1", "config.KEY=VALUE"),
            ("kv=lots", "a quota in KiB"),
            ("http", "KEY=VALUE"),
        ] {
            let refusal = Grants::default().add_pair(pair).expect_err(pair).to_string();
            assert!(refusal.contains(part), "{pair}: {refusal}");
        }
    }

    #[test]
    fn maps_of_a_configuration() {
        let grants: Grants = serde_json::from_str(
            r#"{"files": [{"host": "w", "guest": "/w", "access": "read-write"}],
                "http": ["* https://*.example.com"], "config": {"n": 3, "s": "x"}, "kv": 64}"#,
        )
        .expect("good grants");
        assert_eq!((grants.files.len(), grants.http.len(), grants.kv_kib), (1, 1, Some(64)));
        assert_eq!(grants.config["n"], "3");
        assert_eq!(grants.relative_to(Path::new("/base")).files[0].host, Path::new("/base/w"));
        for (text, part) in [
            (r#"{"fils": []}"#, "did you mean `files`"),
            (
                r#"{"env": ["WHO"], "secrets": [{"env": "WHO", "header": "x", "for": "https://a.com"}]}"#,
                "holds a secret of `secrets`",
            ),
            (r#"{"files": [{"host": "w", "guest": "/w", "mode": 1}]}"#, "unknown field `mode`"),
        ] {
            let refusal = serde_json::from_str::<Grants>(text).expect_err(text).to_string();
            assert!(refusal.contains(part), "{refusal}");
        }
    }
}
