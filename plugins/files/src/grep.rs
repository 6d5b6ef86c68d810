//! `grep`: lines that match a regular expression, in one file or in a tree.

use std::fs;
use std::path::Path;

use cofferdam_plugin::{Deserialize, Failure, JsonSchema, Reply, Result, call, json};
use globset::GlobSet;
use regex::bytes::{Regex, RegexBuilder};

use crate::pattern;
use crate::root::{Access, Roots, failure};
use crate::walk::Walk;

pub(crate) const DESCRIPTION: &str = "Searches a file, or all text files of a tree, for a regular expression, line by \
    line. Returns `path:line: text` for each match. Leaves out binary files, and .git, target, node_modules and .venv \
    unless `skip` says otherwise. No look-around, no back-references.";

const MATCHES: usize = 100;
const MATCHES_MAX: usize = 1_000;
const CONTEXT_MAX: usize = 20;
const DEPTH_MAX: usize = 64;
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
const OUTPUT_BYTES_MAX: usize = 128 * 1024;
const LINE_CHARS_MAX: usize = 400;
const PROBE_BYTES: usize = 8 * 1024;
const FILES_PER_REPORT: usize = 200;

/// What the model passes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grep {
    /// A regular expression, such as `fn \w+_test`.
    pattern: String,
    /// The file or directory; the granted directory if absent.
    #[serde(default)]
    path: String,
    /// Only files that match this glob, such as `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// True if upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show before and after each match; none if absent.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// How many matches to return; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Globs to leave out, such as `*.lock` or `docs/**`; replaces the usual ones.
    skip: Option<Vec<String>>,
}

pub(crate) fn grep(roots: &Roots, args: &Grep) -> Result {
    let start = roots.resolve(&args.path, Access::Read)?;
    let explain = |error| failure(&error, &start, Access::Read);
    let regex = RegexBuilder::new(&args.pattern).case_insensitive(args.ignore_case).build();
    let regex = regex.map_err(|error| Failure::rejected(format!("pattern: {error}")))?;
    let glob = args.glob.as_ref().map(|glob| pattern::globs(&[glob])).transpose()?;
    let mut search = Search::new(regex, args);

    if start.metadata().map_err(explain)?.is_dir() {
        let skip = pattern::skip(args.skip.as_deref())?;
        let walk = Walk::new(&start, &skip, DEPTH_MAX).map_err(explain)?;
        search.tree(walk, glob.as_ref());
    } else {
        search.file(&start, &args.path);
    }
    Ok(search.reply())
}

/// What was found so far, and what was left out.
struct Search {
    regex: Regex,
    context: usize,
    limit: usize,
    lines: Vec<String>,
    bytes: usize,
    files: usize,
    matches: usize,
    binary: usize,
    large: usize,
    unreadable: usize,
    end: Option<&'static str>,
}

impl Search {
    fn new(regex: Regex, args: &Grep) -> Self {
        Self {
            regex,
            context: args.context.min(CONTEXT_MAX),
            limit: args.limit.unwrap_or(MATCHES).clamp(1, MATCHES_MAX),
            lines: Vec::new(),
            bytes: 0,
            files: 0,
            matches: 0,
            binary: 0,
            large: 0,
            unreadable: 0,
            end: None,
        }
    }

    fn tree(&mut self, mut walk: Walk<'_>, glob: Option<&GlobSet>) {
        for entry in walk.by_ref() {
            if call::is_cancelled() {
                self.end = Some("aborted");
            }
            if self.end.is_some() {
                break;
            }
            if entry.kind.is_file() && glob.is_none_or(|glob| glob.is_match(&entry.relative)) {
                self.file(&entry.path, &entry.relative);
            }
        }
        self.unreadable += walk.unreadable;
    }

    fn file(&mut self, path: &Path, name: &str) {
        match path.metadata() {
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => self.large += 1,
            _ => match fs::read(path) {
                Ok(bytes) => self.text(name, &bytes),
                Err(_) => self.unreadable += 1,
            },
        }
    }

    fn text(&mut self, name: &str, bytes: &[u8]) {
        if bytes[..bytes.len().min(PROBE_BYTES)].contains(&0) {
            self.binary += 1;
            return;
        }
        self.files += 1;
        if self.files % FILES_PER_REPORT == 0 {
            call::progress(format!(
                "{} files searched, {} matches, at {name}",
                self.files, self.matches
            ));
        }
        self.lines_of(name, bytes);
    }

