//! A configuration that works, and may not do what its operator means.

use super::plugins::Loaded;
use super::report::Row;
use crate::config::{Config, HookPoint, PluginEntry};
use crate::patterns::ToolPatterns;
use cofferdam_sandbox::Plugin;
use cofferdam_sandbox::grants::{Access, FileGrant};
use serde_json::Value;
use std::collections::HashMap;
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::time::Duration;

/// Everything that is worth a word; one row if nothing is.
pub(super) async fn rows(config: &Config, loaded: &Loaded<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    shadowed_tools(loaded, &mut rows);
    hooks(config, loaded, &mut rows);
    patterns(config, loaded, &mut rows);
    for (entry, plugin, tools) in loaded.plugins() {
        schemas(entry, plugin, tools, &mut rows);
        idle_grants(entry, plugin, &mut rows);
        reach(config, entry, &mut rows);
        hosts(entry, &mut rows).await;
    }
    if rows.is_empty() {
        rows.push(Row::ok("configuration", "nothing in it is odd"));
    }
    rows
}

/// One name, two plugins: the agent would not start.
fn shadowed_tools(loaded: &Loaded<'_>, rows: &mut Vec<Row>) {
    // Some providers ignore case, so names that differ in case only are one.
    let mut owners: HashMap<String, &str> = HashMap::new();
    for (entry, _, tools) in loaded.plugins() {
        for tool in tools {
            let name = &tool.declaration().name;
            if let Some(first) = owners.insert(name.to_ascii_lowercase(), &entry.name) {
                let text = format!(
                    "its tool {name} is also one of the plugin {first}: the agent does not start"
                );
                rows.push(Row::failed(&entry.name, text).with_advice(format!(
                    "in its [[plugins]] entry: prefix = \"{}_\", or name those to offer with `tools`",
                    entry.name
                )));
            }
        }
    }
}

/// A hook that its plugin does not have; and one that could carry out what it sees.
fn hooks(config: &Config, loaded: &Loaded<'_>, rows: &mut Vec<Row>) {
    for hook in &config.hooks {
        let Some((entry, plugin, _)) =
            loaded.plugins().find(|(entry, ..)| entry.name == hook.plugin)
        else {
            continue;
        };
        let roles = plugin.inspection().roles;
        for point in &hook.on {
            let (has, name) = match point {
                HookPoint::Before => (roles.before_tool_call, "before"),
                HookPoint::After => (roles.after_tool_call, "after"),
            };
            if !has {
                let text = format!("it has no hook {name} tool calls: the agent does not start");
                let advice = format!("remove \"{name}\" from `on` in [[hooks]]");
                rows.push(Row::failed(&entry.name, text).with_advice(advice));
            }
        }
        if !entry.grants.http.is_empty() {
            let sees = match hook.on.contains(&HookPoint::After) {
                true => "arguments and results",
                false => "arguments",
            };
            let rules: Vec<String> = entry.grants.http.iter().map(ToString::to_string).collect();
            let text = format!(
                "as a hook it sees {sees} of other plugins' calls, and it may send what it sees to {}",
                rules.join(", ")
            );
            rows.push(Row::warning(&entry.name, text).with_advice(
                "take away its `grants.http`, or narrow the `tools` of its [[hooks]] entry",
            ));
        }
    }
}

/// Patterns that no tool matches.
fn patterns(config: &Config, loaded: &Loaded<'_>, rows: &mut Vec<Row>) {
    let tools: Vec<&str> = loaded
        .plugins()
        .flat_map(|(_, _, tools)| tools.iter().map(|tool| tool.declaration().name.as_str()))
        .collect();
    // A plugin that is not loaded may have had the tool.
    if loaded.all.iter().any(|one| one.plugin.is_err()) {
        return;
    }
    let mut check = |subject: String, patterns: &ToolPatterns| {
        for pattern in patterns.without_match(&tools) {
            let text = format!("the pattern `{pattern}` matches no tool");
            let advice = match tools.is_empty() {
                true => "there are no tools".into(),
                false => format!("the tools are {}", tools.join(", ")),
            };
            rows.push(Row::warning(subject.clone(), text).with_advice(advice));
        }
    };
    check("[approval] ask".into(), &config.approval.ask);
    for hook in &config.hooks {
        check(format!("[[hooks]] {}", hook.plugin), &hook.tools);
    }
}

/// Tools that cannot be used, and those that take whatever they are given.
fn schemas(
    entry: &PluginEntry,
    plugin: &Plugin,
    tools: &[std::sync::Arc<dyn cofferdam_agent::tool::Tool>],
    rows: &mut Vec<Row>,
) {
    for refused in plugin.refused_tools() {
        let text = format!("its tool {} is not offered: {}", refused.name, refused.reason);
        rows.push(Row::warning(&entry.name, text));
    }
    for tool in tools {
        let declaration = tool.declaration();
        if accepts_anything(&declaration.parameters) {
            let text = format!(
                "the schema of its tool {} accepts any arguments: nothing is checked before it runs",
                declaration.name
            );
            rows.push(Row::warning(&entry.name, text).with_advice(
                "ask its author for `properties` with types, and `additionalProperties: false`",
            ));
        }
    }
}

