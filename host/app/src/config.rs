//! The operator's file, `cofferdam.toml`: which model, which plugins, what each may touch, which
//! hooks stand before and after their tools. Above the file stand the environment and the command line,
//! see [`Layers`]. Unknown keys are errors; paths are relative to the file.

mod check;
mod hooks;
mod keys;
mod layers;
mod model;
mod page;
mod plugins;
mod sandbox;
mod show;
mod tree;

pub use check::Mistake;
pub use hooks::{AfterFailureEntry, BeforeFailureEntry, HookEntry, HookPoint, RewritesEntry};
pub use layers::Layers;
pub use model::{Hidden, ModelEntry, RemoteEntry, ThinkingEntry, TimeoutsEntry};
pub use page::{list as list_keys, page};
pub use plugins::PluginEntry;
pub use sandbox::{AllocationEntry, SandboxEntry, SettingRow};
pub use show::{Effective, effective};
pub use tree::Origin;

use crate::patterns::ToolPatterns;
use check::Checker;
use cofferdam_agent::config::Guards;
use cofferdam_sandbox::{nearest_of, text::visible};
use keys::{keys, list, path, switch, table, tables, text, whole, word, words};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tree::{Node, Step};

keys! {
    /// The whole file.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Config {
        /// Which model answers. A server of tools needs none.
        pub model: Option<ModelEntry> => table(ModelEntry::keys()).or_else("none"),
        /// How the loop runs.
        #[serde(default)]
        pub agent: AgentEntry => table(AgentEntry::keys()),
        /// The plugins that may be loaded; no other is.
        #[serde(default)]
        pub plugins: Vec<PluginEntry> => tables(PluginEntry::keys()).or_else("none"),
        /// The hooks, in the order of the chain.
        #[serde(default)]
        pub hooks: Vec<HookEntry> => tables(HookEntry::keys()).or_else("none"),
        /// When a person is asked.
        #[serde(default)]
        pub approval: ApprovalEntry => table(ApprovalEntry::keys()),
        /// Where runs are recorded.
        #[serde(default)]
        pub session: SessionEntry => table(SessionEntry::keys()),
        /// What all plugins share.
        #[serde(default)]
        pub sandbox: SandboxEntry => table(SandboxEntry::keys()),
    }
    beside {
        /// Where the file is.
        #[serde(skip)]
        pub path: PathBuf,
        /// Where each value came from.
        #[serde(skip)]
        pub sources: Sources,
    }
}

/// Where each value of a configuration came from.
#[derive(Clone, Default)]
pub struct Sources(Arc<Kept>);

#[derive(Default)]
struct Kept {
    tree: Option<Node>,
    layers: Layers,
}

impl std::fmt::Debug for Sources {
    /// What is kept may hold a credential.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Sources {
    fn tree(&self) -> Option<&Node> {
        self.0.tree.as_ref()
    }
}

keys! {
    /// `[agent]`: how the loop runs.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct AgentEntry {
        /// How the calls of one answer run.
        pub tool_execution: ToolExecutionEntry =>
            word(ToolExecutionEntry::WORDS).or(Self::default().tool_execution),
        /// The system prompt of every request.
        pub system_prompt: String => text().or(Self::default().system_prompt),
        /// Repair arguments that lose nothing by it (`"5"` for an integer) before they are validated.
        pub coerce_arguments: bool => switch().or(Self::default().coerce_arguments),
        /// Turns of one run after which it ends with a message.
        pub max_turns: Option<u32> =>
            whole(1, u32::MAX.into()).or(Guards::default().turns_max.unwrap_or_default()),
        /// Answers in a row that the output limit cut, after which the run ends with a message.
        pub max_truncated_answers: Option<u32> =>
            whole(1, u32::MAX.into()).or(Guards::default().truncated_in_a_row_max.unwrap_or_default()),
    }
}

impl Default for AgentEntry {
    fn default() -> Self {
        Self {
            tool_execution: ToolExecutionEntry::Parallel,
            system_prompt: "You are a helpful agent. Use the tools that you are given.".into(),
            coerce_arguments: true,
            max_turns: None,
            max_truncated_answers: None,
        }
    }
}

words! {
    /// How the calls of one answer run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub enum ToolExecutionEntry {
        /// Together, as far as their tools allow.
        Parallel = "parallel",
        /// One after the other.
        Sequential = "sequential",
    }
}

