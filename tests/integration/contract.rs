//! Released versions of the contract: their files stay as they were released, and a plugin of each is
//! served. See `tests/guests/released/README.md`.

use crate::cofferdam;
use crate::runs::{Setup, calls, end, entry_of, says, text};
use cofferdam_tests::{root, run};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The lines of `frozen.txt`: version, digest, file.
fn frozen() -> Vec<(String, String, PathBuf)> {
    let text = std::fs::read_to_string(root().join("tests/guests/released/frozen.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [version, digest, file] => (version.into(), digest.into(), file.into()),
        _ => panic!("{line} is not VERSION SHA-256 FILE"),
    };
    lines.map(line).collect()
}

#[test]
fn files_of_a_released_contract_are_as_they_were_released() {
    for (version, digest, file) in frozen() {
        let found = std::fs::read(root().join(&file)).unwrap_or_else(|problem| {
            panic!("{} of the contract {version}: {problem}", file.display())
        });
        assert_eq!(
            cofferdam_sandbox::sha256_hex(&found),
            digest,
            "{} of the released contract {version} was changed: a new ability is a new interface, in a \
             new version",
            file.display()
        );
    }
    let listed: BTreeSet<PathBuf> = frozen().into_iter().map(|(.., file)| file).collect();
    let mut versions = BTreeMap::new();
    for entry in std::fs::read_dir(root().join("wit")).unwrap() {
        let file = Path::new("wit").join(entry.unwrap().file_name());
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        assert!(listed.contains(&file), "{} is not in frozen.txt", file.display());
        let package = text.lines().find(|line| line.starts_with("package ")).unwrap().to_owned();
        versions.insert(package, file);
    }
    let package = format!("package cofferdam:plugin@{};", cofferdam_sandbox::CONTRACT_VERSION);
    assert_eq!(versions.into_keys().collect::<Vec<_>>(), [package]);
}

/// A plugin of a released version, as a component in this folder.
fn component(version: &str, name: &str, folder: &Path) -> PathBuf {
    let text = root().join(format!("tests/guests/released/{version}/{name}.wat"));
    let file = folder.join(format!("{name}-{version}.wasm"));
    std::fs::write(&file, wat::parse_file(text).unwrap()).unwrap();
    file
}

#[test]
fn a_plugin_of_each_released_version_is_served() {
    let versions: BTreeSet<String> = frozen().into_iter().map(|(version, ..)| version).collect();
    assert!(versions.contains(cofferdam_sandbox::CONTRACT_VERSION));
    for version in versions {
        let folder = tempfile::tempdir().unwrap();
        let tools = component(&version, "tools", folder.path());
        let hooks = component(&version, "hooks", folder.path());
        for (file, role) in [(&tools, "tools"), (&hooks, "before_tool_call")] {
            let said = run(cofferdam().args(["plugin", "inspect", "--json"]).arg(file)).json();
            assert_eq!(
                (&said["contract_version"], &said["roles"][role]),
                (&json!(version), &json!(true))
            );
        }
        let config = [
            entry_of("tools", &tools, ""),
            entry_of("hooks", &hooks, ""),
            "[[hooks]]\nplugin = \"hooks\"\non = [\"before\", \"after\"]\n".into(),
        ]
        .concat();
        let script =
            json!([calls(&[("c1", "run", json!({"task": "0 0 0|as ever"}))]), says("done")]);
        let events = Setup::new(&config, &script).events();
        let end = end(&events, "c1");
        assert_eq!((text(end), &end["is_error"]), ("as ever", &json!(false)), "{version}: {end}");
        let asked: Vec<&str> = end["hooks"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|hook| hook["hook"].as_str())
            .collect();
        assert_eq!(asked, ["hooks", "hooks"], "{version}: {end}");
    }
}
