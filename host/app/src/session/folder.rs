//! The folder of sessions: which there are, and which one is meant.

use super::SessionError;
use super::reader::Record;
use super::recorder::{Recorder, TimeSource};
use super::summary::Summary;
use jiff::Timestamp;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

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
        // The second, its microsecond, and chance: ids are in the order in which sessions began, and
        // two of one microsecond differ.
        let now = Timestamp::now();
        let microsecond = now.subsec_microsecond();
        let chance = RandomState::new().hash_one(std::process::id()) & 0xfff;
        let id = format!("{}-{microsecond:05x}{chance:03x}", now.strftime("%Y%m%d-%H%M%S"));
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
    /// one only, by the path of its file, or as `latest`: the one that was written to last.
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

    /// Of the sessions that were begun with this operator's file the one that was written to last,
    /// locked, to go on with it.
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

    /// What there is; what was written to last comes last.
    pub fn list(&self) -> Result<Vec<Listed>, SessionError> {
        let listed = |id: String| {
            let summary = Summary::read(&self.path_of(&id));
            Listed { id, summary }
        };
        Ok(self.ids()?.into_iter().map(listed).collect())
    }

    /// The ids in the order in which the files were last written to; of those that have the same
    /// time, in the order in which they began, which is that of their names.
    fn ids(&self) -> Result<Vec<String>, SessionError> {
        let failed = |problem| SessionError::Read { path: self.folder.clone(), problem };
        let entries = match std::fs::read_dir(&self.folder) {
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == ENDING)
                && let Some(id) = path.file_stem().and_then(|id| id.to_str())
            {
                // A file that says no time, or that is gone by now, is none to go on with.
                let written = entry.metadata().and_then(|file| file.modified());
                ids.push((written.unwrap_or(SystemTime::UNIX_EPOCH), id.to_owned()));
            }
        }
        ids.sort();
        Ok(ids.into_iter().map(|(_, id)| id).collect())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::format::Setup;
    use std::time::Duration;

    /// Sets when a session was last written to: seconds from a time long ago.
    fn written(sessions: &Sessions, id: &str, seconds: u64) {
        let file = std::fs::OpenOptions::new().append(true).open(sessions.path_of(id)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
        file.set_modified(time).unwrap();
    }

    #[test]
    fn the_latest_was_written_to_last_and_of_one_moment_begun_last() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = Sessions::at(folder.path().join("sessions"));
        sessions.make_folder().unwrap();
        let config = folder.path().join("cofferdam.toml");
        let setup = |config: &str| Setup { config: Some(config.into()), ..Setup::default() };
        let begin = |config: &str| {
            let session = sessions.fresh();
            session.begin(setup(config)).unwrap();
            session.id().to_owned()
        };
        // All within a second, as a script would.
        let of_config: Vec<String> = (0..20).map(|_| begin(&absolute(&config))).collect();
        let other = begin("/other.toml");
        let all: Vec<&String> = of_config.iter().chain([&other]).collect();
        let is_latest = |of_all: &str, of_config: &str| {
            assert_eq!(sessions.read("latest").unwrap().header.id, of_all);
            assert_eq!(sessions.open("latest").unwrap().id(), of_all);
            assert_eq!(sessions.list().unwrap().last().unwrap().id, of_all);
            assert_eq!(sessions.open_latest_of(&config).unwrap().id(), of_config);
        };
        for id in &all {
            written(&sessions, id, 0);
        }
        is_latest(&other, of_config.last().unwrap());
        let listed = sessions.list().unwrap();
        assert!(listed.iter().map(|one| &one.id).eq(all.iter().copied()), "as they began");
        // Whatever the order of their names, the one that was gone on with is the latest.
        for (id, seconds) in [(&of_config[7], 1), (&of_config[3], 2)] {
            written(&sessions, id, seconds);
            is_latest(id, id);
        }
        written(&sessions, &other, 3);
        is_latest(&other, &of_config[3]);
        drop(sessions.open(&of_config[5]).unwrap());
        is_latest(&other, &of_config[3]);
        sessions.open(&of_config[5]).unwrap().begin(setup(&absolute(&config))).unwrap();
        is_latest(&of_config[5], &of_config[5]);
    }
}
