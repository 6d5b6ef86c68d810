//! Compiled code on disk, so that a start maps it instead of compiling.
//!
//! An entry is two files in a private folder: the compiled code, and an index that was written with
//! it. The key holds the digest of the plugin's file, the engine's version and settings and the
//! features of the processor, so that an entry fits or is not found. The code is trusted while the
//! file system says that it is the file of the index; when that differs its whole hash decides.
//! Whatever is wrong with an entry, it is a miss: never an error, and never run.
//!
//! The folder is private because compiled code is trusted like the host itself: whoever can act as
//! the same user can forge an entry, as he could replace the host.

mod sources;
mod stamp;
mod verify;

pub use verify::CacheReport;

use crate::compile::Artifact;
use crate::inspect::{Inspection, hex};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use stamp::Stamp;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where compiled code is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheConfig {
    /// The folder; made with mode 0700 if it is not there. One that others may enter is not used.
    pub dir: PathBuf,
    /// MiB of compiled code, above which the longest unused goes.
    pub size_mib: u64,
}

/// A folder of compiled code.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
    bytes_max: u64,
}

/// What is written beside compiled code.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    key: String,
    code: Stamp,
    code_sha256: String,
    about: About,
}

/// What a hit tells of the plugin, so that its file need not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct About {
    /// Whether its file is WebAssembly text.
    pub(crate) text: bool,
    pub(crate) inspection: Inspection,
}

/// Compiled code that is there and intact.
pub(crate) struct Hit {
    pub(crate) code: PathBuf,
    pub(crate) size: u64,
    pub(crate) about: About,
}

/// Bumped when the meaning of an entry changes; part of every key.
const FORMAT: u32 = 1;
/// More than any index has: a file that never ends is no way to fill the host's memory.
const INDEX_BYTES_MAX: u64 = 4 << 20;
/// How precisely the last use of an entry is known.
const USE_NOTED_EVERY: Duration = Duration::from_secs(600);
/// After which something half written is somebody's remains.
const STALE_AFTER: Duration = Duration::from_secs(3_600);

