//! `list_dir`: what is in a directory, or in the tree below it.

use std::path::Path;

use cofferdam_plugin::{Deserialize, JsonSchema, Reply, Result, call, json};

use crate::pattern;
use crate::root::{Access, Roots, failure};
use crate::walk::{Entry, Walk};

pub(crate) const DESCRIPTION: &str = "Lists a directory, sorted by name: `name/` is a directory, `name@` a link, \
    files have their size. With `recursive`, the whole tree below. Leaves out .git, target, node_modules and .venv \
    unless `skip` says otherwise.";

const ENTRIES: usize = 500;
const ENTRIES_MAX: usize = 5_000;
const DEPTH: usize = 8;
const DEPTH_MAX: usize = 64;

/// What the model passes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListDir {
    /// The directory; the granted one if absent.
    #[serde(default)]
    path: String,
    /// True to go into directories.
    #[serde(default)]
    recursive: bool,
    /// How deep to go if recursive; 8 if absent.
    #[schemars(range(min = 1, max = 64))]
    depth: Option<usize>,
    /// How many entries to list; 500 if absent.
    #[schemars(range(min = 1, max = 5000))]
    limit: Option<usize>,
    /// Globs to leave out, such as `*.lock` or `docs/**`; replaces the usual ones.
    skip: Option<Vec<String>>,
}

pub(crate) fn list(roots: &Roots, args: &ListDir) -> Result {
    let path = roots.resolve(&args.path, Access::Read)?;
    let skip = pattern::skip(args.skip.as_deref())?;
    let depth = if args.recursive { args.depth.unwrap_or(DEPTH).clamp(1, DEPTH_MAX) } else { 1 };
    let limit = args.limit.unwrap_or(ENTRIES).clamp(1, ENTRIES_MAX);

    let mut walk =
        Walk::new(&path, &skip, depth).map_err(|error| failure(&error, &path, Access::Read))?;
    let mut lines = Vec::new();
    while lines.len() < limit && !call::is_cancelled() {
        let Some(entry) = walk.next() else { break };
        lines.push(line(&entry));
    }
    let entries = lines.len();
    let more = walk.next().is_some();
    if more {
        lines.push(format!(
            "[more than {entries} entries; list a directory below, or raise `limit`]"
        ));
    }
    if walk.unreadable > 0 {
        lines.push(format!("[{} directories could not be read]", walk.unreadable));
    }
    if lines.is_empty() {
        lines.push("[nothing here, or all of it is skipped]".to_owned());
    }
    let details = json!({ "path": path.to_string_lossy(), "entries": entries, "more": more });
    Ok(Reply::text(lines.join("\n")).details(details))
}

fn line(entry: &Entry) -> String {
    let name = &entry.relative;
    match entry.kind {
        kind if kind.is_dir() => format!("{name}/"),
        kind if kind.is_symlink() => format!("{name}@"),
        _ => format!("{name}  {}", size(&entry.path)),
    }
}

fn size(path: &Path) -> String {
    path.metadata().map_or_else(|_| "?".to_owned(), |metadata| metadata.len().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(args: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in ["b.txt", "a/x.rs", "a/deep/y.rs", ".git/HEAD"] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "four").unwrap();
        }
        let roots = Roots::new(vec![root.to_owned()]).unwrap();
        let args = serde_json::from_str(args).unwrap();
        let text =
            list(&roots, &args).map_or_else(|failure| failure.message, |reply| reply.to_text());
        assert_eq!(text, expected);
    }

    #[test]
    fn one_directory() {
        check("{}", "a/\nb.txt  4");
        check(r#"{"path": "a"}"#, "deep/\nx.rs  4");
    }

    #[test]
    fn a_tree_with_its_bounds() {
        check(r#"{"recursive": true}"#, "a/\na/deep/\na/deep/y.rs  4\na/x.rs  4\nb.txt  4");
        check(
            r#"{"recursive": true, "depth": 2, "skip": [".git", "*.txt"]}"#,
            "a/\na/deep/\na/x.rs  4",
        );
        check(
            r#"{"limit": 1}"#,
            "a/\n[more than 1 entries; list a directory below, or raise `limit`]",
        );
    }

    #[test]
    fn a_bad_glob_is_named() {
        check(r#"{"skip": ["a["]}"#, "glob `a[`: unclosed character class; missing ']'");
    }
}
