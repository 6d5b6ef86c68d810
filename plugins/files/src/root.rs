//! What a path means: the granted directories, and the way from the model's words to a path below
//! one of them. The host enforces the grant; this only makes refusals that teach.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use cofferdam_plugin::{Failure, Result};

/// The granted directories, as the guest sees them.
#[derive(Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

/// What a call wants to do with a path; decides which grant a refusal names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Roots {
    /// What the operator granted. Fails if that is nothing.
    pub(crate) fn granted() -> Result<Self> {
        Self::new(preopened())
    }

    pub(crate) fn new(mut roots: Vec<PathBuf>) -> Result<Self> {
        if roots.is_empty() {
            let message =
                format!("no directory is granted to this plugin; {}", grant_line(Access::Read));
            return Err(Failure::denied(message).code("no-grant"));
        }
        roots.sort();
        Ok(Self(roots))
    }

    /// The full path, below one of the roots. A relative path is taken from the only root.
    pub(crate) fn resolve(&self, path: &str, access: Access) -> Result<PathBuf> {
        if path.contains('\0') {
            return Err(Failure::rejected("a path has no NUL character"));
        }
        let full = match (&self.0[..], Path::new(path)) {
            (_, path) if path.is_absolute() => path.to_owned(),
            ([root], path) => root.join(path),
            _ => {
                let message =
                    format!("several directories are granted: begin the path with one of {self}");
                return Err(Failure::rejected(message).code("ambiguous-path"));
            }
        };
        match normal(&full) {
            Some(full) if self.0.iter().any(|root| full.starts_with(root)) => Ok(full),
            _ => {
                let message = format!(
                    "`{path}` is outside the granted directories ({self}); {}",
                    grant_line(access)
                );
                Err(Failure::denied(message).code("outside-grant"))
            }
        }
    }
}

impl std::fmt::Display for Roots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let roots: Vec<_> = self.0.iter().map(|root| format!("`{}`", root.display())).collect();
        f.write_str(&roots.join(", "))
    }
}

/// A path without `.` and `..`; none if it climbs above its beginning.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match normal.components().next_back() {
                Some(Component::Normal(_)) => drop(normal.pop()),
                _ => return None,
            },
            component => normal.push(component),
        }
    }
    Some(normal)
}

fn grant_line(access: Access) -> String {
    let access = match access {
        Access::Read => "read-only",
        Access::Write => "read-write",
    };
    format!(
        "the operator grants one with `grants.files = [{{ host = \"...\", guest = \"/workspace\", access = \"{access}\" }}]`"
    )
}

/// Turns an error of the file system into whose move it is.
pub(crate) fn failure(error: &io::Error, path: &Path, access: Access) -> Failure {
    // WASI preview 1 answers "capabilities insufficient" for what the grant does not allow.
    const NOT_CAPABLE: i32 = 76;
    let path = path.display();
    let not_capable = cfg!(target_family = "wasm") && error.raw_os_error() == Some(NOT_CAPABLE);
    match error.kind() {
        ErrorKind::NotFound => Failure::rejected(format!("nothing at `{path}`")).code("not-found"),
        ErrorKind::IsADirectory => {
            Failure::rejected(format!("`{path}` is a directory")).code("is-directory")
        }
        ErrorKind::NotADirectory => {
            Failure::rejected(format!("`{path}` is, or leads through, a file that is no directory"))
                .code("not-directory")
        }
        ErrorKind::AlreadyExists => {
            Failure::rejected(format!("`{path}` exists already")).code("exists")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            denied(&path.to_string(), access)
        }
        _ if not_capable => denied(&path.to_string(), access),
        _ => Failure::unavailable(format!("`{path}`: {error}")),
    }
}

fn denied(path: &str, access: Access) -> Failure {
    let (what, line) = match access {
        Access::Read => ("read", "it may be a link that leaves the granted directory, or a file that the host user cannot read".to_owned()),
        Access::Write => ("written", grant_line(access)),
    };
    Failure::denied(format!("`{path}` cannot be {what}; {line}")).code("no-access")
}

#[cfg(target_family = "wasm")]
fn preopened() -> Vec<PathBuf> {
    let directories = wasip2::filesystem::preopens::get_directories();
    directories.into_iter().map(|(_, path)| PathBuf::from(path)).collect()
}

/// Nothing is granted where there is no host; tests bring roots of their own.
#[cfg(not(target_family = "wasm"))]
fn preopened() -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_plugin::FailureKind;

    fn check(roots: &[&str], path: &str, expected: &str) {
        let roots = Roots::new(roots.iter().map(PathBuf::from).collect()).unwrap();
        let path = roots.resolve(path, Access::Read);
        let text = path.map_or_else(
            |failure| format!("{:?}", failure.kind),
            |path| path.display().to_string(),
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn paths_are_taken_below_a_root() {
        check(&["/workspace"], "a/b.txt", "/workspace/a/b.txt");
        check(&["/workspace"], "/workspace/./a/../b", "/workspace/b");
        check(&["/workspace"], ".", "/workspace");
        check(&["/workspace"], "", "/workspace");
        check(&["/workspace", "/data"], "/data/x", "/data/x");
        check(&["/workspace", "/data"], "x", "Rejected");
    }

    #[test]
    fn nothing_else_is_reached() {
        check(&["/workspace"], "/etc/passwd", "Denied");
        check(&["/workspace"], "../etc", "Denied");
        check(&["/workspace"], "/workspace/../../..", "Denied");
        check(&["/workspace"], "/workspace2/x", "Denied");
        check(&["/workspace"], "a\0b", "Rejected");
    }

    #[test]
    fn a_missing_grant_names_the_line() {
        let failure = Roots::granted().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied);
        assert!(
            failure.message.contains("grants.files = [{ host = \"...\", guest = \"/workspace\"")
        );
    }
}
