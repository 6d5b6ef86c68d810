//! `plugin.toml`, the author's file: what a plugin says of itself and which grants it wants.

use cofferdam_sandbox::{Metadata, Want};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What a plugin says of itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// Who wrote it.
    pub authors: Option<String>,
    /// Its licence, as an SPDX expression.
    pub licenses: Option<String>,
    /// Where to read about it.
    pub homepage: Option<String>,
    /// Where its source is.
    pub source: Option<String>,
    /// The revision of the source.
    pub revision: Option<String>,
    /// The grants that it wants; none by default.
    #[serde(default)]
    pub wants: Vec<Want>,
}

/// A manifest that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("read the manifest {}: {problem}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// It is none.
    #[error("{}: {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and what, with the line.
        problem: Box<toml::de::Error>,
    },
}

impl Manifest {
    /// Reads a manifest.
    pub fn read(path: &Path) -> Result<Self, ManifestError> {
        let text = std::fs::read_to_string(path)
            .map_err(|problem| ManifestError::Read { path: path.into(), problem })?;
        toml::from_str(&text).map_err(|problem| ManifestError::Format {
            path: path.into(),
            problem: Box::new(problem),
        })
    }

    /// The texts, as a component holds them.
    pub fn metadata(&self) -> Metadata {
        Metadata {
            name: Some(self.name.clone()),
            version: Some(self.version.clone()),
            description: Some(self.description.clone()),
            authors: self.authors.clone(),
            licenses: self.licenses.clone(),
            homepage: self.homepage.clone(),
            source: self.source.clone(),
            revision: self.revision.clone(),
        }
    }
}