    fn lines_of(&mut self, name: &str, bytes: &[u8]) {
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').map(without_return).collect();
        // The piece behind the last line end is no line.
        let count = lines.len() - usize::from(bytes.ends_with(b"\n") || bytes.is_empty());
        let mut shown = 0;
        for at in 0..count {
            if !self.regex.is_match(lines[at]) {
                continue;
            }
            if self.matches == self.limit {
                self.end = Some("there are more matches: narrow the pattern, or raise `limit`");
                return;
            }
            self.matches += 1;
            let first = at.saturating_sub(self.context).max(shown);
            let gap = shown == 0 || first > shown;
            if self.context > 0 && gap && !self.lines.is_empty() {
                self.show("--".to_owned());
            }
            for (line, text) in (first + 1..).zip(&lines[first..at]) {
                self.show(format!("{name}-{line}- {}", text_of(text)));
            }
            self.show(format!("{name}:{}: {}", at + 1, text_of(lines[at])));
            // What follows is shown as context unless it matches itself.
            shown = at + 1;
            while shown < count && shown <= at + self.context && !self.regex.is_match(lines[shown])
            {
                self.show(format!("{name}-{}- {}", shown + 1, text_of(lines[shown])));
                shown += 1;
            }
            if self.bytes > OUTPUT_BYTES_MAX {
                self.end = Some("the answer is long enough: narrow the pattern, or search below");
                return;
            }
        }
    }

    fn show(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push(line);
    }

    fn reply(mut self) -> Reply {
        let mut notes = vec![format!("{} matches in {} files searched", self.matches, self.files)];
        notes.extend(self.end.map(str::to_owned));
        for (count, what) in [
            (self.binary, "binary files skipped"),
            (self.large, "files above 8 MiB skipped"),
            (self.unreadable, "not readable"),
        ] {
            if count > 0 {
                notes.push(format!("{count} {what}"));
            }
        }
        self.lines.push(format!("[{}]", notes.join("; ")));
        Reply::text(self.lines.join("\n")).details(json!({
            "matches": self.matches,
            "files_searched": self.files,
            "complete": self.end.is_none(),
        }))
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn text_of(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_plugin::testing;

    fn search(args: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "fn one() {}\n// two\nfn two() {}\n\n\n\nfn three() {}\n")
            .unwrap();
        fs::write(root.join("b.txt"), "two\r\nTwo\r\n").unwrap();
        fs::write(root.join("c.bin"), b"two\0").unwrap();
        let roots = Roots::new(vec![root.to_owned()]).unwrap();
        let args = serde_json::from_str(args).unwrap();
        grep(&roots, &args).map_or_else(|failure| failure.message, |reply| reply.to_text())
    }

    #[test]
    fn a_tree_in_order() {
        assert_eq!(
            search(r#"{"pattern": "two"}"#),
            "b.txt:1: two\nsrc/a.rs:2: // two\nsrc/a.rs:3: fn two() {}\n\
             [3 matches in 2 files searched; 1 binary files skipped]"
        );
    }

    #[test]
    fn anchors_are_those_of_lines() {
        assert_eq!(search(r#"{"pattern": "^two$"}"#).lines().next(), Some("b.txt:1: two"));
        assert_eq!(
            search(r#"{"pattern": "^TWO$", "ignore_case": true, "glob": "*.txt"}"#).lines().count(),
            3
        );
    }

    #[test]
    fn globs_and_limits() {
        assert_eq!(
            search(r#"{"pattern": "fn", "glob": "src/*.rs", "limit": 1}"#),
            "src/a.rs:1: fn one() {}\n\
             [1 matches in 1 files searched; there are more matches: narrow the pattern, or raise `limit`]"
        );
    }

    #[test]
    fn context_is_shown_once() {
        assert_eq!(
            search(r#"{"pattern": "fn", "path": "src/a.rs", "context": 1}"#),
            "src/a.rs:1: fn one() {}\nsrc/a.rs-2- // two\nsrc/a.rs:3: fn two() {}\nsrc/a.rs-4- \n--\n\
             src/a.rs-6- \nsrc/a.rs:7: fn three() {}\n[3 matches in 1 files searched]"
        );
    }

    #[test]
    fn an_abort_ends_the_walk() {
        let _host = testing::host().cancelled();
        assert_eq!(search(r#"{"pattern": "two"}"#), "[0 matches in 0 files searched; aborted]");
    }

    #[test]
    fn a_bad_pattern_is_explained() {
        assert!(search(r#"{"pattern": "a("}"#).contains("unclosed group"));
    }
}
