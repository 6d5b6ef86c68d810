//! A configuration made into an agent: sandbox, plugins, hooks and model put together.

use crate::approve::{AskFirst, TimeLimited};
use crate::config::{
    AfterFailureEntry, BeforeFailureEntry, Config, ConfigError, HookEntry, HookPoint,
    RewritesEntry, ToolExecutionEntry,
};
use crate::model;
use crate::registry::{Pinning, Registered, Registry, RegistryError};
use crate::reload::{Made, Reload};
use crate::session::{self, Recorder, SessionError, format};
use cofferdam_agent::config::{
    AfterEntry, AfterFailure, BeforeEntry, BeforeFailure, Guards, NextTurn, Policy, Rewrites,
    ToolExecution, ToolFilter,
};
use cofferdam_agent::hook::Approver;
use cofferdam_agent::model::Model;
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use cofferdam_providers::EndpointError;
use cofferdam_providers::record::RecordError;
use cofferdam_providers::scripted::ScriptError;
use cofferdam_sandbox::{Sandbox, SandboxConfig, SandboxError};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What the embedder decides, beside the operator's file.
#[derive(Default)]
pub struct Options {
    /// Whether plugins must be pinned by their digests.
    pub pinning: Pinning,
    /// Who answers, instead of the model that the file names.
    pub model: Option<Arc<dyn Model>>,
    /// The person who is asked. Without one every answer is no.
    pub approver: Option<Arc<dyn Approver>>,
    /// The sandbox's own settings.
    pub sandbox: SandboxConfig,
    /// Where the runs are recorded. An old session gives the agent its transcript.
    pub session: Option<Recorder>,
    /// Where the model's answers are written, as a script that plays them again. A new file.
    pub record: Option<PathBuf>,
    /// Watches over the files from which the agent is made; without it they are read once.
    pub reload: Option<Arc<Reload>>,
}

/// An agent with what it stands on.
pub struct Assembled {
    /// The agent, idle.
    pub agent: Agent,
    /// Its plugins.
    pub registry: Registry,
    /// What the operator should know, a sentence each: tools that are not offered, and why.
    pub notices: Vec<String>,
    /// Where the runs are recorded.
    pub session: Option<Arc<Recorder>>,
}

/// A configuration that no agent can be made of.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The configuration itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration names no model.
    #[error(
        "no model: add `[model]` with, for example, `provider = \"anthropic\"` and `name = \"…\"`, or \
         `provider = \"scripted\"` and `script = \"answers.json\"`"
    )]
    NoModel,
    /// The model cannot be talked to as it is configured.
    #[error("[model]: {0}")]
    Endpoint(EndpointError),
    /// The recording cannot be begun.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The script cannot be read.
    #[error("read the script {}: {problem}", path.display())]
    ReadScript {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The script cannot be played.
    #[error("{}: {problem}", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: ScriptError,
    },
    /// The sandbox could not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// A plugin cannot be loaded.
    #[error("{place}: {problem}")]
    Registry {
        /// Where the key is that has to change, such as `cofferdam.toml:7`.
        place: String,
        /// What is wrong.
        problem: RegistryError,
    },
    /// The session cannot be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl AssembleError {
    pub(crate) fn registry(config: &Config, problem: RegistryError) -> Self {
        let (plugin, key) = problem.blames();
        let place = match problem {
            RegistryError::NoHook { .. } => config.place_of_hook(plugin),
            _ => config.place_of(plugin, key),
        };
        Self::Registry { place, problem }
    }
}

/// Makes an agent of a configuration. Nothing of a plugin runs before every check has passed, save
/// that each is asked for its tools.
pub async fn assemble(config: &Config, options: Options) -> Result<Assembled, AssembleError> {
    let own_model = options.model.is_none() && options.record.is_none();
    let model = match options.model {
        Some(model) => model,
        None => {
            let entry = config.model.as_ref().ok_or(AssembleError::NoModel)?;
            model::model(entry, options.record.as_deref())?
        }
    };
    let session = options.session.map(Arc::new);
    let mut sandbox = config.sandbox.over(options.sandbox);
    if let (true, Some(session)) = (config.session.keep_results, &session) {
        sandbox.spill_dir.get_or_insert_with(|| session.results_folder());
    }
    let sandbox = Sandbox::new(sandbox)?;
    let registry = Registry::load(&sandbox, config, options.pinning)
        .await
        .map_err(|problem| AssembleError::registry(config, problem))?;
    let settings = settings(config, &registry, model.clone(), &session);
    let notices = notices(&registry, &settings.toolset);
    let patience = Arc::new(AtomicU64::new(config.approval.timeout_seconds));
    let approver = options.approver.map(|approver| {
        Arc::new(TimeLimited::sharing(approver, patience.clone())) as Arc<dyn Approver>
    });
    let mut agent = agent_config(settings);
    agent.approver = approver.clone();
    agent.next_turn = options.reload.clone().map(|reload| reload as Arc<dyn NextTurn>);
    let agent = recorded(agent, &session, config, &registry)?;
    if let Some(reload) = options.reload {
        reload.begin(Made {
            config: config.clone(),
            registry: registry.clone(),
            model,
            sandbox,
            pinning: options.pinning,
            approver,
            patience,
            own_model,
            session: session.clone(),
        });
    }
    Ok(Assembled { agent, registry, notices, session })
}

