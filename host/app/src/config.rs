//! The operator's file, `cofferdam.toml`: which model, which plugins, what each may touch, which
//! hooks stand before and after their tools. Unknown keys are errors; paths are relative to the
//! file.

mod model;
mod sandbox;

pub use model::{Hidden, ModelEntry, RemoteEntry, ThinkingEntry, TimeoutsEntry};
pub use sandbox::{AllocationEntry, SandboxEntry, SettingRow};

use crate::patterns::ToolPatterns;
use cofferdam_sandbox::{Grants, Limits};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which model answers.
    pub model: Option<ModelEntry>,
    /// How the loop runs.
    #[serde(default)]
    pub agent: AgentEntry,
    /// The plugins that may be loaded; no other is.
    #[serde(default)]
    pub plugins: Vec<PluginEntry>,
    /// The hooks, in the order of the chain.
    #[serde(default)]
    pub hooks: Vec<HookEntry>,
    /// When a person is asked.
    #[serde(default)]
    pub approval: ApprovalEntry,
    /// Where runs are recorded.
    #[serde(default)]
    pub session: SessionEntry,
    /// What all plugins share.
    #[serde(default)]
    pub sandbox: SandboxEntry,
    /// Where the file is.
    #[serde(skip)]
    pub path: PathBuf,
}

/// `[agent]`: how the loop runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentEntry {
    /// `parallel` (default) or `sequential`.
    pub tool_execution: ToolExecutionEntry,
    /// The system prompt of every request.
    pub system_prompt: String,
    /// Repair arguments that lose nothing by it (`"5"` for an integer) before they are validated.
    pub coerce_arguments: bool,
    /// Turns of one run after which it ends with a message.
    pub max_turns: Option<u32>,
    /// Answers in a row that the output limit cut, after which the run ends with a message.
    pub max_truncated_answers: Option<u32>,
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

/// How the calls of one answer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolExecutionEntry {
    /// Together, as far as their tools allow.
    Parallel,
    /// One after the other.
    Sequential,
}

/// `[[plugins]]`: one plugin and what it may touch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginEntry {
    /// The operator's name for it; unique.
    pub name: String,
    /// The component.
    pub path: PathBuf,
    /// The SHA-256 of the file in hex. Required unless unpinned plugins are allowed.
    pub sha256: Option<String>,
    /// Where the component came from, if it was fetched: `plugin allow` writes it. Only for people.
    pub source: Option<String>,
    /// The tools to offer; all by default.
    pub tools: Option<Vec<String>>,
    /// Put before the name of each of its tools.
    #[serde(default)]
    pub prefix: String,
    /// What it may touch; nothing by default.
    #[serde(default)]
    pub grants: Grants,
    /// Its brakes, where they differ from the defaults.
    #[serde(default)]
    pub limits: Limits,
}

/// `[[hooks]]`: one plugin's say before or after tool calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// The name of a plugin of the list.
    pub plugin: String,
    /// Where it has its say.
    pub on: Vec<HookPoint>,
    /// Patterns of the tools that it is asked about; every tool by default.
    #[serde(default = "ToolPatterns::every")]
    pub tools: ToolPatterns,
    /// What a failure before a call does to it.
    #[serde(default)]
    pub before_failure: BeforeFailureEntry,
    /// What a failure after a call does to its result.
    #[serde(default)]
    pub after_failure: AfterFailureEntry,
    /// Whether it may rewrite arguments.
    #[serde(default)]
    pub rewrites: RewritesEntry,
}

/// Where a hook has its say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// Before a call runs.
    Before,
    /// After a call ran.
    After,
}

/// What a failed before-hook does to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeforeFailureEntry {
    /// It is blocked.
    #[default]
    Block,
    /// A person is asked.
    Ask,
    /// It goes on.
    Proceed,
}

/// What a failed after-hook does to the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterFailureEntry {
    /// It becomes an error.
    #[default]
    Error,
    /// It stays.
    Keep,
}

/// What a hook may do to arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewritesEntry {
    /// Rewrite them; nobody checks again (the reference's rule).
    #[default]
    Trusted,
    /// Rewrite them; they are validated again.
    Revalidated,
    /// Not rewrite them: a rewrite is a failure of the hook.
    Forbidden,
}

/// `[approval]`: when a person is asked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalEntry {
    /// Patterns of the tools whose calls a person must approve.
    pub ask: ToolPatterns,
    /// Seconds that a question waits for its answer; then it is a no. It does not count as wall
    /// time of the call.
    pub timeout_seconds: u64,
}

impl Default for ApprovalEntry {
    fn default() -> Self {
        Self { ask: ToolPatterns::default(), timeout_seconds: 600 }
    }
}

/// `[session]`: where runs are recorded.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionEntry {
    /// Whether they are.
    pub record: bool,
    /// The folder of the session files; a folder of the person's own state by default.
    pub dir: Option<PathBuf>,
    /// Keep the whole of results that are cut for the model, in a folder beside the session file,
    /// unless `[sandbox] spill_dir` names another.
    pub keep_results: bool,
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
    /// The file is no configuration.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and what, with the line.
        problem: toml::de::Error,
    },
    /// The entries contradict each other.
    #[error("{}: {problem}", path.display())]
    Meaning {
        /// The file.
        path: PathBuf,
        /// What is wrong, and the line that settles it.
        problem: String,
    },
}

