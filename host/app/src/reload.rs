//! A changed file, noticed: the operator's file and the plugins' files are looked at before each run and
//! between turns, and what they say is in force from the next turn on.
//!
//! A running call ends on the code that it began with. A plugin's new file is taken only if its digest is
//! pinned; what cannot be read or loaded changes nothing, and is told; rights that grew wait until a person
//! has agreed.

mod rights;
mod seen;

use crate::assemble::{self, AssembleError};
use crate::config::{Config, PluginEntry};
use crate::model;
use crate::registry::{Pinning, Registered, Registry};
use crate::session::Recorder;
use cofferdam_agent::Settings;
use cofferdam_agent::config::{NextTurn, TurnView};
use cofferdam_agent::hook::{Approval, Approver, Decision, Question};
use cofferdam_agent::model::Model;
use cofferdam_agent::tool::Call;
use cofferdam_sandbox::{Sandbox, read_component, sha256_hex};
use futures::future::BoxFuture;
use seen::Seen;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Who decides on rights that grew.
#[derive(Clone, Copy)]
pub enum Rights {
    /// The approver of the agent; without one they wait.
    Asked,
    /// Nobody: they wait.
    Wait,
    /// They are agreed to.
    Agreed,
}

/// Watches over the files of one agent, from the moment that it is assembled.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use cofferdam_app::reload::{Reload, Rights};
/// use cofferdam_app::{Config, Options, assemble};
///
/// let reload = Reload::new(|told| eprintln!("{told}"));
/// let options = Options { reload: Some(reload.clone()), ..Options::default() };
/// let agent = assemble(&Config::read("cofferdam.toml".as_ref())?, options).await?.agent;
/// // Each run looks by itself, before it begins and between its turns. To look at another time:
/// if let Some(settings) = reload.look(Rights::Wait).await {
///     agent.set_settings(settings);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Reload {
    tell: Box<dyn Fn(&str) + Send + Sync>,
    state: tokio::sync::Mutex<Option<State>>,
    /// What was told since somebody last asked.
    told: Mutex<Vec<String>>,
    any_told: Notify,
}

/// Sentences that are kept for whoever asks.
const TOLD_MAX: usize = 100;

/// What is in force, and what it was made with.
struct State {
    made: Made,
    seen: Seen,
}

/// What an agent was assembled with.
pub(crate) struct Made {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) sandbox: Sandbox,
    pub(crate) pinning: Pinning,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// The bound of [`crate::approve::TimeLimited`].
    pub(crate) patience: Arc<AtomicU64>,
    /// Whether the model is that of the file, and may be another one.
    pub(crate) own_model: bool,
    pub(crate) session: Option<Arc<Recorder>>,
}

/// The name under which the host asks about rights. No plugin can have it.
const ASKER: &str = "[[plugins]] grants";

