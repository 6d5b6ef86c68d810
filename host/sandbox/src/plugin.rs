//! A plugin: from bytes to something that can be called.
//!
//! Nothing of a plugin runs before its digest, its kind, its size and its imports are checked, and
//! the first thing that runs, `list-tools`, runs without any grant.

use crate::call::{Ended, Entry, GuestCall, Job, Reply};
use crate::compile::compile;
use crate::declare::{self, RefusedTool, ToolSpec};
use crate::engine::{Machine, Sandbox};
use crate::error::LoadError;
use crate::grants::{Access, FileGrant, Grants};
use crate::hook::PluginHook;
use crate::imports::HostImport;
use crate::inspect::{Inspection, component_bytes, inspect_for, sha256_hex};
use crate::limits::{Limits, kib};
use crate::nearest::nearest_of;
use crate::services::kv::KeyValue;
use crate::services::secret::Secret;
use crate::state::{State, Terms};
use crate::tool::PluginTool;
use crate::wit::v0_1::Exports;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{AfterHook, BeforeHook};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Outcome, Tool, ToolFailure};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;

/// Bytes of a page of linear memory.
const WASM_PAGE: u64 = 65_536;

/// Where a plugin comes from.
#[derive(Debug, Clone)]
pub struct PluginSource {
    /// The operator's name of the plugin.
    pub name: String,
    /// The component.
    pub code: Code,
    /// The SHA-256 that was allowed, of the file as it is; none takes any.
    pub sha256: Option<String>,
    /// Whether WebAssembly text is taken as well.
    pub accept_text: bool,
}

/// The component of a plugin.
#[derive(Debug, Clone)]
pub enum Code {
    /// A file to read.
    Path(PathBuf),
    /// Bytes at hand.
    Bytes(Vec<u8>),
}

/// A plugin that is ready to be called. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
    tools: Arc<[ToolSpec]>,
    refused: Arc<[RefusedTool]>,
    listing: Option<Arc<crate::Receipt>>,
    inspection: Arc<Inspection>,
    compile_time: Duration,
}

/// What calls need of a plugin.
pub(crate) struct Loaded {
    pub(crate) sandbox: Sandbox,
    pub(crate) machine: Arc<Machine>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    pub(crate) terms: Arc<Terms>,
    /// Calls of this plugin that may run at the same time.
    pub(crate) slots: Semaphore,
    /// Calls that wait for a slot.
    pub(crate) waiting: AtomicU64,
    /// Slots of the pool that one call takes: as many as it has memories.
    pub(crate) weight: u32,
}

/// A choice among a plugin's tools that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The plugin has no such tool.
    #[error("the plugin {plugin} has no tool `{tool}`; {hint}")]
    NoSuchTool {
        /// The plugin.
        plugin: String,
        /// What was asked for.
        tool: String,
        /// What there is.
        hint: String,
    },
    /// With its prefix, the name of a tool is no name any more.
    #[error("with the prefix of the plugin {plugin}: {problem}")]
    Name {
        /// The plugin.
        plugin: String,
        /// What is wrong.
        problem: String,
    },
}

