//! The plugins of a configuration, loaded: each file against its digest, each tool name once.

use crate::config::{Config, HookPoint, PluginEntry};
use cofferdam_agent::tool::Tool;
use cofferdam_sandbox::{
    ChoiceError, Code, LoadError, Plugin, PluginSource, Sandbox, read_component, sha256_hex,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Whether a plugin must be pinned by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pinning {
    /// An entry without `sha256` is refused.
    #[default]
    Required,
    /// An entry without `sha256` is loaded as it is. A digest that is given still counts.
    Optional,
}

/// The loaded plugins, in the order of the configuration.
#[derive(Clone)]
pub struct Registry {
    plugins: Vec<Registered>,
}

/// One loaded plugin with its entry.
#[derive(Clone)]
pub struct Registered {
    /// The operator's entry.
    pub entry: PluginEntry,
    /// The plugin.
    pub plugin: Plugin,
    /// The tools that the entry offers, by the names that the model knows.
    pub tools: Vec<Arc<dyn Tool>>,
}

/// A configuration whose plugins cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// One plugin was not let in.
    #[error("load the plugin `{name}` ({path}): {problem}")]
    Load {
        /// The operator's name for it.
        name: String,
        /// Its file.
        path: String,
        /// Why.
        problem: Box<LoadError>,
    },
    /// One plugin is not pinned.
    #[error(
        "the plugin `{name}` is not pinned: add `sha256 = \"{sha256}\"` to its [[plugins]] entry, or \
         run with --allow-unpinned"
    )]
    Unpinned {
        /// The operator's name for it.
        name: String,
        /// The digest of its file as it is now.
        sha256: String,
    },
    /// Two plugins offer a tool of the same name.
    #[error(
        "the plugins `{first}` and `{second}` both offer a tool `{tool}`: in the [[plugins]] entry of \
         `{second}`, rename its tools with `prefix = \"{second}_\"`, or name those to offer with \
         `tools = [{others}]`"
    )]
    SameTool {
        /// The tool.
        tool: String,
        /// The plugin that has it.
        first: String,
        /// The plugin that may not have it too.
        second: String,
        /// The other tools of the second plugin.
        others: String,
    },
    /// An entry's `tools` or `prefix` do not fit the plugin.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// A hook that its plugin does not have.
    #[error("the plugin `{name}` has no hook {point} tool calls: remove it from `on` in [[hooks]]")]
    NoHook {
        /// The operator's name for the plugin.
        name: String,
        /// `before` or `after`.
        point: &'static str,
    },
}

impl RegistryError {
    /// The plugin whose entry has to change, and the key of it.
    pub fn blames(&self) -> (&str, &'static str) {
        match self {
            Self::Load { name, problem, .. } => {
                let key = match &**problem {
                    LoadError::Digest { .. } => "sha256",
                    LoadError::TooLarge { .. }
                    | LoadError::Limit(_)
                    | LoadError::CompileTime(_) => "limits",
                    LoadError::Grant { .. } => "grants",
                    _ => "path",
                };
                (name, key)
            }
            Self::Unpinned { name, .. } => (name, "sha256"),
            Self::SameTool { second, .. } => (second, "prefix"),
            Self::Choice(ChoiceError::NoSuchTool { plugin, .. }) => (plugin, "tools"),
            Self::Choice(ChoiceError::Name { plugin, .. }) => (plugin, "prefix"),
            Self::NoHook { name, .. } => (name, "name"),
        }
    }
}

impl Registry {
    /// Loads every plugin of the configuration, or says which one cannot be loaded and why.
    pub async fn load(
        sandbox: &Sandbox,
        config: &Config,
        pinning: Pinning,
    ) -> Result<Registry, RegistryError> {
        let mut plugins = Vec::with_capacity(config.plugins.len());
        for entry in &config.plugins {
            plugins.push(Registered::load(sandbox, entry, pinning).await?);
        }
        Self::of(plugins, config)
    }

    /// Plugins that are loaded, if their tools and hooks go together.
    pub(crate) fn of(plugins: Vec<Registered>, config: &Config) -> Result<Registry, RegistryError> {
        let registry = Registry { plugins };
        registry.check_tools()?;
        registry.check_hooks(config)?;
        Ok(registry)
    }

    /// The plugin of this name.
    pub fn get(&self, name: &str) -> Option<&Registered> {
        self.plugins.iter().find(|registered| registered.entry.name == name)
    }

