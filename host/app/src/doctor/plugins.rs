//! The plugins of a configuration: each loaded for itself, so that one that is refused hides no
//! other, and what is wrong with it explained.

use super::report::Row;
use crate::config::{Config, PluginEntry};
use crate::registry::Pinning;
use cofferdam_agent::tool::Tool;
use cofferdam_sandbox::{
    CONTRACT, CONTRACT_VERSION, Code, LoadError, Plugin, PluginSource, Sandbox, inspect,
    read_component, sha256_hex,
};
use std::sync::Arc;

/// All plugins of a configuration, loaded or refused.
pub(super) struct Loaded<'a> {
    pub(super) all: Vec<One<'a>>,
}

/// A plugin with the tools that its entry offers.
pub(super) type Offered = (Plugin, Vec<Arc<dyn Tool>>);

/// One plugin of a configuration.
pub(super) struct One<'a> {
    pub(super) entry: &'a PluginEntry,
    /// The plugin; or the row that says why it is refused.
    pub(super) plugin: Result<Offered, Box<Row>>,
    /// The line that would pin it, if it is not pinned.
    unpinned: Option<String>,
}

impl<'a> Loaded<'a> {
    pub(super) async fn all(sandbox: &Sandbox, config: &'a Config, pinning: Pinning) -> Self {
        let mut all = Vec::new();
        for entry in &config.plugins {
            let mut one = One::load(sandbox, entry, pinning).await;
            if let Err(row) = &mut one.plugin
                && let Some(advice) = &mut row.advice
            {
                // Where to look for the entry.
                advice.push_str(&format!(" ({})", config.place_of(&entry.name, "name")));
            }
            all.push(one);
        }
        Self { all }
    }

    /// Those that are loaded.
    pub(super) fn plugins(
        &self,
    ) -> impl Iterator<Item = (&'a PluginEntry, &Plugin, &[Arc<dyn Tool>])> {
        self.all.iter().filter_map(|one| {
            let (plugin, tools) = one.plugin.as_ref().ok()?;
            Some((one.entry, plugin, tools.as_slice()))
        })
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        if self.all.is_empty() {
            return vec![Row::note("plugins", "the configuration has none")];
        }
        self.all.iter().flat_map(One::rows).collect()
    }
}

impl<'a> One<'a> {
    async fn load(sandbox: &Sandbox, entry: &'a PluginEntry, pinning: Pinning) -> Self {
        let file = match entry.sha256 {
            Some(_) => None,
            None => read_component(&entry.path).ok(),
        };
        let unpinned = file.as_ref().map(|file| format!("sha256 = \"{}\"", sha256_hex(file)));
        if let (Some(line), Some(file), Pinning::Required) = (&unpinned, &file, pinning) {
            // Looking at it runs nothing.
            let row = match inspect(file) {
                Err(problem) => Row::failed(&entry.name, problem.to_string()),
                Ok(_) => Row::failed(&entry.name, "it is not pinned, and so not loaded")
                    .with_advice(format!("add to its [[plugins]] entry: {line}")),
            };
            return Self { entry, plugin: Err(row.into()), unpinned: None };
        }
        let source = PluginSource {
            name: entry.name.clone(),
            code: Code::Path(entry.path.clone()),
            sha256: entry.sha256.clone(),
            accept_text: false,
        };
        let plugin = Plugin::load(sandbox, source, entry.limits.clone(), entry.grants.clone());
        let plugin = match plugin.await {
            Ok(plugin) => plugin
                .tools(Some(&entry.prefix), entry.tools.as_deref())
                .map(|tools| (plugin.clone(), tools))
                .map_err(|problem| {
                    Row::failed(&entry.name, problem.to_string())
                        .with_advice("correct `tools` or `prefix` in its [[plugins]] entry")
                        .into()
                }),
            Err(problem) => Err(refused(entry, &problem).into()),
        };
        Self { entry, plugin, unpinned }
    }

    fn rows(&self) -> Vec<Row> {
        let (plugin, tools) = match &self.plugin {
            Ok(loaded) => loaded,
            Err(row) => return vec![(**row).clone()],
        };
        let name = &self.entry.name;
        let mut rows = vec![Row::ok(name, summary(plugin, tools))];
        rows.push(Row::ok(name, format!("limits: {}", limits(plugin))));
        if let Some(line) = &self.unpinned {
            rows.push(
                Row::warning(
                    name,
                    "it is loaded though it is not pinned: any file in its place is",
                )
                .with_advice(format!("add to its [[plugins]] entry: {line}")),
            );
        }
        rows.extend(drift(plugin).map(|text| {
            Row::warning(name, text).with_advice(
                "what it does there is left out; build it against the contract that `cofferdam plugin wit` \
                 writes, or use a host of that version",
            )
        }));
        let wants = plugin.inspection().wants.iter().flatten();
        rows.extend(wants.filter(|want| !self.entry.grants.satisfy(want)).map(|want| {
            let need = if want.optional { ", and works without" } else { "" };
            let text =
                format!("it asks for {}{need}, and does not get it: {}", want.pair(), want.reason);
            Row::note(name, text).with_advice(format!(
                "to grant it: cofferdam plugin allow {} --grant '{}'",
                self.entry.path.display(),
                want.pair()
            ))
        }));
        rows
    }
}