/// What of a configuration may change between turns.
pub(crate) fn settings(
    config: &Config,
    registry: &Registry,
    model: Arc<dyn Model>,
    session: &Option<Arc<Recorder>>,
) -> Settings {
    let tools = match session {
        Some(session) => session::witnessed(registry.tools(), session).collect::<Vec<_>>(),
        None => registry.tools().collect(),
    };
    let policy = Policy {
        tool_execution: match config.agent.tool_execution {
            ToolExecutionEntry::Parallel => ToolExecution::Parallel,
            ToolExecutionEntry::Sequential => ToolExecution::Sequential,
        },
        before: before(config, registry),
        after: after(config, registry),
        guards: guards(config),
        coercion: config.agent.coerce_arguments,
    };
    let settings = Settings::new(model)
        .with_toolset(Toolset::new(tools, Rules::Portable))
        .with_system_prompt(config.agent.system_prompt.as_str());
    Settings {
        thinking: config.model.as_ref().map(model::thinking).unwrap_or_default(),
        policy: Some(Arc::new(policy)),
        ..settings
    }
}

/// The configuration of an agent with these settings.
fn agent_config(settings: Settings) -> AgentConfig {
    let policy = settings.policy.clone();
    let mut config = AgentConfig::new(settings);
    if let Some(policy) = policy {
        let Policy { tool_execution, before, after, guards, coercion } = (*policy).clone();
        config = AgentConfig { tool_execution, before, after, guards, coercion, ..config };
    }
    config
}

/// What a session says of a configuration.
pub(crate) fn setup(config: &Config, registry: &Registry, settings: &Settings) -> format::Setup {
    setup_of(config, registry, &agent_config(settings.clone()))
}

fn setup_of(config: &Config, registry: &Registry, agent: &AgentConfig) -> format::Setup {
    format::Setup {
        config: Some(session::absolute(&config.path)),
        plugins: registry.iter().map(plugin_entry).collect(),
        ..format::Setup::of(agent)
    }
}

/// The agent, with its session begun: as its journal, as its first observer, and as the one that
/// knows what was said before.
fn recorded(
    mut agent: AgentConfig,
    session: &Option<Arc<Recorder>>,
    config: &Config,
    registry: &Registry,
) -> Result<Agent, SessionError> {
    let Some(session) = session else { return Ok(Agent::new(agent)) };
    agent.messages = session.begin(setup_of(config, registry, &agent))?;
    agent.journal = Some(session.clone());
    let agent = Agent::new(agent);
    agent.subscribe(session.clone()).detach();
    Ok(agent)
}

fn plugin_entry(registered: &Registered) -> format::PluginEntry {
    format::PluginEntry {
        name: registered.entry.name.clone(),
        path: registered.entry.path.display().to_string(),
        sha256: registered.plugin.inspection().sha256.clone(),
    }
}

pub(crate) fn notices(registry: &Registry, toolset: &Toolset) -> Vec<String> {
    let mut notices = registry.refused_tools();
    notices.extend(toolset.refused().iter().map(|refused| {
        let (plugin, name) = (refused.tool.plugin(), &refused.tool.declaration().name);
        format!("plugin `{plugin}`: the tool `{name}` cannot be used: {}", refused.reason)
    }));
    notices
}

fn guards(config: &Config) -> Guards {
    let default = Guards::default();
    Guards {
        turns_max: config.agent.max_turns.or(default.turns_max),
        truncated_in_a_row_max: config
            .agent
            .max_truncated_answers
            .or(default.truncated_in_a_row_max),
    }
}

/// The chain before a call: the configured hooks in their order, then the operator's list of tools
/// to ask about.
fn before(config: &Config, registry: &Registry) -> Vec<BeforeEntry> {
    let mut chain: Vec<BeforeEntry> = hooks_at(config, HookPoint::Before)
        .filter_map(|entry| {
            Some(BeforeEntry {
                hook: registry.get(&entry.plugin)?.plugin.before_hook()?,
                tools: filter(entry),
                failure: match entry.before_failure {
                    BeforeFailureEntry::Block => BeforeFailure::Block,
                    BeforeFailureEntry::Ask => BeforeFailure::Ask,
                    BeforeFailureEntry::Proceed => BeforeFailure::Proceed,
                },
                rewrites: match entry.rewrites {
                    RewritesEntry::Trusted => Rewrites::Trusted,
                    RewritesEntry::Revalidated => Rewrites::Revalidated,
                    RewritesEntry::Forbidden => Rewrites::Forbidden,
                },
            })
        })
        .collect();
    if !config.approval.ask.is_empty() {
        let ask = AskFirst { tools: config.approval.ask.clone() };
        chain.push(BeforeEntry::new(Arc::new(ask)));
    }
    chain
}

fn after(config: &Config, registry: &Registry) -> Vec<AfterEntry> {
    hooks_at(config, HookPoint::After)
        .filter_map(|entry| {
            Some(AfterEntry {
                hook: registry.get(&entry.plugin)?.plugin.after_hook()?,
                tools: filter(entry),
                failure: match entry.after_failure {
                    AfterFailureEntry::Error => AfterFailure::Error,
                    AfterFailureEntry::Keep => AfterFailure::Keep,
                },
            })
        })
        .collect()
}

fn hooks_at(config: &Config, point: HookPoint) -> impl Iterator<Item = &HookEntry> {
    config.hooks.iter().filter(move |entry| entry.on.contains(&point))
}

fn filter(entry: &HookEntry) -> ToolFilter {
    let patterns = entry.tools.clone();
    ToolFilter::matching(move |tool| patterns.matches(tool))
}