    /// The plugins, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.plugins.iter()
    }

    /// The tools of all plugins, in the order of the configuration.
    pub fn tools(&self) -> impl Iterator<Item = Arc<dyn Tool>> {
        self.plugins.iter().flat_map(|registered| registered.tools.iter().cloned())
    }

    /// Tools that plugins declare and that are not offered, a sentence each.
    pub fn refused_tools(&self) -> Vec<String> {
        let of = |registered: &Registered| {
            let name = registered.entry.name.clone();
            let refused = registered.plugin.refused_tools().iter();
            refused
                .map(move |tool| {
                    format!(
                        "plugin `{name}`: the tool `{}` is not offered: {}",
                        tool.name, tool.reason
                    )
                })
                .collect::<Vec<_>>()
        };
        self.plugins.iter().flat_map(of).collect()
    }

    fn check_tools(&self) -> Result<(), RegistryError> {
        // Some providers ignore case, so names that differ in case only are one.
        let mut owners: HashMap<String, &str> = HashMap::new();
        for registered in &self.plugins {
            let second = &registered.entry.name;
            for tool in &registered.tools {
                let name = tool.declaration().name.clone();
                if let Some(first) = owners.insert(name.to_ascii_lowercase(), second) {
                    return Err(RegistryError::SameTool {
                        first: first.into(),
                        second: second.clone(),
                        others: registered.names_but(&name),
                        tool: name,
                    });
                }
            }
        }
        Ok(())
    }

    fn check_hooks(&self, config: &Config) -> Result<(), RegistryError> {
        for hook in &config.hooks {
            let Some(Registered { plugin, .. }) = self.get(&hook.plugin) else { continue };
            let lacks = |point: &HookPoint| match point {
                HookPoint::Before => plugin.before_hook().is_none().then_some("before"),
                HookPoint::After => plugin.after_hook().is_none().then_some("after"),
            };
            if let Some(point) = hook.on.iter().find_map(lacks) {
                return Err(RegistryError::NoHook { name: hook.plugin.clone(), point });
            }
        }
        Ok(())
    }
}

impl Registered {
    /// The same code on the terms of another entry.
    pub(crate) async fn on_terms(&self, entry: &PluginEntry) -> Result<Registered, RegistryError> {
        let plugin = self.plugin.on_terms(entry.limits.clone(), entry.grants.clone());
        let plugin = plugin.await.map_err(|problem| RegistryError::Load {
            name: entry.name.clone(),
            path: entry.path.display().to_string(),
            problem: Box::new(problem),
        })?;
        let tools = plugin.tools(Some(&entry.prefix), entry.tools.as_deref())?;
        Ok(Registered { entry: entry.clone(), plugin, tools })
    }

    pub(crate) async fn load(
        sandbox: &Sandbox,
        entry: &PluginEntry,
        pinning: Pinning,
    ) -> Result<Registered, RegistryError> {
        let load = |problem| RegistryError::Load {
            name: entry.name.clone(),
            path: entry.path.display().to_string(),
            problem: Box::new(problem),
        };
        if entry.sha256.is_none() && pinning == Pinning::Required {
            let bytes = read_component(&entry.path).map_err(|error| {
                load(LoadError::Read { path: entry.path.display().to_string(), error })
            })?;
            return Err(RegistryError::Unpinned {
                name: entry.name.clone(),
                sha256: sha256_hex(&bytes),
            });
        }
        let source = PluginSource {
            name: entry.name.clone(),
            code: Code::Path(entry.path.clone()),
            sha256: entry.sha256.clone(),
            accept_text: false,
        };
        let plugin = Plugin::load(sandbox, source, entry.limits.clone(), entry.grants.clone())
            .await
            .map_err(load)?;
        let tools = plugin.tools(Some(&entry.prefix), entry.tools.as_deref())?;
        Ok(Registered { entry: entry.clone(), plugin, tools })
    }

    /// The names of this plugin's tools save one, as they stand in a list.
    fn names_but(&self, taken: &str) -> String {
        let names = self.tools.iter().map(|tool| tool.declaration().name.as_str());
        let others = names
            .filter(|name| *name != taken)
            .map(|name| format!("{:?}", name.strip_prefix(&*self.entry.prefix).unwrap_or(name)));
        others.collect::<Vec<_>>().join(", ")
    }
}
