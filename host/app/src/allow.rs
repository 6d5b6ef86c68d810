//! `plugin allow`: a component on the operator's list, with its digest. What it may touch is what
//! the operator's file says; what it wants beyond that is shown, and stays off until it is granted.

mod entry;
mod ledger;

pub use ledger::Ledger;

use crate::config::{Config, ConfigError, PluginEntry};
use crate::offer::Offer;
use cofferdam_sandbox::{GrantError, Grants, Inspection, Refused, Want, inspect};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A component that is about to be allowed.
#[derive(Debug)]
pub struct Proposal {
    /// The operator's file.
    pub config: PathBuf,
    /// The operator's name for the plugin.
    pub name: String,
    /// The component's file.
    pub file: PathBuf,
    /// Where the component came from, if not from a file of this machine.
    pub source: Option<String>,
    /// What the component is.
    pub inspection: Inspection,
    /// The entry that is there already.
    pub entry: Option<PluginEntry>,
    /// What was known of the component that is in force.
    pub before: Option<Known>,
    /// What is known of the new one.
    pub now: Known,
}

/// What is known of an allowed component, to tell what another one has beyond it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Known {
    /// Its own version.
    pub version: Option<String>,
    /// Interfaces that it exports.
    pub exports: BTreeSet<String>,
    /// Interfaces that it imports.
    pub imports: BTreeSet<String>,
    /// Its tools.
    pub tools: BTreeSet<String>,
    /// The grants that it wants, as the command line takes them.
    pub wants: BTreeSet<String>,
}

/// A component that cannot be allowed.
#[derive(Debug, thiserror::Error)]
pub enum AllowError {
    /// It is no plugin.
    #[error("{} is no plugin for this host: {problem}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        problem: Refused,
    },
    /// The operator's file is not as it must be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The operator's file cannot be changed.
    #[error("{}: {problem}", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why not, and what would do.
        problem: String,
    },
    /// A grant cannot be given as asked.
    #[error(transparent)]
    Grant(#[from] GrantError),
}

impl Proposal {
    /// Looks at a component, the bytes of `file`, and at what the operator's file says of it. The
    /// operator's file need not be there.
    pub fn new(
        config: &Path,
        file: &Path,
        bytes: &[u8],
        name: Option<&str>,
        ledger: &Ledger,
    ) -> Result<Self, AllowError> {
        let inspection =
            inspect(bytes).map_err(|problem| AllowError::Refused { path: file.into(), problem })?;
        let current = match config.exists() {
            true => Some(Config::read(config)?),
            false => None,
        };
        let by_path = || current.as_ref()?.plugin_at(file);
        let name = match (name, by_path()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(entry)) => entry.name.clone(),
            (None, None) => default_name(&inspection, file),
        };
        let named =
            |config: &Config| config.plugins.iter().find(|entry| entry.name == name).cloned();
        let entry = current.as_ref().and_then(named);
        let before = entry.as_ref().and_then(|entry| ledger.find(entry.sha256.as_deref()?));
        let now = Known::of(&inspection);
        Ok(Self {
            config: config.into(),
            name,
            file: file.into(),
            source: None,
            inspection,
            entry,
            before,
            now,
        })
    }

    /// Adds the tools to what is known.
    pub fn with_offer(mut self, offer: &Offer) -> Self {
        self.now.tools = offer.names().into_iter().collect();
        self
    }

    /// Whether exactly this component is allowed already.
    pub fn is_in_force(&self) -> bool {
        self.entry
            .as_ref()
            .and_then(|entry| entry.sha256.as_deref())
            .is_some_and(|pinned| pinned.eq_ignore_ascii_case(&self.inspection.sha256))
    }

    /// The wants that the entry does not satisfy: they stay off unless they are granted.
    pub fn ungranted(&self) -> Vec<&Want> {
        let none = Grants::default();
        let grants = self.entry.as_ref().map_or(&none, |entry| &entry.grants);
        let wants = self.inspection.wants.iter().flatten();
        wants.filter(|want| !grants.satisfy(want)).collect()
    }

    /// The entry as it would be written, without writing it.
    pub fn preview(&self, grants: &[String]) -> Result<String, AllowError> {
        Ok(self.edited(grants)?.0)
    }

    /// Writes the entry: the digest, and these grants beside those that are there. The rest of the
    /// file stays as it is. Returns the line of the entry.
    pub fn write(&self, grants: &[String], ledger: &Ledger) -> Result<usize, AllowError> {
        let (text, line) = self.edited(grants)?;
        // Nothing is written that could not be read back.
        Config::parse(&text, &self.config)?;
        entry::replace(&self.config, &text).map_err(|problem| self.edit(problem.to_string()))?;
        ledger.keep(&self.inspection.sha256, &self.now);
        Ok(line)
    }

    fn edited(&self, grants: &[String]) -> Result<(String, usize), AllowError> {
        let mut given = Grants::default();
        grants.iter().try_for_each(|pair| given.add_pair(pair))?;
        let old = match std::fs::read_to_string(&self.config) {
            Ok(text) => text,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => {
                entry::NEW_FILE.into()
            }
            Err(problem) => return Err(self.edit(problem.to_string())),
        };
        let change = entry::Change {
            name: &self.name,
            path: &entry::path_from(&self.config, &self.file),
            sha256: &self.inspection.sha256,
            source: self.source.as_deref(),
            grants: &given,
        };
        change.apply(&old).map_err(|problem| self.edit(problem))
    }

    fn edit(&self, problem: String) -> AllowError {
        AllowError::Edit { path: self.config.clone(), problem }
    }
}

impl Known {
    fn of(inspection: &Inspection) -> Self {
        Self {
            version: inspection.metadata.version.clone(),
            exports: inspection.exports.iter().cloned().collect(),
            imports: inspection.imports.iter().cloned().collect(),
            tools: BTreeSet::new(),
            wants: inspection.wants.iter().flatten().map(Want::pair).collect(),
        }
    }
}

/// The plugin's own name where it does for one, else that of its file.
fn default_name(inspection: &Inspection, file: &Path) -> String {
    let own = inspection.metadata.name.as_deref().filter(|name| crate::config::is_plain_name(name));
    match own {
        Some(name) => name.into(),
        None => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    }
}
