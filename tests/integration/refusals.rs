//! What is no plugin is refused before any of it runs, with a sentence that says what it is and
//! what to do.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, root, run};
use std::path::Path;

fn call(file: &Path, tool: &str) -> Ran {
    run(cofferdam().args(["plugin", "call"]).arg(file).args([tool, "{}", "--json"]))
}

#[test]
fn odd_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let good = std::fs::read(plugin("calc")).unwrap();
    let other_world = wat::parse_str(
        r#"(component
             (core module $m (func (export "run") (result i32) i32.const 7))
             (export "run" (core module $m)))"#,
    )
    .unwrap();
    let core_module = wat::parse_str(r#"(module (func (export "run")))"#).unwrap();
    for (name, bytes, wants) in [
        ("page", b"<!DOCTYPE html><html><body>404</body></html>".to_vec(), vec!["HTML"]),
        ("empty", Vec::new(), vec!["empty"]),
        ("cut", good[..good.len() / 2].to_vec(), vec!["cut"]),
        ("core", core_module, vec!["core module", "wasm32-wasip2"]),
        ("other", other_world, vec!["run", "cofferdam:plugin"]),
    ] {
        let file = folder.path().join(format!("{name}.wasm"));
        std::fs::write(&file, bytes).unwrap();
        for ran in [call(&file, "any"), run(cofferdam().args(["plugin", "inspect"]).arg(&file))] {
            assert_eq!(ran.code, 2, "{name}: {ran:?}");
            for want in &wants {
                assert!(ran.err.contains(want), "{name} should say {want}: {}", ran.err);
            }
            assert!(ran.out.is_empty(), "{name}: {ran:?}");
        }
    }
}

#[test]
fn an_import_that_nobody_knows_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stranger.wat");
    // The import alone decides: the export that a plugin needs is there by name.
    let text = r#"(component
        (import "acme:database/query@1.0.0" (instance))
        (instance $tools)
        (export "cofferdam:plugin/tools@0.1.0" (instance $tools)))"#;
    std::fs::write(&file, text).unwrap();
    let ran = call(&file, "any");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("acme:database/query@1.0.0"), "{}", ran.err);
}

#[test]
fn a_file_that_is_not_there_and_a_tool_that_is_not_there() {
    let ran = call(Path::new("no/such.wasm"), "any");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("no/such.wasm"), "{}", ran.err);
    let ran = call(&plugin("calc"), "clac");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("clac") && ran.err.contains("calc"), "{}", ran.err);
    let ran = call(&plugin("guard"), "any");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("[[hooks]]"), "{}", ran.err);
}

#[test]
fn inspect_tells_what_a_plugin_offers_without_running_it() {
    let ran = run(cofferdam().args(["plugin", "inspect"]).arg(plugin("guard")).arg("--json"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = ran.json();
    assert_eq!(said["roles"]["before_tool_call"], true, "{said}");
    assert_eq!(said["roles"]["tools"], false, "{said}");
    assert_eq!(said["contract_version"], "0.1.0", "{said}");
}

#[test]
fn wit_writes_the_contract_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(cofferdam().args(["plugin", "wit"]).arg(folder.path().join("deps")));
    assert_eq!(ran.code, 0, "{ran:?}");
    for entry in std::fs::read_dir(root().join("wit")).unwrap() {
        let ours = entry.unwrap().path();
        let written = folder.path().join("deps").join(ours.file_name().unwrap());
        assert_eq!(std::fs::read(&written).unwrap(), std::fs::read(&ours).unwrap(), "{written:?}");
    }
}
