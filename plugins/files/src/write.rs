//! `write_file`: whole files, one write after the other.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cofferdam_plugin::{Deserialize, Failure, JsonSchema, Reply, Result, json};

use crate::root::{Access, Roots, failure};

pub(crate) const DESCRIPTION: &str = "Writes a text file and makes the directories above it. `mode` is `overwrite` \
    (the default; the file is replaced whole), `create` (fails if the file exists) or `append`.";

const BYTES_MAX: usize = 4 * 1024 * 1024;

/// What the model passes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFile {
    /// The file. Relative paths start at the granted directory.
    path: String,
    /// The text, as it shall be in the file.
    content: String,
    /// What to do if the file exists.
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Overwrite,
    Create,
    Append,
}

pub(crate) fn write(roots: &Roots, args: &WriteFile) -> Result {
    let path = roots.resolve(&args.path, Access::Write)?;
    let explain = |error| failure(&error, &path, Access::Write);
    let bytes = args.content.as_bytes();
    if bytes.len() > BYTES_MAX {
        return Err(Failure::rejected(format!(
            "at most {BYTES_MAX} bytes at once; write the rest with `append`"
        )));
    }
    if path.is_dir() || args.path.ends_with('/') {
        return Err(explain(io::ErrorKind::IsADirectory.into()));
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(explain)?;
    }
    // A link counts, wherever it leads: it is what is replaced.
    let existed = path.symlink_metadata().is_ok();
    match args.mode {
        Mode::Overwrite => replace(&path, bytes),
        Mode::Create => OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|file| fill(file, bytes)),
        Mode::Append => OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|file| fill(file, bytes)),
    }
    .map_err(explain)?;

    let what = match (args.mode, existed) {
        (Mode::Append, true) => "appended to",
        (_, true) => "replaced",
        (_, false) => "created",
    };
    let count = bytes.len();
    Ok(Reply::text(format!("{what} `{}`, {count} bytes", path.display())).details(json!({
        "path": path.to_string_lossy(),
        "bytes": count,
        "existed": existed,
    })))
}

fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Writes beside the file and renames, so that a reader, or a call that is stopped halfway, sees
/// the old file or the new one. A link in its place is replaced, not followed.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let done = fill(file, bytes).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // The failure that matters is reported already.
        let _ = fs::remove_file(&beside);
    }
    done
}

/// A name that nobody else uses at the same time: other agents may share the directory.
fn beside(path: &Path) -> PathBuf {
    let random = RandomState::new().build_hasher().finish();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{random:016x}.part"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn attempt(directory: &TempDir, args: &str) -> String {
        let roots = Roots::new(vec![directory.path().to_owned()]).unwrap();
        let args = serde_json::from_str(args).unwrap();
        write(&roots, &args).map_or_else(|failure| failure.code.unwrap(), |reply| reply.to_text())
    }

    #[test]
    fn the_three_modes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/a.txt");
        let read = || fs::read_to_string(&file).unwrap();
        assert!(
            attempt(&directory, r#"{"path": "new/a.txt", "content": "one"}"#)
                .starts_with("created")
        );
        assert!(
            attempt(&directory, r#"{"path": "new/a.txt", "content": "two"}"#)
                .starts_with("replaced")
        );
        assert_eq!(read(), "two");
        assert!(
            attempt(&directory, r#"{"path": "new/a.txt", "content": "!", "mode": "append"}"#)
                .starts_with("appended")
        );
        assert_eq!(read(), "two!");
        assert_eq!(
            attempt(&directory, r#"{"path": "new/a.txt", "content": "", "mode": "create"}"#),
            "exists"
        );
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "nothing is left beside the file"
        );
    }

    #[test]
    fn not_over_a_directory_and_not_outside() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(attempt(&directory, r#"{"path": ".", "content": ""}"#), "is-directory");
        assert_eq!(attempt(&directory, r#"{"path": "x/", "content": ""}"#), "is-directory");
        assert_eq!(attempt(&directory, r#"{"path": "../x", "content": ""}"#), "outside-grant");
    }
}