impl Config {
    /// Reads a configuration; its relative paths become relative to the file's folder.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| ConfigError::Read { path: path.into(), problem })?;
        Self::parse(&text, path)
    }

    /// Reads a configuration from text that came from `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let config: Config = toml::from_str(text)
            .map_err(|problem| ConfigError::Format { path: path.into(), problem })?;
        config.check().map_err(|problem| ConfigError::Meaning { path: path.into(), problem })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Config { path: path.into(), ..config.relative_to(folder) })
    }

    /// The entry of the plugin whose file this is.
    pub fn plugin_at(&self, file: &Path) -> Option<&PluginEntry> {
        let same = |entry: &&PluginEntry| match (entry.path.canonicalize(), file.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => entry.path == file,
        };
        self.plugins.iter().find(same)
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=86_400).contains(&self.approval.timeout_seconds) {
            return Err(format!(
                "`[approval] timeout_seconds` cannot be {}: it takes a whole number from 1 to 86400",
                self.approval.timeout_seconds
            ));
        }
        for (at, entry) in self.plugins.iter().enumerate() {
            if !is_plain_name(&entry.name) {
                return Err(format!(
                    "a plugin cannot be named {:?}: a `name` has 1 to 64 letters, digits, `_`, `-` or `.`",
                    entry.name
                ));
            }
            if self.plugins[..at].iter().any(|earlier| earlier.name == entry.name) {
                return Err(format!(
                    "two plugins are named `{}`: give each [[plugins]] a `name` of its own",
                    entry.name
                ));
            }
        }
        if let Some(model) = &self.model {
            model.check()?;
            self.check_env(model)?;
        }
        for hook in &self.hooks {
            if !self.plugins.iter().any(|plugin| plugin.name == hook.plugin) {
                return Err(format!(
                    "a hook names the plugin `{}`, and no [[plugins]] has `name = \"{0}\"`",
                    hook.plugin
                ));
            }
            if hook.on.is_empty() {
                return Err(format!(
                    "the hook of `{}` is never asked: say `on = [\"before\"]`, `[\"after\"]` or both",
                    hook.plugin
                ));
            }
        }
        Ok(())
    }

    /// What a plugin can read it can send on, so the model's credential is not among it.
    fn check_env(&self, model: &ModelEntry) -> Result<(), String> {
        let Some(name) = crate::model::credential_env(model) else { return Ok(()) };
        match self.plugins.iter().find(|entry| entry.grants.env.iter().any(|env| env == name)) {
            None => Ok(()),
            Some(entry) => Err(format!(
                "the plugin `{}` is granted the environment variable `{name}`, which holds the \
                 credential of the model (`api_key_env` of [model]) and may not be had by a plugin: \
                 take it out of `grants.env`",
                entry.name
            )),
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

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, wants) in [
            (
                "[agent]\nsystem_promt = 1",
                vec!["line 2", "unknown field `system_promt`", "system_prompt"],
            ),
            ("[[plugins]]\nname = \"a\"", vec!["line 1", "missing field `path`"]),
            ("[model]\nprovider = \"magic\"", vec!["unknown variant `magic`", "scripted"]),
            ("[model]\nprovider = \"gemini\"", vec!["missing field `name`"]),
            (
                "[model]\nprovider = \"gemini\"\nname = \"m\"\napi_key = \"x\"",
                vec!["unknown field `api_key`", "api_key_env"],
            ),
            (
                "[model]\nprovider = \"gemini\"\nname = \"m\"\napi_key_env = \"A\"\napi_key_file = \"b\"",
                vec!["keep one of"],
            ),
            (
                "[model]\nprovider = \"openai-compatible\"\nname = \"m\"\ndialect = \"klingon\"",
                vec!["unknown dialect `klingon`", "mistral"],
            ),
            (
                "[model]\nprovider = \"openai\"\nname = \"m\"\ndialect = \"groq\"",
                vec!["only `provider = \"openai-compatible\"`"],
            ),
            (
                "[model]\nprovider = \"openai\"\nname = \"m\"\ntimeouts = { idle_s = -1 }",
                vec!["-1 is no number of seconds"],
            ),
            (
                "[model]\nprovider = \"openai\"\nname = \"m\"\napi_key_env = \"MODEL_LOGIN\"\n\
                 [[plugins]]\nname = \"a\"\npath = \"a\"\ngrants.env = [\"LANG\", \"MODEL_LOGIN\"]",
                vec!["the plugin `a`", "`MODEL_LOGIN`", "take it out of `grants.env`"],
            ),
            (
                "[[plugins]]\nname = \"a\"\npath = \"a\"\nlimits = { wall = 1 }",
                vec!["line 4", "unknown limit `wall`; did you mean `wall_ms`?"],
            ),
            (
                "[[plugins]]\nname = \"a\"\npath = \"a\"\n[[plugins]]\nname = \"a\"\npath = \"b\"",
                vec!["two plugins are named `a`"],
            ),
            (
                "[[hooks]]\nplugin = \"g\"\non = [\"before\"]",
                vec!["a hook names the plugin `g`", "`name = \"g\"`"],
            ),
            (
                "[[plugins]]\nname = \"a\\u001b[2J\"\npath = \"a\"",
                vec!["\"a\\u{1b}[2J\"", "letters"],
            ),
            ("[approval]\nask = [\"a[\"]", vec!["`a[` is no pattern of tool names"]),
            ("[approval]\ntimeout_seconds = 0", vec!["`[approval] timeout_seconds` cannot be 0"]),
        ] {
            let problem = parse(text).unwrap_err();
            for want in wants {
                assert!(problem.contains(want), "{text}\n{problem}");
            }
        }
    }
}