/// Parts of the contract that the plugin fills and this host does not know: of a later version, or of
/// another name.
fn drift(plugin: &Plugin) -> impl Iterator<Item = String> {
    let inspection = plugin.inspection();
    let roles = inspection.roles;
    let ours = inspection.exports.iter().filter(|export| export.starts_with(CONTRACT));
    let served = move |export: &&String| {
        let version = export.rsplit('@').next().unwrap_or_default();
        let interface = export.split(['/', '@']).nth(1).unwrap_or_default();
        let has = match interface {
            "tools" => roles.tools,
            "argument-preparation" => roles.argument_preparation,
            "before-tool-call" => roles.before_tool_call,
            "after-tool-call" => roles.after_tool_call,
            // Types that come along.
            "types" => true,
            _ => false,
        };
        has && version.rsplit_once('.').map(|(track, _)| track)
            == CONTRACT_VERSION.rsplit_once('.').map(|(track, _)| track)
    };
    ours.filter(move |export| !served(export)).map(|export| {
        format!("it exports {export}, which this host does not serve: it serves {CONTRACT}@{CONTRACT_VERSION}")
    })
}

fn summary(plugin: &Plugin, tools: &[Arc<dyn Tool>]) -> String {
    let inspection = plugin.inspection();
    let roles = [
        (inspection.roles.before_tool_call, "a hook before calls"),
        (inspection.roles.after_tool_call, "a hook after calls"),
    ];
    let names: Vec<&str> = tools.iter().map(|tool| tool.declaration().name.as_str()).collect();
    let mut parts = Vec::new();
    if !names.is_empty() {
        parts.push(format!("tools {}", names.join(", ")));
    }
    parts.extend(roles.iter().filter(|(has, _)| *has).map(|(_, role)| (*role).to_owned()));
    let time = plugin.compile_time().map_or_else(
        || "its code was at hand".into(),
        |time| format!("compiled in {} ms", time.as_millis()),
    );
    let contract = match inspection.contract_version.as_str() {
        // It was built for no host in particular.
        "" => "no contract, its functions are its tools".to_owned(),
        version => format!("contract {version}"),
    };
    format!(
        "{contract}; {}; {time}",
        if parts.is_empty() { "nothing that is offered".into() } else { parts.join(", ") }
    )
}

/// The limits that differ from the defaults; all of them are in the table of limits.
fn limits(plugin: &Plugin) -> String {
    let rows = plugin.limits().rows();
    let own = rows.iter().filter(|row| row.value != row.default);
    let own: Vec<String> =
        own.map(|row| format!("{} = {} (default {})", row.key, row.value, row.default)).collect();
    if own.is_empty() { "all at their defaults".into() } else { own.join(", ") }
}

/// How the sandbox says that a plugin is of another shape than its contract.
const BROKEN: &str = "broke its contract";
const DRIFT: &str = "an interface of the contract is missing a function or has another shape: `cofferdam plugin wit \
    DIR` writes the contract of this host; build the plugin anew against it, with cargo build --target wasm32-wasip2 \
    or with current tools of its language";

/// Why a plugin is refused, and what to do.
fn refused(entry: &PluginEntry, problem: &LoadError) -> Row {
    let row = Row::failed(&entry.name, problem.to_string());
    let advice = match problem {
        LoadError::Read { .. } => {
            "correct its `path`, which is relative to the configuration".into()
        }
        LoadError::Digest { found, .. } => format!(
            "if the change is meant, write into its [[plugins]] entry: sha256 = \"{found}\""
        ),
        LoadError::TooLarge { key, .. } => {
            format!("if it is meant to be so large, raise `{key}` in its `limits`")
        }
        LoadError::Grant { .. } => "correct its `grants`, or take that one away".into(),
        LoadError::Limit(_) => "correct its `limits`".into(),
        LoadError::CompileTime(_) => "raise `compile_seconds` in its `limits`".into(),
        LoadError::Link(_) | LoadError::Compile(_) => DRIFT.into(),
        LoadError::ListTools(failure) if failure.message.contains(BROKEN) => DRIFT.into(),
        LoadError::ListTools(_) => {
            "try it with `cofferdam plugin call`; if it needs more, raise the limit that it names"
                .into()
        }
        // These say themselves what to do.
        LoadError::Refused(_) | LoadError::Sandbox(_) => return row,
    };
    row.with_advice(advice)
}
