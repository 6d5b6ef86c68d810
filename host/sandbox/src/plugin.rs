//! A plugin: from bytes to something that can be called.
//!
//! Nothing of a plugin runs before its digest, its kind, its size and its imports are checked, and
//! the first thing that runs, `list-tools`, runs without any grant.

mod load;
mod source;
mod terms;

pub(crate) use load::within_compiled;
pub use source::{Code, PluginSource, read_component};

use crate::blocking::OccupiedFiles;
use crate::call::{Ended, Entry, GuestCall, Job, Reply};
use crate::declare::{self, RefusedTool, ToolSpec};
use crate::engine::{Machine, Sandbox};
use crate::error::LoadError;
use crate::foreign::Functions;
use crate::grants::Grants;
use crate::hook::PluginHook;
use crate::inspect::Inspection;
use crate::limits::Limits;
use crate::nearest::nearest_of;
use crate::state::{State, Terms};
use crate::tool::PluginTool;
use crate::wit::v0_1::Exports;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{AfterHook, BeforeHook};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Outcome, Tool, ToolFailure};
use load::Compiled;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use terms::terms;
use tokio::sync::Semaphore;
use wasmtime::component::InstancePre;

/// A plugin that is ready to be called. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
    tools: Arc<[ToolSpec]>,
    refused: Arc<[RefusedTool]>,
    listing: Option<Arc<crate::Receipt>>,
    inspection: Arc<Inspection>,
    compile_time: Option<Duration>,
}

/// What calls need of a plugin.
pub(crate) struct Loaded {
    pub(crate) sandbox: Sandbox,
    pub(crate) machine: Arc<Machine>,
    pub(crate) pre: InstancePre<State>,
    pub(crate) exports: Exports,
    /// Of a component that knows nothing of the contract.
    pub(crate) functions: Option<Functions>,
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
    /// Loads a plugin: digest, inspection, compilation or the code that is kept, linking, the list of
    /// its tools.
    pub async fn load(
        sandbox: &Sandbox,
        source: PluginSource,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, LoadError> {
        limits.check()?;
        let machine = sandbox
            .machine(limits.fuel.is_some())
            .map_err(|error| LoadError::Sandbox(error.to_string()))?;
        let Compiled { component, inspection, time } =
            load::compiled(sandbox, &machine, &source, &limits).await?;
        let pre = machine.linker.instantiate_pre(&component).map_err(link_error)?;
        let exports = Exports::find(&pre, inspection.roles).map_err(link_error)?;
        let functions =
            inspection.roles.functions.then(|| Functions::find(&component, &machine.engine));
        let weight = load::weight(&component, &limits, sandbox.config().slots)?;
        let loaded = Loaded {
            sandbox: sandbox.clone(),
            machine,
            pre,
            exports,
            functions,
            slots: slots(&limits),
            terms: Arc::new(terms(sandbox, source.name, limits, grants)?),
            waiting: AtomicU64::new(0),
            weight,
        };
        Self::ready(loaded, Arc::new(inspection), time).await
    }

    /// The same component as another plugin, with the same limits and grants: it is asked for its
    /// tools under the new name, and nothing is compiled again.
    pub async fn under_name(&self, name: impl Into<String>) -> Result<Self, LoadError> {
        let Terms { limits, grants, .. } = &*self.loaded.terms;
        self.under(name, limits.clone(), grants.clone()).await
    }

    /// The same component under the same name with other limits and grants, as [`Self::under`] has it.
    pub async fn on_terms(&self, limits: Limits, grants: Grants) -> Result<Self, LoadError> {
        self.under(self.name(), limits, grants).await
    }

    /// The same component as another plugin, with other limits and grants. Code that counts fuel
    /// does so for all of them, so either both have a limit of fuel or none.
    pub async fn under(
        &self,
        name: impl Into<String>,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, LoadError> {
        let Loaded { sandbox, machine, pre, exports, functions, terms: old, weight, .. } =
            &*self.loaded;
        if limits.fuel.is_some() != old.limits.fuel.is_some() {
            let problem = "fuel is switched on or off when a plugin is compiled: load it again";
            return Err(LoadError::Sandbox(problem.into()));
        }
        let loaded = Loaded {
            sandbox: sandbox.clone(),
            machine: machine.clone(),
            pre: pre.clone(),
            exports: exports.clone(),
            functions: functions.clone(),
            slots: slots(&limits),
            terms: Arc::new(terms(sandbox, name.into(), limits, grants)?),
            waiting: AtomicU64::new(0),
            weight: *weight,
        };
        Self::ready(loaded, self.inspection.clone(), None).await
    }

    /// Asks what is linked for its tools; one that has none is instantiated all the same, to see
    /// whether its hooks are what they say.
    async fn ready(
        loaded: Loaded,
        inspection: Arc<Inspection>,
        compile_time: Option<Duration>,
    ) -> Result<Self, LoadError> {
        let mut plugin = Self {
            loaded: Arc::new(loaded),
            tools: Arc::default(),
            refused: Arc::default(),
            listing: None,
            inspection,
            compile_time,
        };
        if let Some(functions) = &plugin.loaded.functions {
            let (tools, mut refused) = declare::check(functions.tools());
            refused.extend_from_slice(functions.refused());
            plugin.tools = tools.into();
            plugin.refused = refused.into();
        } else {
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
        self.listing = self.inspection.roles.tools.then(|| Arc::new(ended.receipt));
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

    /// How long it took to compile; none if the code was at hand.
    pub fn compile_time(&self) -> Option<Duration> {
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

    /// Takes all its places for file operations, as operations would that the system never finishes:
    /// for self-tests. Waits for those that run.
    pub async fn occupy_file_operations(&self) -> OccupiedFiles {
        self.loaded.terms.blocking.occupied().await
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

/// As many places as calls of the plugin may run at the same time.
fn slots(limits: &Limits) -> Semaphore {
    Semaphore::new(usize::try_from(limits.concurrent_calls).unwrap_or(Semaphore::MAX_PERMITS))
}

fn link_error(error: wasmtime::Error) -> LoadError {
    LoadError::Link(crate::text::visible(&format!("{error:#}"), 500))
}

/// An ended call of another kind than was asked for, which no contract produces.
pub(crate) fn unexpected(ended: &Ended) -> String {
    format!("the sandbox mixed up an answer: {:?}", ended.reply)
}