impl Plugin {
    /// Loads a plugin: digest, inspection, compilation, linking, the list of its tools.
    pub async fn load(
        sandbox: &Sandbox,
        source: PluginSource,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, LoadError> {
        let (inspection, bytes) = read(&source, &limits, &sandbox.config().imports)?;
        let machine = sandbox
            .machine(limits.fuel.is_some())
            .map_err(|error| LoadError::Sandbox(error.to_string()))?;
        let started = Instant::now();
        let component = compile(sandbox, &machine.engine, bytes, limits.compile_seconds).await?;
        let compile_time = started.elapsed();
        let pre = machine.linker.instantiate_pre(&component).map_err(link_error)?;
        let exports = Exports::find(&pre, inspection.roles).map_err(link_error)?;
        let weight = weight(&component, &limits, sandbox.config().slots)?;
        let loaded = Loaded {
            sandbox: sandbox.clone(),
            machine,
            pre,
            exports,
            slots: slots(&limits),
            terms: Arc::new(terms(sandbox, source.name, limits, grants)?),
            waiting: AtomicU64::new(0),
            weight,
        };
        Self::ready(loaded, Arc::new(inspection), compile_time).await
    }

    /// The same component as another plugin, with the same limits and grants: it is asked for its
    /// tools under the new name, and nothing is compiled again.
    pub async fn under_name(&self, name: impl Into<String>) -> Result<Self, LoadError> {
        let Loaded { sandbox, machine, pre, exports, terms: old, weight, .. } = &*self.loaded;
        let loaded = Loaded {
            sandbox: sandbox.clone(),
            machine: machine.clone(),
            pre: pre.clone(),
            exports: exports.clone(),
            slots: slots(&old.limits),
            terms: Arc::new(terms(sandbox, name.into(), old.limits.clone(), old.grants.clone())?),
            waiting: AtomicU64::new(0),
            weight: *weight,
        };
        Self::ready(loaded, self.inspection.clone(), Duration::ZERO).await
    }

    /// Asks what is linked for its tools.
    async fn ready(
        loaded: Loaded,
        inspection: Arc<Inspection>,
        compile_time: Duration,
    ) -> Result<Self, LoadError> {
        let mut plugin = Self {
            loaded: Arc::new(loaded),
            tools: Arc::default(),
            refused: Arc::default(),
            listing: None,
            inspection,
            compile_time,
        };
        if plugin.inspection.roles.tools {
            plugin.list_tools().await?;
        }
        Ok(plugin)
    }

    async fn list_tools(&mut self) -> Result<(), LoadError> {
        let ended = self.job(Entry::ListTools, None).perform(AbortSignal::new()).await;
        let offered = match ended.reply {
            Ok(Reply::Tools(offered)) => offered,
            Ok(_) => Vec::new(),
            Err(failure) => return Err(LoadError::ListTools(Box::new(failure))),
        };
        let (tools, refused) = declare::check(offered);
        self.tools = tools.into();
        self.refused = refused.into();
        self.listing = Some(Arc::new(ended.receipt));
        Ok(())
    }

    fn job(&self, entry: Entry, progress: Option<Progress>) -> Job {
        Job { plugin: self.loaded.clone(), entry, progress }
    }

    /// The operator's name of the plugin.
    pub fn name(&self) -> &str {
        &self.loaded.terms.plugin
    }

    /// What its file says.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.loaded.terms.limits
    }

    /// The grants in force.
    pub fn grants(&self) -> &Grants {
        &self.loaded.terms.grants
    }

    /// Its tools, by their own names.
    pub fn tool_specs(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// Tools that it offers and that break a rule.
    pub fn refused_tools(&self) -> &[RefusedTool] {
        &self.refused
    }

    /// The bill of asking it for its tools; none if it has no such function.
    pub fn listing_receipt(&self) -> Option<&Arc<crate::Receipt>> {
        self.listing.as_ref()
    }

    /// How long it took to compile.
    pub fn compile_time(&self) -> Duration {
        self.compile_time
    }

    /// Whether it repairs the arguments of its tools.
    pub fn prepares(&self) -> bool {
        self.inspection.roles.argument_preparation
    }

    /// Its tools for an agent: all of them or a subset by their own names, each with the
    /// operator's prefix before its name.
    pub fn tools(
        &self,
        prefix: Option<&str>,
        subset: Option<&[String]>,
    ) -> Result<Vec<Arc<dyn Tool>>, ChoiceError> {
        let prefix = prefix.unwrap_or_default();
        for wanted in subset.unwrap_or_default() {
            self.spec(wanted)?;
        }
        self.tools
            .iter()
            .filter(|spec| subset.is_none_or(|subset| subset.contains(&spec.declaration.name)))
            .map(|spec| {
                let mut declaration = (*spec.declaration).clone();
                declaration.name.insert_str(0, prefix);
                declare::check_name(&declaration.name)
                    .map_err(|problem| ChoiceError::Name { plugin: self.name().into(), problem })?;
                let tool = PluginTool::new(self.loaded.clone(), spec, declaration, self.prepares());
                Ok(Arc::new(tool) as Arc<dyn Tool>)
            })
            .collect()
    }

    /// Its hook before calls, if it has one.
    pub fn before_hook(&self) -> Option<Arc<dyn BeforeHook>> {
        self.inspection
            .roles
            .before_tool_call
            .then(|| Arc::new(PluginHook::new(self.loaded.clone())) as _)
    }

    /// Its hook after calls, if it has one.
    pub fn after_hook(&self) -> Option<Arc<dyn AfterHook>> {
        self.inspection
            .roles
            .after_tool_call
            .then(|| Arc::new(PluginHook::new(self.loaded.clone())) as _)
    }

    /// Calls one tool by its own name, outside of any agent: no schema is applied and no hook runs.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &str,
        progress: Progress,
        abort: AbortSignal,
    ) -> Outcome {
        match self.direct_job(name, arguments, progress) {
            Ok(job) => crate::tool::outcome(job.perform(abort).await),
            Err(failure) => Err(failure).into(),
        }
    }

