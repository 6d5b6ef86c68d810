//! `read_file`: a window of lines of a text file, however large the file is.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use cofferdam_plugin::{Deserialize, Failure, JsonSchema, Reply, Result, call, json};

use crate::root::{Access, Roots, failure};

pub(crate) const DESCRIPTION: &str = "Reads a text file, or a range of its lines, and says how many lines are left. \
    Lines are numbered unless `raw` is true. Binary files are refused.";

const LINES: u64 = 2_000;
const BYTES_MAX: usize = 128 * 1024;
/// Binary files have a NUL early on; text has none.
const PROBE_BYTES: usize = 8 * 1024;

/// What the model passes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFile {
    /// The file. Relative paths start at the granted directory.
    path: String,
    /// First line to read, counted from 1; the first of the file if absent.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// How many lines to read; 2000 if absent. At most 128 KiB are read at once.
    #[schemars(range(min = 1))]
    lines: Option<u64>,
    /// True for the text as it is, without line numbers.
    #[serde(default)]
    raw: bool,
}

pub(crate) fn read(roots: &Roots, args: &ReadFile) -> Result {
    let path = roots.resolve(&args.path, Access::Read)?;
    let explain = |error| failure(&error, &path, Access::Read);
    if path.is_dir() {
        return Err(explain(io::ErrorKind::IsADirectory.into()));
    }
    let mut file = BufReader::with_capacity(64 * 1024, File::open(&path).map_err(explain)?);
    let head = file.fill_buf().map_err(explain)?;
    if head[..head.len().min(PROBE_BYTES)].contains(&0) {
        let size = path.metadata().map_err(explain)?.len();
        let message =
            format!("`{}` is a binary file ({size} bytes); this tool reads text", args.path);
        return Err(Failure::rejected(message).code("binary"));
    }

    let first = args.from.unwrap_or(1).max(1);
    let window = Window::read(file, first, args.lines.unwrap_or(LINES)).map_err(explain)?;
    if window.total < first && first > 1 {
        let message =
            format!("`{}` has {} lines; there is no line {first}", args.path, window.total);
        return Err(Failure::rejected(message).code("beyond-end"));
    }
    let note = window.note();
    let mut text = window.text(args.raw);
    if !note.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    Ok(Reply::text(text).details(json!({
        "path": path.to_string_lossy(),
        "first_line": window.first,
        "last_line": window.last,
        "total_lines": window.total,
    })))
}

/// Some lines of a file, and how many there are in all.
struct Window {
    first: u64,
    /// Last line that is there, at least in part.
    last: u64,
    total: u64,
    bytes: Vec<u8>,
    /// The last line was too long and is not all there.
    cut: bool,
    /// The total is only what was counted before the call was aborted.
    stopped: bool,
}

impl Window {
    /// Goes through the whole file, since the total is wanted, but keeps only the window.
    fn read(mut file: impl BufRead, first: u64, lines: u64) -> io::Result<Self> {
        let end = first.saturating_add(lines);
        let mut window = Self {
            first,
            last: first.saturating_sub(1),
            total: 0,
            bytes: Vec::new(),
            cut: false,
            stopped: false,
        };
        let mut line = 1;
        let mut full = false;
        let mut chunks = 0_u32;
        loop {
            let chunk = file.fill_buf()?;
            if chunk.is_empty() {
                return Ok(window);
            }
            for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                window.total = line;
                if (first..end).contains(&line) && !full {
                    let room = BYTES_MAX - window.bytes.len();
                    window.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                    full = piece.len() >= room;
                    window.cut = piece.len() > room;
                    window.last = line;
                }
                line += u64::from(piece.ends_with(b"\n"));
            }
            let read = chunk.len();
            file.consume(read);
            chunks += 1;
            if chunks % 64 == 0 && call::is_cancelled() {
                window.stopped = true;
                return Ok(window);
            }
        }
    }

    fn text(&self, raw: bool) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        if raw {
            return text.into_owned();
        }
        let width = self.last.to_string().len();
        let numbered = |(line, text): (u64, &str)| format!("{line:>width$}  {text}");
        (self.first..).zip(text.lines()).map(numbered).collect::<Vec<_>>().join("\n")
    }

    /// What is not there, and how to get it.
    fn note(&self) -> String {
        let mut notes = Vec::new();
        if self.total == 0 {
            notes.push("the file is empty".to_owned());
        }
        if self.cut {
            notes.push(format!("line {} is cut at {BYTES_MAX} bytes", self.last));
        }
        let left = self.total.saturating_sub(self.last);
        if left > 0 {
            let next = self.last + 1;
            let (first, last, total) = (self.first, self.last, self.total);
            notes.push(format!(
                "lines {first} to {last} of {total}; {left} left, go on with \"from\": {next}"
            ));
        }
        if self.stopped {
            notes.push("aborted while counting lines".to_owned());
        }
        if notes.is_empty() { String::new() } else { format!("[{}]", notes.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(content: &[u8], args: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a"), content).unwrap();
        let roots = Roots::new(vec![directory.path().to_owned()]).unwrap();
        let args = serde_json::from_str(args).unwrap();
        let text =
            read(&roots, &args).map_or_else(|failure| failure.message, |reply| reply.to_text());
        assert_eq!(text, expected);
    }

    #[test]
    fn windows() {
        check(b"one\ntwo\nthree\n", r#"{"path": "a"}"#, "1  one\n2  two\n3  three");
        check(b"one\ntwo\nthree", r#"{"path": "a", "raw": true}"#, "one\ntwo\nthree");
        check(
            b"one\ntwo\nthree\n",
            r#"{"path": "a", "from": 2, "lines": 1}"#,
            "2  two\n[lines 2 to 2 of 3; 1 left, go on with \"from\": 3]",
        );
        check(b"one\n", r#"{"path": "a", "from": 9}"#, "`a` has 1 lines; there is no line 9");
        check(b"", r#"{"path": "a"}"#, "[the file is empty]");
    }

    #[test]
    fn binary_is_refused() {
        check(
            b"\x7fELF\0\0",
            r#"{"path": "a"}"#,
            "`a` is a binary file (6 bytes); this tool reads text",
        );
    }

    #[test]
    fn what_is_no_utf8_is_marked() {
        check(b"caf\xe9\n", r#"{"path": "a"}"#, "1  caf\u{fffd}");
    }

    #[test]
    fn a_long_line_is_cut() {
        let content = [vec![b'x'; BYTES_MAX + 5], b"\nlast\n".to_vec()].concat();
        let window = Window::read(&content[..], 1, LINES).unwrap();
        assert_eq!(
            (window.bytes.len(), window.cut, window.last, window.total),
            (BYTES_MAX, true, 1, 2)
        );
    }

    #[test]
    fn a_missing_file_is_the_models_to_correct() {
        let directory = tempfile::tempdir().unwrap();
        let roots = Roots::new(vec![directory.path().to_owned()]).unwrap();
        let args = serde_json::from_str(r#"{"path": "b"}"#).unwrap();
        assert_eq!(read(&roots, &args).unwrap_err().code.unwrap(), "not-found");
    }
}
