//! Globs as people write them: `*.rs` is a name anywhere, `src/**` is a path below the start.

use cofferdam_plugin::{Failure, Result};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// What trees usually carry that nobody wants to read.
const SKIPPED: [&str; 4] = [".git", "target", "node_modules", ".venv"];

/// The directories and files that a walk leaves out.
pub(crate) fn skip(patterns: Option<&[String]>) -> Result<GlobSet> {
    match patterns {
        Some(patterns) => globs(patterns),
        None => globs(&SKIPPED),
    }
}

pub(crate) fn globs<S: AsRef<str>>(patterns: &[S]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.as_ref().trim_end_matches('/');
        let anywhere =
            if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
        set.add(
            glob.map_err(|error| Failure::rejected(format!("glob `{pattern}`: {}", error.kind())))?,
        );
    }
    Ok(set.build()?)
}
