//! `cargo xtask guests`: every plugin, built both ways, as files that the host can load.
//!
//! A plugin author may use cargo-component or plain cargo; both must stay able to build every
//! sample, so one that fails either way fails here.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use crate::metadata::{self, Guest};
use crate::repo::Repo;
use crate::toolchain::{CargoComponent, Toolchain};
use crate::{process, say};

/// How much of the set-up to do.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Build this plugin and no other.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Build with plain cargo and leave cargo-component out: quicker while you work.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Builds and collects the guests.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let guests = chosen(all(repo)?, options.only.as_deref())?;
    let toolchain = Toolchain::ensure(repo)?;
    build_plain(repo, &toolchain, &guests)?;
    if !options.plain {
        let component = CargoComponent::ensure(&toolchain)?;
        build_with_component(repo, &toolchain, &component, &guests)?;
    }
    let names: Vec<_> = guests.iter().map(|guest| &*guest.name).collect();
    say(&format!("in target/plugins: {}", names.join(", ")));
    Ok(())
}

fn all(repo: &Repo) -> Result<Vec<Guest>> {
    metadata::guests(&mut repo.native_plugins_cargo(), &repo.plugins())
}

/// The guests that were asked for: never none.
fn chosen(guests: Vec<Guest>, only: Option<&str>) -> Result<Vec<Guest>> {
    ensure!(!guests.is_empty(), "no crate in plugins/ is a component");
    let Some(name) = only else { return Ok(guests) };
    if let Some(guest) = guests.iter().find(|guest| guest.name == name) {
        return Ok(vec![guest.clone()]);
    }
    let names: Vec<_> = guests.into_iter().map(|guest| guest.name).collect();
    bail!("no plugin is named {name}: there are {}", names.join(", "))
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
        let built = from.join(&guest.file);
        let bytes = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
        ensure!(is_component(&bytes), "{} is not a component", built.display());
        place(&bytes, &to.join(format!("{}.wasm", guest.name)))?;
    }
    Ok(())
}

/// The first eight bytes: the magic number, then version 13 in layer 1. A core module is layer 0.
fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x0d\0\x01\0")
}

/// Writes a file that a running host sees whole or not at all.
///
/// It is a new file rather than a copy, since cargo-component's own are readable only by
/// their owner.
fn place(bytes: &[u8], to: &Path) -> Result<()> {
    let new = to.with_extension("wasm.new");
    fs::write(&new, bytes)
        .and_then(|()| fs::rename(&new, to))
        .with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(name: &str) -> Guest {
        Guest { name: name.to_owned(), file: format!("{name}.wasm") }
    }

    #[test]
    fn one_guest_may_be_chosen() {
        let all = vec![guest("calc"), guest("files")];
        assert_eq!(chosen(all.clone(), None).unwrap(), all);
        assert_eq!(chosen(all, Some("files")).unwrap(), [guest("files")]);
    }

    #[test]
    fn an_unknown_guest_is_answered_with_the_known_ones() {
        let error = chosen(vec![guest("calc"), guest("files")], Some("cal")).unwrap_err();
        assert_eq!(error.to_string(), "no plugin is named cal: there are calc, files");
    }

    #[test]
    fn a_core_module_is_not_a_component() {
        assert!(is_component(b"\0asm\x0d\0\x01\0\x07"));
        assert!(!is_component(b"\0asm\x01\0\0\0\x01"));
        assert!(!is_component(b"<html>"));
        assert!(!is_component(b""));
    }
}
