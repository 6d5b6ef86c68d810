//! `[[plugins]]`: one plugin and what it may touch.

use super::keys::{Key, Toml, keys, list, map, path, some_text, table, tables, text, whole, word};
use super::{is_plain_name, model};
use cofferdam_sandbox::grants::{FileGrant, KV_KIB_DEFAULT, KV_KIB_MAX, SecretGrant};
use cofferdam_sandbox::{Grants, LimitRow, Limits};
use serde::Deserialize;
use std::path::PathBuf;

keys! {
    /// `[[plugins]]`: one plugin and what it may touch.
    #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PluginEntry {
        /// The operator's name for it; unique.
        pub name: String => some_text().required().checked(plain_name).such_as("calc"),
        /// The component.
        pub path: PathBuf => path().required().such_as("plugins/calc.wasm"),
        /// The SHA-256 of the file in hex, which `cofferdam plugin allow` writes. Required unless
        /// unpinned plugins are allowed.
        pub sha256: Option<String> => some_text()
            .checked(digest)
            .or_else("not loaded, save with `--allow-unpinned`")
            .such_as("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        /// Where the component came from, if it was fetched: `plugin allow` writes it. Only for people.
        pub source: Option<String> => text().or_else("none").such_as("oci://registry.example.com/calc:1"),
        /// The tools to offer, by their own names.
        pub tools: Option<Vec<String>> => list(some_text()).or_else("all").such_as(["calc"]),
        /// Put before the name of each of its tools.
        #[serde(default)]
        pub prefix: String => text().checked(prefix).or("").such_as("math_"),
        /// What it may touch; nothing by default.
        #[serde(default)]
        pub grants: Grants => table(grants()).checked_together(grants_together),
        /// Its brakes, where they differ from the defaults.
        #[serde(default)]
        pub limits: Limits => table(limits()),
    }
}

/// The grants of a plugin.
fn grants() -> Vec<Key> {
    let files = vec![
        path().required().such_as("./data").named("host", "The directory on this machine."),
        some_text()
            .required()
            .checked(guest_path)
            .such_as("/data")
            .named("guest", "The path under which the plugin sees it; absolute."),
        word(&[
            ("read-only", "Look, list and read."),
            ("read-write", "Create, change and delete as well."),
        ])
        .or("read-only")
        .named("access", "What it may do there."),
    ];
    let secrets = vec![
        some_text()
            .required()
            .checked(model::variable)
            .such_as("API_TOKEN")
            .named("env", "The environment variable of the host that holds the secret."),
        some_text()
            .required()
            .checked(model::header)
            .such_as("Authorization")
            .named("header", "The header that carries it."),
        some_text()
            .checked(format)
            .or("{}")
            .such_as("Bearer {}")
            .named("format", "The header's value, with `{}` where the secret goes."),
        some_text().required().checked(secret_origin).such_as("https://api.example.com").named(
            "for",
            "The requests that get it: scheme, host and port; plain http on loopback only.",
        ),
    ];
    vec![
        tables(files)
            .or_else("none")
            .such_as(Toml("[{ host = \"./data\", guest = \"/data\", access = \"read-only\" }]"))
            .named("files", "Directories, as the plugin sees them."),
        list(text())
            .checked(|rule| Grants::default().add("http", rule).map_err(of_grant))
            .or_else("none")
            .such_as(["GET,HEAD https://api.example.com/v1/"])
            .named(
                "http",
                "Requests that it may make: methods or `*`, then scheme, host (`*.example.com` for its \
                 subdomains), port and the beginning of the path; `private` at the end allows addresses \
                 that are not on the public internet.",
            ),
        list(text())
            .checked(|name| Grants::default().add("env", name).map_err(of_grant))
            .or_else("none")
            .such_as(["LANG"])
            .named("env", "Environment variables of the host that it may read; none that holds a credential."),
        map(|_| Ok(()), super::keys::anything())
            .or_else("none")
            .such_as(Toml("{ allow = \"notes/**\" }"))
            .named("config", "Values for its `config` interface."),
        whole(1, KV_KIB_MAX)
            .or_words(&["on", "off"])
            .or("off")
            .such_as(KV_KIB_DEFAULT)
            .named("kv", "KiB of values that it may keep between calls; `on` is 1024."),
        tables(secrets)
            .or_else("none")
            .such_as(Toml(
                "[{ env = \"API_TOKEN\", header = \"Authorization\", format = \"Bearer {}\", for = \
                 \"https://api.example.com\" }]",
            ))
            .named(
                "secrets",
                "Credentials that the host adds to matching requests; the plugin never sees them.",
            ),
    ]
}

/// The limits of a plugin, from their own table.
fn limits() -> Vec<Key> {
    let key = |row: LimitRow| {
        let rule = match row.can_be_off {
            true => whole(row.least, row.most).or_words(&["off"]),
            false => whole(row.least, row.most),
        };
        let rule = match row.default.parse::<u64>() {
            Ok(number) => rule.or(number),
            Err(_) => rule.or(row.default.as_str()),
        };
        rule.named(row.key, row.doc)
    };
    Limits::default().rows().into_iter().map(key).collect()
}

/// Grants that contradict each other.
fn grants_together(grants: &toml::Value) -> Result<(), String> {
    let grants = Grants::deserialize(grants.clone());
    grants.map(drop).map_err(|problem| problem.message().trim().to_owned())
}

fn plain_name(name: &str) -> Result<(), String> {
    match is_plain_name(name) {
        true => Ok(()),
        false => Err("1 to 64 letters, digits, `_`, `-` or `.`".into()),
    }
}

fn digest(text: &str) -> Result<(), String> {
    match text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(()),
        false => Err("the 64 hexadecimal digits that `cofferdam plugin inspect` prints".into()),
    }
}

fn prefix(text: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins = text.chars().next().is_none_or(|c| c.is_ascii_alphabetic() || c == '_');
    match begins && text.len() < 63 && text.chars().all(letter) {
        true => Ok(()),
        false => Err("letters, digits, `_` and `-`, with a letter or `_` first".into()),
    }
}

fn guest_path(text: &str) -> Result<(), String> {
    FileGrant::parse(&format!("here:{text}:read-only"))
        .map(drop)
        .map_err(|_| "an absolute path without `..`".into())
}

fn secret_origin(text: &str) -> Result<(), String> {
    SecretGrant::parse(&format!("NAME:header:{text}")).map(drop).map_err(|problem| {
        format!("`https://HOST` or `https://HOST:PORT`, or http on loopback ({problem})")
    })
}

fn format(text: &str) -> Result<(), String> {
    match text.contains("{}") {
        true => Ok(()),
        false => Err("a text with `{}` where the secret goes".into()),
    }
}

fn of_grant(problem: cofferdam_sandbox::GrantError) -> String {
    match problem {
        cofferdam_sandbox::GrantError::Value { problem, .. } => {
            problem.strip_prefix("it takes ").unwrap_or(&problem).to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Grants, grants};

    #[test]
    fn every_kind_of_grant_is_described() {
        let described: Vec<&str> = grants().iter().map(|key| key.name).collect();
        assert_eq!(described, Grants::KEYS);
    }
}
