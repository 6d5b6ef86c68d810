//! A Rust compiler that can build the guests, found on this machine or installed for it.
//!
//! The compiler in use is taken if it has the two WASI targets; else rustup is asked to add
//! them; else Debian's packages are unpacked under `target/`. Whichever it is has linked for
//! both targets before anything is built with it, and a stamp spares the next run the search.

mod base;
mod cargo_component;
mod debian;
mod rustup;
mod smoke;
mod stamp;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::repo::{Repo, forget, steers_host_builds};
use crate::say;
use base::Base;
pub(crate) use cargo_component::CargoComponent;

/// cargo-component builds for the first, plain cargo for the second.
const TARGETS: [&str; 2] = ["wasm32-wasip1", "wasm32-wasip2"];

/// A compiler that has been seen to build for every target of ours.
pub(crate) struct Toolchain {
    base: Base,
    /// Holds the compiler as `rustc`, found first by whoever looks for one.
    bin: PathBuf,
    home: PathBuf,
}

impl Toolchain {
    /// Finds the toolchain, or installs it; at once if an earlier run did. The caller holds the lock.
    pub(crate) fn ensure(repo: &Repo) -> Result<Self> {
        let choice = Choice::parse(env::var("COFFERDAM_GUEST_ROUTE").ok().as_deref())?;
        let base = Base::of(repo.cargo_path())?;
        let home = repo.guest_toolchain();
        fs::create_dir_all(&home)?;
        let route = match proven(&base, &home, choice) {
            Some(route) => route,
            None => search(&base, &home, choice)?,
        };
        Ok(Self { bin: route.bin(&base, &home), base, home })
    }

    /// Cargo for guests.
    pub(crate) fn cargo(&self) -> Command {
        self.command(&self.base.cargo)
    }

    /// A program in an environment where every way to find a compiler leads to the guests'.
    ///
    /// Cargo asks `RUSTC`; cargo-component asks the `rustc` on the path; rustup's stand-ins,
    /// further down the path, would obey `RUSTUP_TOOLCHAIN`.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        forget(&mut command, steers_host_builds);
        command
            .env("CARGO", &self.base.cargo)
            .env("RUSTC", self.bin.join("rustc"))
            .env("RUSTDOC", self.bin.join("rustdoc"))
            .env("PATH", path_with(&self.bin));
        command
    }
}

/// Where a guest compiler comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The toolchain in use, to which rustup may have to add the targets.
    Rustup,
    /// Debian's packages.
    Debian,
}

impl Route {
    const ALL: [Self; 2] = [Self::Rustup, Self::Debian];

    fn name(self) -> &'static str {
        match self {
            Self::Rustup => "rustup",
            Self::Debian => "debian",
        }
    }

    /// The directory of the compiler.
    fn bin(self, base: &Base, home: &Path) -> PathBuf {
        match self {
            Self::Rustup => base.bin(),
            Self::Debian => debian::bin(home),
        }
    }

    fn provide(self, base: &Base, home: &Path, limit: rustup::Limit) -> Result<()> {
        match self {
            Self::Rustup => rustup::provide(base, home, limit),
            Self::Debian => debian::provide(base, home),
        }
    }
}

/// The route that a person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Auto,
    Only(Route),
}

impl Choice {
    fn parse(text: Option<&str>) -> Result<Self> {
        match text {
            None | Some("" | "auto") => Ok(Self::Auto),
            Some("rustup") => Ok(Self::Only(Route::Rustup)),
            Some("debian") => Ok(Self::Only(Route::Debian)),
            Some(other) => {
                bail!("COFFERDAM_GUEST_ROUTE is auto, rustup or debian; it says {other}")
            }
        }
    }

    fn allows(self, route: Route) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(only) => only == route,
        }
    }

    /// Rustup gets little time where there is another way.
    fn limit(self) -> rustup::Limit {
        if self == Self::Auto && debian::is_possible() {
            rustup::Limit::Short
        } else {
            rustup::Limit::Long
        }
    }
}

/// The route that an earlier run proved, if it still holds.
fn proven(base: &Base, home: &Path, choice: Choice) -> Option<Route> {
    let route = stamp::read(home, base)?;
    // Debian's compiler is a stand-in: it goes as soon as the one in use has the targets.
    let stand_in = choice == Choice::Auto && route == Route::Debian;
    let replaced = stand_in && has_targets(&base.bin().join("rustc"));
    let usable = has_targets(&route.bin(base, home).join("rustc"));
    (choice.allows(route) && usable && !replaced).then_some(route)
}

/// Tries the routes in order until one yields a compiler that works.
fn search(base: &Base, home: &Path, choice: Choice) -> Result<Route> {
    stamp::remove(home)?;
    for route in Route::ALL.into_iter().filter(|route| choice.allows(*route)) {
        let works = route
            .provide(base, home, choice.limit())
            .and_then(|()| smoke::test(&route.bin(base, home), &home.join("smoke")));
        match works {
            Ok(()) => {
                stamp::write(home, base, route)?;
                return Ok(route);
            }
            Err(error) => say(&format!("no compiler by way of {}: {error:#}", route.name())),
        }
    }
    bail!(
        "the plugins need a Rust toolchain with two more targets: \
         run `rustup target add {}`, then this again",
        TARGETS.join(" ")
    )
}

/// Whether a compiler has the standard library for every target.
fn has_targets(rustc: &Path) -> bool {
    TARGETS.iter().all(|target| {
        let mut ask = Command::new(rustc);
        ask.args(["--print", "target-libdir", "--target", target]);
        crate::process::read(&mut ask).is_ok_and(|dir| has_std(Path::new(dir.trim())))
    })
}

fn has_std(dir: &Path) -> bool {
    let Ok(files) = fs::read_dir(dir) else {
        return false;
    };
    files.filter_map(Result::ok).any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

/// The search path with one more directory, looked in first.
pub(crate) fn path_with(first: &Path) -> std::ffi::OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = [first.to_owned()].into_iter().chain(env::split_paths(&path));
    // Only a directory with a colon in its name cannot be joined, and no search finds that.
    env::join_paths(dirs).unwrap_or(path)
}

/// Removes a directory that may not be there.
fn clear(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", dir.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_is_one_of_three_words() {
        assert_eq!(Choice::parse(None).unwrap(), Choice::Auto);
        assert_eq!(Choice::parse(Some("auto")).unwrap(), Choice::Auto);
        for route in Route::ALL {
            let choice = Choice::parse(Some(route.name())).unwrap();
            assert_eq!(choice, Choice::Only(route));
        }
        assert!(Choice::parse(Some("apt")).is_err());
    }
}