keys! {
    /// `[approval]`: when a person is asked.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ApprovalEntry {
        /// Patterns of the tools whose calls a person must approve.
        pub ask: ToolPatterns => list(text()).checked(hooks::pattern).or_else("none").such_as(["write_*"]),
        /// Seconds that a question waits for its answer; then it is a no. It does not count as wall
        /// time of the call.
        pub timeout_seconds: u64 => whole(1, 86_400).or(Self::default().timeout_seconds),
    }
}

impl Default for ApprovalEntry {
    fn default() -> Self {
        Self { ask: ToolPatterns::default(), timeout_seconds: 600 }
    }
}

keys! {
    /// `[session]`: where runs are recorded.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SessionEntry {
        /// Whether they are.
        pub record: bool => switch().or(Self::default().record),
        /// The folder of the session files.
        pub dir: Option<PathBuf> =>
            path().or_else("`cofferdam/sessions` in the user's folder of state").such_as("sessions"),
        /// Keep the whole of results that are cut for the model, in a folder beside the session file,
        /// unless `[sandbox] spill_dir` names another.
        pub keep_results: bool => switch().or(Self::default().keep_results),
    }
}

impl Default for SessionEntry {
    fn default() -> Self {
        Self { record: true, dir: None, keep_results: false }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read the configuration {}: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// What is written cannot be so. Each mistake names its place, its key, and what to write instead.
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}

impl Config {
    /// Reads a configuration; its relative paths become relative to the file's folder. Nothing stands
    /// above the file.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        Self::load(path, &Layers::default())
    }

