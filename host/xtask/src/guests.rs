//! `cargo xtask guests`: every plugin as a file that the host can load.
//!
//! An author in Rust may use cargo-component or plain cargo; both must stay able to build every
//! sample, so one that fails either way fails here. Plugins in other languages are left out, with
//! a word about it, on a machine that cannot build them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::metadata::{self, Guest};
use crate::repo::Repo;
use crate::scripted::{self, Scripted};
use crate::toolchain::{CargoComponent, Toolchain};
use crate::{lock, process, say};

/// How much of the set-up to do.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Build this plugin and no other.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Build the plugins in this language, and fail if it cannot be built here; may be repeated.
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Vec<Language>,
    /// Build with plain cargo and leave cargo-component out: quicker while you work.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// What a plugin is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    #[value(alias = "py")]
    Python,
}

impl Options {
    fn wants(&self, language: Language) -> bool {
        self.lang.is_empty() || self.lang.contains(&language)
    }

    /// Whether a plugin of such a language must be built, or may be left out where it cannot be.
    fn insists_on(&self, language: Language) -> bool {
        self.only.is_some() || self.lang.contains(&language)
    }
}

/// Builds and collects the guests.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let only = options.only.as_deref();
    let in_rust = if options.wants(Language::Rust) { all(repo)? } else { Vec::new() };
    let scripted: Vec<Scripted> =
        scripted::all(repo)?.into_iter().filter(|plugin| options.wants(plugin.language)).collect();
    let names = in_rust.iter().map(|guest| &*guest.name);
    check_choice(names.chain(scripted.iter().map(|plugin| &*plugin.name)), only)?;
    let is_chosen = |name: &str| only.is_none_or(|only| only == name);

    let _lock = lock::take(&repo.guest_toolchain())?;
    let in_rust: Vec<Guest> = in_rust.into_iter().filter(|guest| is_chosen(&guest.name)).collect();
    let mut built = Vec::new();
    if !in_rust.is_empty() {
        build_in_rust(repo, &in_rust, options.plain)?;
        built.extend(in_rust.into_iter().map(|guest| guest.name));
    }
    for plugin in scripted.iter().filter(|plugin| is_chosen(&plugin.name)) {
        if scripted::build(repo, plugin, options.insists_on(plugin.language))? {
            built.push(plugin.name.clone());
        }
    }
    say(&format!("in target/plugins: {}", built.join(", ")));
    Ok(())
}

fn build_in_rust(repo: &Repo, guests: &[Guest], plain: bool) -> Result<()> {
    let toolchain = Toolchain::ensure(repo)?;
    build_plain(repo, &toolchain, guests)?;
    if !plain {
        let component = CargoComponent::ensure(&toolchain)?;
        build_with_component(repo, &toolchain, &component, guests)?;
    }
    Ok(())
}

fn all(repo: &Repo) -> Result<Vec<Guest>> {
    metadata::guests(&mut repo.native_plugins_cargo(), &repo.plugins())
}

/// A plugin that was asked for by name must be there.
fn check_choice<'a>(names: impl Iterator<Item = &'a str>, only: Option<&str>) -> Result<()> {
    let names: Vec<_> = names.collect();
    match only {
        Some(only) if !names.contains(&only) => {
            bail!("no plugin is named {only}: there are {}", names.join(", "))
        }
        _ if names.is_empty() => bail!("there is no plugin in plugins/"),
        _ => Ok(()),
    }
}

fn build_plain(repo: &Repo, toolchain: &Toolchain, guests: &[Guest]) -> Result<()> {
    say("building the plugins with plain cargo (2 minutes the first time)");
    let mut cargo = toolchain.cargo();
    cargo.args(["build", "--target", "wasm32-wasip2"]);
    build(repo, &mut cargo, guests)?;
    collect(guests, &repo.guest_target().join("wasm32-wasip2/release"), &repo.components())
}

fn build_with_component(
    repo: &Repo,
    toolchain: &Toolchain,
    component: &CargoComponent,
    guests: &[Guest],
) -> Result<()> {
    say("building the plugins with cargo-component (a minute the first time)");
    let mut cargo = component.command(toolchain);
    cargo.arg("build");
    build(repo, &mut cargo, guests)?;
    // cargo-component makes its components from modules for wasm32-wasip1.
    collect(
        guests,
        &repo.guest_target().join("wasm32-wasip1/release"),
        &repo.components().join("cargo-component"),
    )
}

fn build(repo: &Repo, cargo: &mut Command, guests: &[Guest]) -> Result<()> {
    cargo.args(["--release", "--locked"]);
    for guest in guests {
        cargo.args(["--package", &guest.name]);
    }
    cargo.current_dir(repo.plugins());
    cargo.env("CARGO_TARGET_DIR", repo.guest_target());
    process::run(cargo)
}

fn collect(guests: &[Guest], from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for guest in guests {
        place(&from.join(&guest.file), &to.join(format!("{}.wasm", guest.name)))?;
    }
    Ok(())
}

/// The first eight bytes: the magic number, then version 13 in layer 1. A core module is layer 0.
fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x0d\0\x01\0")
}

/// Puts a built component where a running host sees it whole or not at all.
///
/// It becomes a new file rather than a copy, since cargo-component's own are readable only by
/// their owner.
pub(crate) fn place(built: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    ensure!(is_component(&bytes), "{} is not a component", built.display());
    let new = to.with_extension("wasm.new");
    fs::write(&new, bytes)
        .and_then(|()| fs::rename(&new, to))
        .with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_guest_is_answered_with_the_known_ones() {
        let names = || ["calc", "files"].into_iter();
        assert!(check_choice(names(), None).is_ok());
        assert!(check_choice(names(), Some("files")).is_ok());
        let error = check_choice(names(), Some("cal")).unwrap_err();
        assert_eq!(error.to_string(), "no plugin is named cal: there are calc, files");
        assert!(check_choice([].into_iter(), None).is_err());
    }

    #[test]
    fn a_core_module_is_not_a_component() {
        assert!(is_component(b"\0asm\x0d\0\x01\0\x07"));
        assert!(!is_component(b"\0asm\x01\0\0\0\x01"));
        assert!(!is_component(b"<html>"));
        assert!(!is_component(b""));
    }
}