/// Whether a schema of an object says nothing about what is in it.
fn accepts_anything(schema: &Value) -> bool {
    const SAYS_SOMETHING: [&str; 14] = [
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "properties",
        "patternProperties",
        "required",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "enum",
        "const",
    ];
    let Some(schema) = schema.as_object() else { return true };
    let silent = SAYS_SOMETHING.iter().all(|key| match schema.get(*key) {
        None => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    });
    let open =
        !matches!(schema.get("additionalProperties"), Some(Value::Bool(false) | Value::Object(_)));
    let unbounded = schema.get("maxProperties").is_none();
    silent && open && unbounded
}

/// Grants that the plugin cannot use, or that give nothing.
fn idle_grants(entry: &PluginEntry, plugin: &Plugin, rows: &mut Vec<Row>) {
    let grants = &entry.grants;
    let imports = &plugin.inspection().imports;
    let has = |interface: &str| imports.iter().any(|import| import.starts_with(interface));
    for (granted, key, interface) in [
        (!grants.files.is_empty(), "files", "wasi:filesystem/"),
        (!grants.http.is_empty(), "http", "wasi:http/"),
        (!grants.env.is_empty(), "env", "wasi:cli/environment"),
        (!grants.config.is_empty(), "config", "cofferdam:plugin/config"),
        (grants.kv_kib.is_some(), "kv", "cofferdam:plugin/key-value"),
    ] {
        if granted && !has(interface) {
            let text = format!("`grants.{key}` gives it nothing: it does not import {interface}…");
            rows.push(Row::note(&entry.name, text));
        }
    }
    for name in grants.env.iter().filter(|name| std::env::var_os(name).is_none()) {
        let text = format!("`grants.env` names {name}, which this process does not have");
        rows.push(Row::warning(&entry.name, text));
    }
    for secret in &grants.secrets {
        let covered = grants.http.iter().any(|rule| rule.covers_origin(&secret.origin));
        if !covered {
            let text = format!(
                "the secret {} is for {}, and no `grants.http` allows a request to there",
                secret.env, secret.origin
            );
            rows.push(Row::warning(&entry.name, text));
        }
    }
}

/// Directories in which a plugin could change what it is allowed itself.
fn reach(config: &Config, entry: &PluginEntry, rows: &mut Vec<Row>) {
    let writes = |grant: &&FileGrant| grant.access == Access::ReadWrite;
    for grant in entry.grants.files.iter().filter(writes) {
        let files = std::iter::once(&config.path).chain(config.plugins.iter().map(|one| &one.path));
        if let Some(file) = files.into_iter().find(|file| is_below(file, &grant.host)) {
            let text = format!(
                "it may write in {}, and so change {}: what it is allowed, or what runs in its place",
                grant.host.display(),
                file.display()
            );
            rows.push(Row::warning(&entry.name, text).with_advice(
                "grant it a directory without the configuration and the plugins, or read-only",
            ));
        }
    }
}

fn is_below(file: &Path, folder: &Path) -> bool {
    match (file.canonicalize(), folder.canonicalize()) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    }
}

/// Hosts that cannot be found: a note, because a machine may be offline.
async fn hosts(entry: &PluginEntry, rows: &mut Vec<Row>) {
    const PATIENCE: Duration = Duration::from_secs(3);
    for rule in &entry.grants.http {
        let Some((host, port)) = rule.plain_host() else { continue };
        let name = host.to_owned();
        let look = tokio::task::spawn_blocking(move || {
            (name.as_str(), port).to_socket_addrs().is_ok_and(|mut found| found.next().is_some())
        });
        if !matches!(tokio::time::timeout(PATIENCE, look).await, Ok(Ok(true))) {
            rows.push(Row::note(&entry.name, format!("the host {host} of `{rule}` was not found")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::accepts_anything;
    use serde_json::json;

    #[test]
    fn schemas_that_say_nothing() {
        for (schema, anything) in [
            (json!({"type": "object"}), true),
            (json!({"type": "object", "properties": {}}), true),
            (json!({"type": "object", "additionalProperties": true}), true),
            (json!({"type": "object", "description": "whatever"}), true),
            (json!({"type": "object", "properties": {}, "additionalProperties": false}), false),
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), false),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), false),
            (json!({"type": "object", "required": ["a"]}), false),
            (json!({"type": "object", "anyOf": [{"required": ["a"]}]}), false),
        ] {
            assert_eq!(accepts_anything(&schema), anything, "{schema}");
        }
    }
}
