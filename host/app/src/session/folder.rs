//! The folder of sessions: which there are, and which one is meant.

use super::SessionError;
use super::reader::Record;
use super::recorder::{Recorder, TimeSource};
use super::summary::Summary;
use jiff::Timestamp;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The ending of a session's file.
const ENDING: &str = "jsonl";

/// A folder of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    folder: PathBuf,
}

/// A file of the folder.
#[derive(Debug)]
pub struct Listed {
    /// The session's id.
    pub id: String,
    /// The session in short, or why it cannot be read.
    pub summary: Result<Summary, SessionError>,
}

impl Sessions {
    /// The sessions in this folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder, for its owner alone.
    pub fn make_folder(&self) -> Result<(), SessionError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(&self.folder);
        made.map_err(|problem| SessionError::Write { path: self.folder.clone(), problem })
    }

    /// A new session. Its file is made when it begins.
    pub fn fresh(&self) -> Recorder {
        // The second, and enough chance that two of one second differ.
        let chance = RandomState::new().hash_one(std::process::id()) & 0xff_ffff;
        let id = format!("{}-{chance:06x}", Timestamp::now().strftime("%Y%m%d-%H%M%S"));
        let path = self.path_of(&id);
        Recorder::fresh(id, path, system_time())
    }

    /// The session that is meant, locked, to go on with it. See [`Sessions::find`].
    pub fn open(&self, wanted: &str) -> Result<Recorder, SessionError> {
        Recorder::open(self.find(wanted)?, system_time())
    }

    /// What the session that is meant says. See [`Sessions::find`].
    pub fn read(&self, wanted: &str) -> Result<Record, SessionError> {
        read(&self.find(wanted)?)
    }

    /// The file of the session that is meant: by its id, by the beginning of its id if that fits
    /// one only, by the path of its file, or as `latest`.
    pub fn find(&self, wanted: &str) -> Result<PathBuf, SessionError> {
        let path = Path::new(wanted);
        if path.extension().is_some_and(|ending| ending == ENDING) && path.is_file() {
            return Ok(path.to_path_buf());
        }
        let ids = self.ids()?;
        if ids.iter().any(|id| id == wanted) {
            return Ok(self.path_of(wanted));
        }
        let folder = self.folder.clone();
        if wanted == "latest" {
            let latest = ids.last().ok_or(SessionError::None { folder })?;
            return Ok(self.path_of(latest));
        }
        let fitting: Vec<&String> =
            ids.iter().filter(|id| !wanted.is_empty() && id.starts_with(wanted)).collect();
        match fitting[..] {
            [id] => Ok(self.path_of(id)),
            [] => Err(SessionError::NotFound { wanted: wanted.into(), folder }),
            _ => Err(SessionError::Ambiguous { wanted: wanted.into(), fitting: fitting.len() }),
        }
    }

    /// The latest session that was begun with this operator's file, locked, to go on with it.
    pub fn open_latest_of(&self, config: &Path) -> Result<Recorder, SessionError> {
        let config = absolute(config);
        for id in self.ids()?.iter().rev() {
            let path = self.path_of(id);
            if Summary::read(&path).is_ok_and(|summary| summary.config.as_ref() == Some(&config)) {
                return Recorder::open(path, system_time());
            }
        }
        Err(SessionError::NoneOf { config, folder: self.folder.clone() })
    }

    /// What there is, the oldest first.
    pub fn list(&self) -> Result<Vec<Listed>, SessionError> {
        let listed = |id: String| {
            let summary = Summary::read(&self.path_of(&id));
            Listed { id, summary }
        };
        Ok(self.ids()?.into_iter().map(listed).collect())
    }

    /// The ids in the order of their times, which is that of their names.
    fn ids(&self) -> Result<Vec<String>, SessionError> {
        let failed = |problem| SessionError::Read { path: self.folder.clone(), problem };
        let entries = match std::fs::read_dir(&self.folder) {
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|ending| ending == ENDING)
                && let Some(id) = path.file_stem().and_then(|id| id.to_str())
            {
                ids.push(id.to_owned());
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn path_of(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ENDING}"))
    }
}

/// What a session file says.
pub fn read(path: &Path) -> Result<Record, SessionError> {
    let bytes =
        std::fs::read(path).map_err(|problem| SessionError::Read { path: path.into(), problem })?;
    Record::read(&bytes).map_err(|problem| SessionError::NoRecord { path: path.into(), problem })
}

/// The operator's file as sessions name it: the same from whatever folder it is used.
pub fn absolute(config: &Path) -> String {
    let path = std::fs::canonicalize(config).or_else(|_| std::path::absolute(config));
    path.unwrap_or_else(|_| config.to_path_buf()).display().to_string()
}

/// The system's clock, read once; from there on only forward.
fn system_time() -> TimeSource {
    let (start, began) = (Timestamp::now().as_microsecond(), Instant::now());
    let start = u64::try_from(start).unwrap_or(0);
    Box::new(move || start + u64::try_from(began.elapsed().as_micros()).unwrap_or(0))
}
