//! What the person said before, from run to run: a file of their own, one message a line as a JSON text.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Messages that are kept.
const KEPT: usize = 1_000;
/// Bytes of a message that is kept: what is longer was pasted.
const MESSAGE_BYTES_MAX: usize = 20_000;

/// The messages, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<String>,
    /// None where nothing is kept beyond this run.
    file: Option<PathBuf>,
}

impl History {
    /// For this run only.
    pub(crate) fn forgetful() -> Self {
        Self::default()
    }

    /// What the file holds. A file that is not there is empty; one that cannot be read or written is
    /// as none, because nobody asked for it.
    pub(crate) fn in_file(file: PathBuf) -> Self {
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let kept = &lines[lines.len().saturating_sub(KEPT)..];
        let messages = kept.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.len() > 2 * KEPT {
            // It is only shorter for it; a failure leaves it as it is.
            let _ = shorten(&file, kept);
        }
        Self { messages, file: Some(file) }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// One of them.
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        self.messages.get(at).map(String::as_str)
    }

    /// Keeps a message, unless it is the one before it.
    pub(super) fn push(&mut self, message: &str) {
        if message.trim().is_empty() || self.messages.last().is_some_and(|last| last == message) {
            return;
        }
        self.messages.push(message.to_owned());
        if let Some(file) = &self.file
            && message.len() <= MESSAGE_BYTES_MAX
        {
            // What cannot be kept is lost at the end of this run and not before.
            let _ = append(file, &line(message));
        }
    }
}

fn line(message: &str) -> String {
    format!("{}\n", serde_json::Value::from(message))
}

/// As one write, so that runs at the same time do not mix their lines.
fn append(file: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    private(OpenOptions::new().append(true), file)?.write_all(line.as_bytes())
}

fn shorten(file: &Path, lines: &[&str]) -> io::Result<()> {
    let short = file.with_extension(format!("{}.tmp", std::process::id()));
    let mut text = lines.join("\n");
    text.push('\n');
    private(OpenOptions::new().write(true).truncate(true), &short)?.write_all(text.as_bytes())?;
    std::fs::rename(&short, file)
}

/// A file for its owner alone.
fn private(options: &mut OpenOptions, file: &Path) -> io::Result<File> {
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(history: &History) -> Vec<&str> {
        (0..history.len()).filter_map(|at| history.get(at)).collect()
    }

    #[test]
    fn messages_come_back_whole_and_belong_to_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state/history.jsonl");
        let mut history = History::in_file(file.clone());
        for message in ["one", "two\nlines \u{1b}[2J", "two\nlines \u{1b}[2J", " ", "one"] {
            history.push(message);
        }
        history.push(&"x".repeat(MESSAGE_BYTES_MAX + 1));
        let again = History::in_file(file.clone());
        assert_eq!(all(&again), ["one", "two\nlines \u{1b}[2J", "one"]);
        assert_eq!(history.len(), 4, "what is too long for the file is there in this run");
        #[cfg(unix)]
        for (path, mode) in [(&*file, 0o600), (file.parent().expect("a folder"), 0o700)] {
            use std::os::unix::fs::PermissionsExt as _;
            let found = std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(found, mode, "{path:?}");
        }
    }

    #[test]
    fn a_damaged_file_costs_its_damaged_lines_and_a_long_one_is_shortened() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("history.jsonl");
        std::fs::write(&file, b"\"good\"\n{\n\xff\"bad\"\n\"cut").expect("written");
        assert_eq!(all(&History::in_file(file.clone())), ["good"]);
        let long: String = (0..2 * KEPT + 1).map(|at| line(&at.to_string())).collect();
        std::fs::write(&file, long).expect("written");
        assert_eq!(History::in_file(file.clone()).len(), KEPT);
        assert_eq!(std::fs::read_to_string(&file).expect("text").lines().count(), KEPT);
        assert_eq!(History::in_file(folder.path().to_path_buf()).len(), 0, "a folder is no file");
    }

    #[test]
    fn without_a_file_nothing_is_written() {
        let mut history = History::forgetful();
        history.push("secret");
        assert_eq!(all(&history), ["secret"]);
    }
}