impl Reload {
    /// One that watches over nothing yet, and says there what becomes of a change, a sentence at a time.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        let state = tokio::sync::Mutex::default();
        let (told, any_told) = (Mutex::default(), Notify::new());
        Arc::new(Self { tell: Box::new(tell), state, told, any_told })
    }

    /// Begins to watch over the files of an agent that was just assembled.
    pub(crate) fn begin(&self, made: Made) {
        let seen = Seen::of(&made.config);
        // Nobody looks before there is an agent.
        if let Ok(mut state) = self.state.try_lock() {
            *state = Some(State { made, seen });
        }
    }

    /// Looks whether a file changed, and what it comes to: the settings from now on, or none if nothing
    /// is to change. Whoever does not wait for a person does not wait for a look that does, either.
    pub async fn look(&self, rights: Rights) -> Option<Settings> {
        let mut state = match rights {
            Rights::Asked => self.state.lock().await,
            Rights::Wait | Rights::Agreed => match self.state.try_lock() {
                Ok(state) => state,
                Err(_) => {
                    self.say("a change is being looked at, and waits for an answer");
                    return None;
                }
            },
        };
        let State { made, seen } = state.as_mut()?;
        // Before anything is read: what changes meanwhile is looked at again.
        let looked = seen.again();
        if looked == *seen && !matches!(rights, Rights::Agreed) {
            return None;
        }
        let changed = looked.changed_from(seen);
        *seen = looked;
        let wanted = match made.config.again() {
            Ok(wanted) => wanted,
            Err(problem) => {
                self.say(&format!("the configuration in force stays: {problem}"));
                made.config.clone()
            }
        };
        *seen = seen.with(&wanted);
        match self.next(made, wanted, &changed, rights).await {
            Ok(None) => None,
            Ok(Some(next)) => Some(self.adopt(made, next)),
            Err(problem) => {
                self.say(&format!("what is in force stays: {problem}"));
                None
            }
        }
    }

    /// What was told since this was last asked.
    pub fn take_told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until something was told, and takes it.
    pub async fn told(&self) -> Vec<String> {
        loop {
            let told = self.take_told();
            if !told.is_empty() {
                return told;
            }
            self.any_told.notified().await;
        }
    }

    /// What the files say, as far as it can be had. `None` if it is what is in force.
    async fn next(
        &self,
        made: &Made,
        wanted: Config,
        changed: &[PathBuf],
        rights: Rights,
    ) -> Result<Option<Next>, AssembleError> {
        let mut plugins = Vec::new();
        let mut any = false;
        for entry in &wanted.plugins {
            let next = match made.registry.get(&entry.name) {
                None => {
                    let loaded = Registered::load(&made.sandbox, entry, made.pinning).await;
                    let loaded =
                        loaded.map_err(|problem| AssembleError::registry(&wanted, problem))?;
                    any = true;
                    self.say(&format!("the plugin `{}` is there", entry.name));
                    loaded
                }
                Some(old) => {
                    let next = self.plugin(made, old, entry, changed, rights).await;
                    any |= next.is_some();
                    next.unwrap_or_else(|| old.clone())
                }
            };
            plugins.push(next);
        }
        let same = |section| wanted.is_same(&made.config, section);
        any |= !["model", "agent", "plugins", "hooks", "approval"].into_iter().all(same);
        for section in ["session", "sandbox"] {
            if !same(section) {
                self.say(&format!("[{section}] is taken when the program is started anew"));
            }
        }
        if !any {
            return Ok(None);
        }
        let registry = Registry::of(plugins, &wanted)
            .map_err(|problem| AssembleError::registry(&wanted, problem))?;
        let model = match &wanted.model {
            Some(entry) if made.own_model && !same("model") => model::model(entry, None)?,
            _ => {
                if !same("model") {
                    self.say("[model] is taken when the program is started anew");
                }
                made.model.clone()
            }
        };
        Ok(Some(Next { config: wanted, registry, model }))
    }

    /// What comes of one plugin: none if it stays as it is.
    async fn plugin(
        &self,
        made: &Made,
        old: &Registered,
        entry: &PluginEntry,
        changed: &[PathBuf],
        rights: Rights,
    ) -> Option<Registered> {
        let name = &entry.name;
        let mut entry = entry.clone();
        let grown = rights::grown(&entry.grants, &old.entry.grants);
        if !grown.is_empty() && !self.agreed(made, name, &grown, rights).await {
            rights::hold_back(&mut entry.grants, &old.entry.grants);
            self.say(&format!(
                "the plugin `{name}` does not get what its entry has beyond before, until somebody agrees: {}",
                grown.join(", ")
            ));
        }
        let running = &old.plugin.inspection().sha256;
        let pinned = entry.sha256.clone().unwrap_or_else(|| running.clone());
        let another = !pinned.eq_ignore_ascii_case(running);
        if !another && changed.contains(&entry.path) {
            self.warn_of_file(&entry, running);
        }
        if entry == old.entry && !another {
            return None;
        }
        let fuel = entry.limits.fuel.is_some() == old.entry.limits.fuel.is_some();
        let loaded = match another || !fuel {
            // Without a digest in the file, the one that was let in.
            true => {
                let entry = PluginEntry { sha256: Some(pinned), ..entry.clone() };
                Registered::load(&made.sandbox, &entry, made.pinning).await
            }
            false => old.on_terms(&entry).await,
        };
        match loaded {
            Ok(loaded) => {
                if another {
                    let now = &loaded.plugin.inspection().sha256;
                    self.say(&format!(
                        "the plugin `{name}` is another file from the next call on: sha256 {now}, before {running}"
                    ));
                }
                Some(Registered { entry, ..loaded })
            }
            Err(problem) => {
                self.say(&format!("the plugin `{name}` in force stays: {problem}"));
                None
            }
        }
    }

    /// Says that a plugin's file is not what is allowed, and stays unused.
    fn warn_of_file(&self, entry: &PluginEntry, running: &str) {
        let path = entry.path.display();
        let found = match read_component(&entry.path) {
            Ok(bytes) => sha256_hex(&bytes),
            Err(problem) => {
                return self.say(&format!(
                    "the plugin `{}` in force stays: its file {path} cannot be read: {problem}",
                    entry.name
                ));
            }
        };
        if found != running {
            self.say(&format!(
                "the plugin `{}` in force stays: {path} is another file now (sha256 {found}); to let it in: \
                 cofferdam plugin allow {path}",
                entry.name
            ));
        }
    }

    async fn agreed(&self, made: &Made, plugin: &str, grown: &[String], rights: Rights) -> bool {
        let approver = match (rights, &made.approver) {
            (Rights::Agreed, _) => return true,
            (Rights::Asked, Some(approver)) => approver,
            (Rights::Asked, None) | (Rights::Wait, _) => return false,
        };
        let question = Question {
            title: format!("Let the plugin {plugin} do more than before?"),
            message: format!("Its entry in the operator's file grants more: {}", grown.join(", ")),
        };
        let arguments = json!({ "grants": grown });
        let call = Call {
            id: "reload".into(),
            name: "grants".into(),
            arguments: Arc::new(arguments.as_object().cloned().unwrap_or_default()),
        };
        let approval = Approval { hook: ASKER, question: &question, plugin, call: &call };
        approver.approve(approval).await == Decision::Approved
    }

    fn adopt(&self, made: &mut Made, next: Next) -> Settings {
        let Next { config, registry, model } = next;
        made.patience.store(config.approval.timeout_seconds, Ordering::Relaxed);
        let settings = assemble::settings(&config, &registry, model.clone(), &made.session);
        let notices = assemble::notices(&registry, &settings.toolset);
        notices.iter().for_each(|notice| self.say(notice));
        if let Some(session) = &made.session {
            session.changed(assemble::setup(&config, &registry, &settings));
        }
        self.say("the files changed: what they say is in force from the next turn on");
        (made.config, made.registry, made.model) = (config, registry, model);
        settings
    }

    fn say(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() == TOLD_MAX {
            told.remove(0);
        }
        told.push(text.to_owned());
        drop(told);
        self.any_told.notify_one();
        (self.tell)(text);
    }
}

/// What is to be in force.
struct Next {
    config: Config,
    registry: Registry,
    model: Arc<dyn Model>,
}

impl NextTurn for Reload {
    fn refresh<'a>(&'a self, _: TurnView<'a>) -> BoxFuture<'a, Option<Settings>> {
        Box::pin(self.look(Rights::Asked))
    }

    fn begin<'a>(&'a self, _: &'a Arc<Settings>) -> BoxFuture<'a, Option<Settings>> {
        Box::pin(self.look(Rights::Asked))
    }
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}
