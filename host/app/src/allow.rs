//! `plugin allow`: a component on the operator's list, with its digest. What it may touch is what
//! the operator's file says; what it wants beyond that is shown, and stays off until it is granted.

mod entry;
mod ledger;

pub use ledger::Ledger;

use crate::config::{Config, ConfigError, PluginEntry};
use crate::oci::{Pulled, Reference};
use crate::offer::Offer;
use cofferdam_sandbox::{GrantError, Grants, Inspection, Refused, Want, inspect};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder, beside the operator's file, of components that came from a registry.
pub const FETCHED_DIR: &str = ".cofferdam/plugins";

/// A component and where it is from.
#[derive(Debug)]
pub enum Candidate {
    /// A file, and what was read from it.
    File(PathBuf, Vec<u8>),
    /// A registry had it.
    Pulled(Pulled),
}

/// A component that is about to be allowed.
#[derive(Debug)]
pub struct Proposal {
    /// The operator's file.
    pub config: PathBuf,
    /// The operator's name for the plugin.
    pub name: String,
    /// The component's file. One from a registry is written there when it is allowed.
    pub file: PathBuf,
    /// Where the component came from, if not from a file of this machine.
    pub source: Option<Reference>,
    /// What the component is.
    pub inspection: Inspection,
    /// The entry that is there already.
    pub entry: Option<PluginEntry>,
    /// What was known of the component that is in force.
    pub before: Option<Known>,
    /// What is known of the new one.
    pub now: Known,
    bytes: Vec<u8>,
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
    #[error("{candidate} is no plugin for this host: {problem}")]
    Refused {
        /// The file, or where it came from.
        candidate: String,
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
    /// What came from a registry cannot be kept.
    #[error("keep the component in {}: {problem}", path.display())]
    Keep {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// A grant cannot be given as asked.
    #[error(transparent)]
    Grant(#[from] GrantError),
}

impl Proposal {
    /// Looks at a component, and at what the operator's file says of it. The operator's file need not
    /// be there.
    pub fn new(
        config: &Path,
        candidate: Candidate,
        name: Option<&str>,
        ledger: &Ledger,
    ) -> Result<Self, AllowError> {
        let inspection = inspect(candidate.bytes())
            .map_err(|problem| AllowError::Refused { candidate: candidate.shown(), problem })?;
        let current = match config.exists() {
            true => Some(Config::read(config)?),
            false => None,
        };
        let of_candidate = || candidate.entry(current.as_ref()?);
        let name = match (name, of_candidate()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(entry)) => entry.name.clone(),
            (None, None) => default_name(&inspection, &candidate.stem()),
        };
        let named =
            |config: &Config| config.plugins.iter().find(|entry| entry.name == name).cloned();
        let entry = current.as_ref().and_then(named);
        let before = entry.as_ref().and_then(|entry| ledger.find(entry.sha256.as_deref()?));
        let now = Known::of(&inspection);
        let (file, source, bytes) = match candidate {
            Candidate::File(file, bytes) => (file, None, bytes),
            Candidate::Pulled(Pulled { source, bytes }) => {
                let folder = config.parent().unwrap_or(Path::new(""));
                (folder.join(fetched(&name, &inspection)), Some(source), bytes)
            }
        };
        Ok(Self {
            config: config.into(),
            name,
            file,
            source,
            inspection,
            entry,
            before,
            now,
            bytes,
        })
    }

    /// The component.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What names the component on the command line.
    pub fn candidate(&self) -> String {
        match &self.source {
            Some(source) => source.to_string(),
            None => self.file.display().to_string(),
        }
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
    /// file stays as it is. A component from a registry is written first, beside those that came before:
    /// a host that runs goes on with the one that it has. Returns the line of the entry.
    pub fn write(&self, grants: &[String], ledger: &Ledger) -> Result<usize, AllowError> {
        let (text, line) = self.edited(grants)?;
        // Nothing is written that could not be read back.
        Config::parse(&text, &self.config)?;
        if self.source.is_some() {
            keep(&self.file, &self.bytes)
                .map_err(|problem| AllowError::Keep { path: self.file.clone(), problem })?;
        }
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
        let source = self.source.as_ref().map(Reference::to_string);
        let path = match source {
            Some(_) => fetched(&self.name, &self.inspection),
            None => entry::path_from(&self.config, &self.file),
        };
        let change = entry::Change {
            name: &self.name,
            path: &path,
            sha256: &self.inspection.sha256,
            source: source.as_deref(),
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

impl Candidate {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::File(_, bytes) | Self::Pulled(Pulled { bytes, .. }) => bytes,
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::File(file, _) => file.display().to_string(),
            Self::Pulled(pulled) => pulled.source.to_string(),
        }
    }

    /// The entry that this is another version of: of the same file, or from the same repository.
    fn entry<'a>(&self, config: &'a Config) -> Option<&'a PluginEntry> {
        match self {
            Self::File(file, _) => config.plugin_at(file),
            Self::Pulled(pulled) => config.plugins.iter().find(|entry| {
                let source = entry.source.as_deref().and_then(|source| source.parse().ok());
                source.is_some_and(|source: Reference| source.is_beside(&pulled.source))
            }),
        }
    }

    fn stem(&self) -> String {
        match self {
            Self::File(file, _) => {
                file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Pulled(pulled) => pulled.source.name().into(),
        }
    }
}

/// The plugin's own name where it does for one, else that of where it lies.
fn default_name(inspection: &Inspection, stem: &str) -> String {
    let own = inspection.metadata.name.as_deref().filter(|name| crate::config::is_plain_name(name));
    own.unwrap_or(stem).into()
}

/// The path of a component from a registry, from the folder of the operator's file. It names the
/// component by its digest, so that an older one stays where it is.
fn fetched(name: &str, inspection: &Inspection) -> String {
    format!("{FETCHED_DIR}/{name}-{}.wasm", inspection.sha256.get(..16).unwrap_or_default())
}

/// Writes a component, unless it is there.
fn keep(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::read(file).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    entry::replace_bytes(file, bytes)
}
