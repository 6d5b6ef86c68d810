//! What `cargo metadata` says about the plugins: which crates are components, and what files
//! they become.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process;

/// A crate that becomes a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    /// The package.
    pub(crate) name: String,
    /// The file that cargo writes into the directory of a target.
    pub(crate) file: String,
}

/// The guests of a workspace, by name.
pub(crate) fn guests(cargo: &mut Command, workspace: &Path) -> Result<Vec<Guest>> {
    let manifest = workspace.join("Cargo.toml");
    let text = process::read(
        cargo
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .arg("--manifest-path")
            .arg(&manifest),
    )?;
    parse(&text).with_context(|| format!("cannot read the metadata of {}", manifest.display()))
}

/// A guest has a library target of kind `cdylib` and a `[package.metadata.component]`.
fn parse(text: &str) -> Result<Vec<Guest>> {
    let workspace: Workspace = serde_json::from_str(text)?;
    let mut guests: Vec<Guest> = workspace.packages.into_iter().filter_map(guest).collect();
    guests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(guests)
}

fn guest(package: Package) -> Option<Guest> {
    package.metadata?.component?;
    let library = package
        .targets
        .iter()
        .find(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))?;
    Some(Guest { file: format!("{}.wasm", library.name.replace('-', "_")), name: package.name })
}

// With `--no-deps` the packages are exactly the members of the workspace.
#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    component: Option<serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_the_cdylibs_that_say_they_are_components() {
        let text = r#"{"packages": [
            {"name": "word-count", "metadata": {"component": {"package": "a:b"}},
             "targets": [{"name": "word-count", "crate_types": ["cdylib", "rlib"]},
                         {"name": "more", "crate_types": ["bin"]}]},
            {"name": "calc", "metadata": {"component": {}},
             "targets": [{"name": "calculator", "crate_types": ["cdylib"]}]},
            {"name": "sdk", "metadata": null,
             "targets": [{"name": "sdk", "crate_types": ["lib"]}]},
            {"name": "native", "metadata": {"docs": {}},
             "targets": [{"name": "native", "crate_types": ["cdylib"]}]}
        ]}"#;
        let found = parse(text).unwrap();
        let found: Vec<_> = found.iter().map(|g| (&*g.name, &*g.file)).collect();
        assert_eq!(found, [("calc", "calculator.wasm"), ("word-count", "word_count.wasm")]);
    }
}