    /// Like [`Self::call_tool`], on the thread that polls the future: the fastest way for a caller
    /// that has nothing else to do meanwhile.
    pub async fn call_tool_here(
        &self,
        name: &str,
        arguments: &str,
        progress: Progress,
        abort: AbortSignal,
    ) -> Outcome {
        match self.direct_job(name, arguments, progress) {
            Ok(job) => crate::tool::outcome(job.perform_here(abort).await),
            Err(failure) => Err(failure).into(),
        }
    }

    fn direct_job(
        &self,
        name: &str,
        arguments: &str,
        progress: Progress,
    ) -> Result<Job, ToolFailure> {
        let spec = self.spec(name).map_err(|error| ToolFailure::new(error.to_string()))?;
        let name: Arc<str> = spec.declaration.name.as_str().into();
        let call = GuestCall { id: "call".into(), name, arguments: arguments.into() };
        Ok(self.job(Entry::CallTool { call }, Some(progress)))
    }

    fn spec(&self, name: &str) -> Result<&ToolSpec, ChoiceError> {
        self.tools.iter().find(|spec| spec.declaration.name == name).ok_or_else(|| {
            let names: Vec<&str> =
                self.tools.iter().map(|spec| spec.declaration.name.as_str()).collect();
            let hint = match nearest_of(name, &names) {
                Some(near) => format!("did you mean `{near}`? It has {}", names.join(", ")),
                None => "it has no tools".into(),
            };
            ChoiceError::NoSuchTool { plugin: self.name().into(), tool: name.into(), hint }
        })
    }
}

/// Reads a plugin's file and looks at it, without running or compiling anything.
fn read(
    source: &PluginSource,
    limits: &Limits,
    offered: &[HostImport],
) -> Result<(Inspection, Vec<u8>), LoadError> {
    let file = match &source.code {
        Code::Bytes(bytes) => bytes.clone(),
        Code::Path(path) => read_file(path, limits)?,
    };
    within("bytes of component", file.len() as u64, limits.component_mib << 20, "component_mib")?;
    if let Some(pinned) = &source.sha256 {
        let found = sha256_hex(&file);
        if !pinned.eq_ignore_ascii_case(&found) {
            return Err(LoadError::Digest { pinned: pinned.clone(), found });
        }
    }
    let bytes = component_bytes(&file, source.accept_text)?.into_owned();
    let inspection = inspect_for(&bytes, offered)?;
    let largest = inspection.code.largest_function_bytes;
    within(
        "bytes in its largest function",
        largest,
        kib(limits.function_kib) as u64,
        "function_kib",
    )?;
    Ok((inspection, bytes))
}

/// Reads a file up to the limit, so that one that never ends is no way to fill the host's memory.
fn read_file(path: &PathBuf, limits: &Limits) -> Result<Vec<u8>, LoadError> {
    use std::io::Read as _;
    let failed = |error| LoadError::Read { path: path.display().to_string(), error };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(std::io::ErrorKind::IsADirectory.into()));
    }
    file.take((limits.component_mib << 20) + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// As many places as calls of the plugin may run at the same time.
fn slots(limits: &Limits) -> Semaphore {
    Semaphore::new(usize::try_from(limits.concurrent_calls).unwrap_or(Semaphore::MAX_PERMITS))
}

fn within(what: &'static str, found: u64, limit: u64, key: &'static str) -> Result<(), LoadError> {
    if found <= limit { Ok(()) } else { Err(LoadError::TooLarge { what, found, limit, key }) }
}

/// How many slots one call takes, after a look at what the component needs before it runs.
fn weight(
    component: &wasmtime::component::Component,
    limits: &Limits,
    slots: u32,
) -> Result<u32, LoadError> {
    // None if the component brings memories in from outside, which the contract has no way to do.
    let Some(needs) = component.resources_required() else { return Ok(1) };
    let memory = needs.max_initial_memory_size.unwrap_or_default().saturating_mul(WASM_PAGE);
    within("bytes of memory at its start", memory, limits.memory_bytes() as u64, "memory_mib")?;
    within("tables", needs.num_tables.into(), limits.tables, "tables")?;
    within("memories", needs.num_memories.into(), slots.into(), "memory_mib")?;
    Ok(needs.num_memories.max(1))
}

fn link_error(error: wasmtime::Error) -> LoadError {
    LoadError::Link(crate::text::visible(&format!("{error:#}"), 500))
}

/// The terms of a plugin's calls: limits, grants, and the values that grants stand for.
fn terms(
    sandbox: &Sandbox,
    name: String,
    limits: Limits,
    grants: Grants,
) -> Result<Terms, LoadError> {
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
        limits,
        log_sink: sandbox.config().log.clone(),
        key_value,
        env,
        secrets,
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

/// An ended call of another kind than was asked for, which no contract produces.
pub(crate) fn unexpected(ended: &Ended) -> String {
    format!("the sandbox mixed up an answer: {:?}", ended.reply)
}