    /// Reads a configuration with what stands above it.
    pub fn load(path: &Path, layers: &Layers) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| ConfigError::Read { path: path.into(), problem })?;
        Self::layered(&text, path, layers)
    }

    /// Reads a configuration from text that came from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        Self::layered(text, path, &Layers::default())
    }

    /// Reads a configuration from text that came from `path`, with what stands above it.
    pub fn layered(text: &str, path: &Path, layers: &Layers) -> Result<Config, ConfigError> {
        let keys = Self::keys();
        let mut checker = Checker::new(path, &keys);
        let tree = match Node::parse(text) {
            Ok(mut tree) => {
                layers.over(&mut tree, &keys, &mut checker);
                checker.file(&tree);
                Some(tree)
            }
            Err((line, problem)) => {
                let origin = line.map(Origin::Line).unwrap_or_default();
                let near = line.and_then(|line| named_in(text, line));
                let near = near.map(|name| format!(" near `{name}`")).unwrap_or_default();
                checker.mistake(&origin, "", format!("this is no TOML{near}: {problem}"));
                None
            }
        };
        if let (Some(tree), true) = (tree, checker.mistakes.is_empty()) {
            match Config::deserialize(tree.to_toml()) {
                Ok(config) => {
                    config.check(&tree, &mut checker);
                    if checker.mistakes.is_empty() {
                        return Ok(config.finished(path, tree, layers));
                    }
                }
                // The descriptions of the keys promise more than the types take.
                Err(problem) => checker.mistake(&Origin::Default, "", problem.message()),
            }
        }
        Err(ConfigError::Mistakes(checker.mistakes))
    }

    fn finished(mut self, path: &Path, tree: Node, layers: &Layers) -> Config {
        let kept = tree.origin_at(&[key("sandbox"), key("cache_dir")]);
        self.sandbox.cache_dir_decided = self.sandbox.cache_dir.is_some()
            && matches!(kept, Origin::Flag(_) | Origin::Variable(_));
        self.path = path.into();
        self.sources = Sources(Arc::new(Kept { tree: Some(tree), layers: layers.clone() }));
        self.relative_to(path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the file anew, with what stood above it.
    pub fn again(&self) -> Result<Config, ConfigError> {
        Self::load(&self.path, &self.sources.0.layers)
    }

    /// Whether a section says the same in another configuration.
    pub(crate) fn is_same(&self, other: &Config, section: &str) -> bool {
        let of = |config: &Config| config.sources.tree()?.get(section).map(Node::to_toml);
        of(self) == of(other)
    }

    /// The entry of the plugin whose file this is.
    pub fn plugin_at(&self, file: &Path) -> Option<&PluginEntry> {
        let same = |entry: &&PluginEntry| match (entry.path.canonicalize(), file.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => entry.path == file,
        };
        self.plugins.iter().find(same)
    }

    /// Where a key of a plugin's entry is, for a message: `cofferdam.toml:7`. The entry itself, if it
    /// has no such key.
    pub fn place_of(&self, plugin: &str, name: &str) -> String {
        let entry = self.plugins.iter().position(|entry| entry.name == plugin);
        let path = entry.map(|at| [key("plugins"), Step::Item(at), key(name)]);
        let origin = match (self.sources.tree(), &path) {
            (Some(tree), Some(path)) => tree.origin_at(path).clone(),
            _ => Origin::Default,
        };
        check::place(&self.path, &origin)
    }

    /// Where the entry of a hook is, for a message.
    pub fn place_of_hook(&self, plugin: &str) -> String {
        let entry = self.hooks.iter().position(|entry| entry.plugin == plugin);
        let origin = match (self.sources.tree(), entry) {
            (Some(tree), Some(at)) => {
                tree.origin_at(&[key("hooks"), Step::Item(at), key("on")]).clone()
            }
            _ => Origin::Default,
        };
        check::place(&self.path, &origin)
    }

    /// What is right key by key, and together cannot be.
    fn check(&self, tree: &Node, checker: &mut Checker<'_>) {
        let mut mistake = |steps: &[Step], problem: String| {
            let path = steps.iter().fold(String::new(), |at, step| match step {
                Step::Key(key) => check::join(&at, key),
                Step::Item(item) => check::join(&at, &item.to_string()),
            });
            let origin = tree.origin_at(steps);
            checker.mistake(origin, &path, format!("`{path}`: {problem}"));
        };
        for (at, entry) in self.plugins.iter().enumerate() {
            if self.plugins[..at].iter().any(|earlier| earlier.name == entry.name) {
                mistake(
                    &[key("plugins"), Step::Item(at), key("name")],
                    format!(
                        "two plugins are named `{}`: give each [[plugins]] a `name` of its own",
                        entry.name
                    ),
                );
            }
        }
        if let Some(model) = &self.model {
            if let Err((name, problem)) = model.check() {
                mistake(&[key("model"), key(name)], problem);
            }
            self.check_env(model, &mut mistake);
        }
        let names: Vec<&str> = self.plugins.iter().map(|entry| entry.name.as_str()).collect();
        for (at, hook) in self.hooks.iter().enumerate() {
            if !names.contains(&hook.plugin.as_str()) {
                let near = match nearest_of(&hook.plugin, &names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "there are no plugins".into(),
                };
                mistake(
                    &[key("hooks"), Step::Item(at), key("plugin")],
                    format!(
                        "a hook names the plugin `{}`, and no [[plugins]] has `name = \"{0}\"`; {near}",
                        hook.plugin
                    ),
                );
            }
            if hook.on.is_empty() {
                mistake(
                    &[key("hooks"), Step::Item(at), key("on")],
                    format!(
                        "the hook of `{}` is never asked: say `on = [\"before\"]`, `[\"after\"]` or both",
                        hook.plugin
                    ),
                );
            }
        }
    }

    /// What a plugin can read it can send on, so the model's credential is not among it.
    fn check_env(&self, model: &ModelEntry, mistake: &mut dyn FnMut(&[Step], String)) {
        let Some(name) = crate::model::credential_env(model) else { return };
        for (at, entry) in self.plugins.iter().enumerate() {
            if entry.grants.env.iter().any(|env| env == name) {
                mistake(
                    &[key("plugins"), Step::Item(at), key("grants"), key("env")],
                    format!(
                        "the plugin `{}` is granted the environment variable `{name}`, which holds the \
                         credential of the model (`api_key_env` of [model]) and may not be had by a \
                         plugin: take it out of `grants.env`",
                        entry.name
                    ),
                );
            }
        }
    }

    fn relative_to(mut self, folder: &Path) -> Self {
        if let Some(model) = &mut self.model {
            model.relative_to(folder);
        }
        self.sandbox = self.sandbox.relative_to(folder);
        for entry in &mut self.plugins {
            entry.path = folder.join(&entry.path);
            entry.grants = std::mem::take(&mut entry.grants).relative_to(folder);
        }
        if let Some(dir) = &mut self.session.dir {
            *dir = folder.join(&*dir);
        }
        self
    }
}

/// What a line is about, without its value, which may be a credential.
fn named_in(text: &str, line: usize) -> Option<String> {
    let line = text.lines().nth(line.checked_sub(1)?)?.trim();
    let name = match line.starts_with('[') {
        true => line.split('#').next()?,
        false => line.split_once('=')?.0,
    };
    // What is in quotes may be a value, of a list or a table that goes over several lines.
    let plain = |c: char| c.is_alphanumeric() || " _-.[]".contains(c);
    Some(visible(name.trim(), 60)).filter(|name| !name.is_empty() && name.chars().all(plain))
}

fn key(name: &str) -> Step {
    Step::Key(name.into())
}

/// Names stand in messages, in rows of tables and beside those of the host's own hooks.
pub(crate) fn is_plain_name(name: &str) -> bool {
    (1..=64).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("conf/cofferdam.toml")).map_err(|problem| problem.to_string())
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let config = parse(
            r#"
            model = { provider = "scripted", script = "answers.json" }
            session = { dir = "sessions" }
            [[plugins]]
            name = "files"
            path = "../files.wasm"
            grants.files = [{ host = "work", guest = "/workspace", access = "read-write" }]
            limits = { wall_ms = 5000 }
            [[hooks]]
            plugin = "files"
            on = ["before"]
            "#,
        )
        .unwrap();
        let Some(ModelEntry::Scripted { script }) = &config.model else { panic!("no model") };
        assert_eq!(script, Path::new("conf/answers.json"));
        assert_eq!(config.session.dir.as_deref(), Some(Path::new("conf/sessions")));
        assert_eq!(config.plugins[0].path, Path::new("conf/../files.wasm"));
        assert_eq!(config.plugins[0].grants.files[0].host, Path::new("conf/work"));
        assert_eq!(config.plugins[0].limits.wall_ms, 5000);
        assert!(config.hooks[0].tools.matches("any"));
    }

    #[test]
    fn no_mistake_shows_what_may_be_a_credential() {
        let model = "[model]\nprovider = \"openai\"\nname = \"m\"\n";
        for line in [
            "headers={x-k=\"sk-s3cret\", y}",
            "headers = { x-k = \"sk-s3cret }",
            "headers = { x-k = sk-s3cret }",
            "headers = { \"sk-s3cret\" }",
            "headers = \"sk-s3cret\"",
            "headers = { x-k = [\"sk-s3cret\"] }",
            "headers = { x-k = \"sk-s3cret\" } x",
            "headers = { x-k = \"sk-s3cret\\q\" }",
            "headers.x-k = \"sk-s3cret\"\nheaders.x-k = \"sk-s3cret\"",
            "api_key_command = [\n\"print\",\n\"sk-s3cret==\" y]",
            "api_key_command = [\n[\"sk-s3cret\", ]",
            "api_key_command = \"sk-s3cret\"",
            "base_url = \"https://user:sk-s3cret@host/v1\"",
            "base_url = \"https://sk-s3cret@host/v1\"",
            "base_url = \"ftp://user:sk-s3cret@host/v1\"",
            "base_url = \"user:sk-s3cret@host/v1\"",
            "api_key = \"sk-s3cret\"",
        ] {
            let problem = Config::parse(&format!("{model}{line}\n"), Path::new("c.toml"));
            let problem = problem.map(|_| ()).unwrap_err();
            let shown = format!("{problem}\n{problem:?}");
            assert!(!shown.contains("s3cret"), "{line}\n{shown}");
        }
    }

    #[test]
    fn the_documented_models_are_models() {
        let page = include_str!("../../docs/models.md");
        let examples: Vec<&str> =
            page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(examples.len(), 2);
        for example in examples {
            let config = parse(example).unwrap();
            assert!(crate::model::model(config.model.as_ref().unwrap(), None).is_ok());
        }
    }

    #[test]
    fn a_model_behind_a_server_with_all_it_may_have() {
        let config = parse(
            r#"
            [model]
            provider = "openai-compatible"
            name = "qwen"
            base_url = "http://127.0.0.1:11434/v1"
            api_key_file = "key"
            headers = { x-org = "s3cret" }
            extra = { temperature = 0, options = { num_ctx = 8192 } }
            max_output_tokens = 4096
            thinking = "high"
            images = true
            dialect = "mistral"
            timeouts = { connect_s = 1, idle_s = 0.5 }
            retries = 0
            "#,
        )
        .unwrap();
        let model = config.model.as_ref().unwrap();
        let entry = model.remote().unwrap();
        assert_eq!(entry.api_key_file.as_deref(), Some(Path::new("conf/key")));
        assert_eq!(entry.extra["options"]["num_ctx"], 8192);
        assert_eq!(entry.timeouts.idle_s, Some(std::time::Duration::from_millis(500)));
        assert_eq!(entry.headers["x-org"].0, "s3cret");
        assert!(!format!("{config:?}").contains("s3cret"));
        assert!(crate::model::model(model, None).is_ok());
    }
}