impl Cache {
    /// Opens the folder, or says why it cannot be used.
    pub(crate) fn open(config: &CacheConfig) -> Result<Self, String> {
        let dir = &config.dir;
        let refuse = |problem: &dyn std::fmt::Display| {
            format!("the folder of compiled code, {}, is not used: {problem}", dir.display())
        };
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent).map_err(|error| refuse(&error))?;
        }
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(refuse(&error));
            }
            _ => {}
        }
        private_folder(dir).map_err(|problem| refuse(&problem))?;
        Ok(Self { dir: dir.clone(), bytes_max: config.size_mib.saturating_mul(1 << 20) })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The name of the entry for a plugin file on an engine: whatever changes the compiled code, or
    /// what is known of the plugin beside it, changes the name.
    pub(crate) fn key(file_sha256: &str, engine: &[u8; 32], offered: &[&str]) -> String {
        let mut hash = Sha256::new();
        hash.update(FORMAT.to_le_bytes());
        hash.update(engine);
        for part in [file_sha256].iter().chain(offered) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(&hash.finalize())
    }

    /// The entry of this key, if it is there and intact.
    pub(crate) fn find(&self, key: &str) -> Option<Hit> {
        let index: Index = read_index(&self.index_path(key))?;
        let code = self.code_path(key);
        let found = Stamp::at(&code).ok()?;
        let size = found.size;
        let intact = index.key == key
            && found.is_private_file()
            && (found == index.code || self.mend(key, &index, found).is_some());
        if !intact {
            self.remove(key);
            return None;
        }
        self.note_use(key);
        Some(Hit { code, size, about: index.about })
    }

    /// Keeps compiled code. `None` if it could not be kept, whatever the reason: the plugin runs
    /// all the same.
    pub(crate) fn keep(&self, key: &str, artifact: &Artifact, about: About) -> Option<PathBuf> {
        let kept = self.write(key, artifact, about).ok();
        self.evict(key);
        kept
    }

    fn write(&self, key: &str, artifact: &Artifact, about: About) -> io::Result<PathBuf> {
        let aside = tempfile::Builder::new().prefix(HALF_WRITTEN).tempfile_in(&self.dir)?;
        let mut file = aside.as_file();
        match artifact {
            Artifact::Bytes(bytes) => file.write_all(bytes)?,
            Artifact::File(compiled) => {
                io::copy(&mut File::open(compiled.path())?, &mut file)?;
            }
        }
        // A crash of the machine must not leave an index that vouches for what was never written.
        file.sync_all()?;
        let code_sha256 = file_sha256(&mut File::open(aside.path())?)?;
        let code = self.code_path(key);
        aside.persist(&code).map_err(|failed| failed.error)?;
        self.write_index(&Index { key: key.into(), code: Stamp::at(&code)?, code_sha256, about })?;
        Ok(code)
    }

    fn write_index(&self, index: &Index) -> io::Result<()> {
        write_whole(&self.dir, &self.index_path(&index.key), index)
    }

    /// A file that is not the one of the index has the same content, or is not used.
    fn mend(&self, key: &str, index: &Index, found: Stamp) -> Option<()> {
        if found.size != index.code.size {
            return None;
        }
        let mut file = open_existing(&self.code_path(key)).ok()?;
        let same =
            Stamp::of(&file).ok()? == found && file_sha256(&mut file).ok()? == index.code_sha256;
        if same {
            let about = index.about.clone();
            let code_sha256 = index.code_sha256.clone();
            // If it cannot be written it is hashed again next time.
            let _ = self.write_index(&Index { key: key.into(), code: found, code_sha256, about });
        }
        same.then_some(())
    }

    /// Forgets an entry, such as one that the engine refuses.
    pub(crate) fn remove(&self, key: &str) {
        for path in [self.index_path(key), self.code_path(key)] {
            // What cannot be removed stays a miss.
            let _ = fs::remove_file(path);
        }
    }

    fn note_use(&self, key: &str) {
        let Ok(index) = OpenOptions::new().append(true).open(self.index_path(key)) else { return };
        let noted = index.metadata().and_then(|found| found.modified());
        if noted.is_ok_and(|noted| age(noted) > USE_NOTED_EVERY) {
            // Only eviction looks at it.
            let _ = index.set_modified(SystemTime::now());
        }
    }

    /// Makes room: the longest unused entries go, never the one that was just written, and remains
    /// of writers that died.
    fn evict(&self, just_written: &str) {
        let mut entries = Vec::new();
        for file in self.files() {
            let Some((key, kind)) = file.name.rsplit_once('.') else {
                if file.name.starts_with(HALF_WRITTEN) && age(file.modified) > STALE_AFTER {
                    let _ = fs::remove_file(self.dir.join(&file.name));
                }
                continue;
            };
            if kind == CODE {
                let used = fs::metadata(self.index_path(key)).and_then(|index| index.modified());
                match used {
                    Ok(used) => entries.push((used, file.size, key.to_owned())),
                    Err(_) if age(file.modified) > STALE_AFTER => self.remove(key),
                    Err(_) => {}
                }
            }
        }
        entries.sort();
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        for (_, size, key) in entries {
            if total <= self.bytes_max {
                break;
            }
            if key != just_written {
                self.remove(&key);
                total -= size;
            }
        }
        self.evict_sources();
    }

    /// The files of the folder.
    fn files(&self) -> impl Iterator<Item = Found> {
        fs::read_dir(&self.dir).into_iter().flatten().filter_map(|file| {
            let file = file.ok()?;
            let found = file.metadata().ok()?;
            Some(Found {
                name: file.file_name().into_string().ok()?,
                size: found.len(),
                modified: found.modified().ok()?,
            })
        })
    }

    fn index_path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.{INDEX}"))
    }

    fn code_path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.{CODE}"))
    }
}

const CODE: &str = "cwasm";
const INDEX: &str = "index";
const HALF_WRITTEN: &str = "half-written-";

struct Found {
    name: String,
    size: u64,
    modified: SystemTime,
}

/// Whether only this user can enter the folder and put something into it.
fn private_folder(dir: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(dir).map_err(|error| error.to_string())?;
    match () {
        () if !found.is_dir() => Err("it is not a folder".into()),
        () if found.uid() != stamp::user() => Err(format!(
            "it belongs to the user {}, and this process is {}",
            found.uid(),
            stamp::user()
        )),
        () if found.mode() & 0o077 != 0 => {
            Err(format!("others may enter it; make it private with: chmod 700 {}", dir.display()))
        }
        () => Ok(()),
    }
}

/// Opens an ordinary file and nothing else: no link is followed, and no pipe waited for.
fn open_existing(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn read_index<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let file = open_existing(path).ok()?;
    if !Stamp::of(&file).ok()?.is_private_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(INDEX_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Replaces a small file as a whole, so that a reader sees the old one or the new one.
fn write_whole(dir: &Path, path: &Path, content: &impl Serialize) -> io::Result<()> {
    let mut aside = tempfile::Builder::new().prefix(HALF_WRITTEN).tempfile_in(dir)?;
    serde_json::to_writer(&mut aside, content)?;
    aside.persist(path).map(drop).map_err(|failed| failed.error)
}

fn file_sha256(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn age(then: SystemTime) -> Duration {
    then.elapsed().unwrap_or_default()
}
