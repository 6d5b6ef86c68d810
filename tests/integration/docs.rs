//! The commands of the documents, run as they stand there.
//!
//! A block marked `sh` is run, block after block, in a folder of its document's own, which has the sample
//! plugins in `target/plugins` and the contract in `wit`. A block marked `LANGUAGE file=NAME` is written
//! there. A block whose first line is `# not run by the tests: WHY` is left out, and the test says so.

use crate::cofferdam;
use cofferdam_tests::{plugin, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOT_RUN: &str = "# not run by the tests: ";

/// What documents take for granted: a model that answers from a file.
const CONFIG: &str = "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n";
const ANSWERS: &str = r#"[
  {"content": [{"type": "tool_call", "id": "c1", "name": "calc", "arguments": {"expressions": ["6 * 7"]}}],
   "stop_reason": "tool_use"},
  {"content": [{"type": "text", "text": "It is ${results.c1}"}], "stop_reason": "stop"}
]"#;

/// A block of a document between two lines of backticks.
struct Block {
    /// Of its first backticks, from 1.
    line: usize,
    mark: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (at, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), is_open) {
            (Some(mark), false) => {
                blocks.push(Block { line: at + 1, mark: mark.into(), text: String::new() });
                is_open = true;
            }
            (Some(""), true) => is_open = false,
            (_, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!is_open, "a block is not closed");
    blocks
}

/// Where the commands of one document run.
fn scene() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("target/plugins")).unwrap();
    for name in ["calc", "fetch", "files", "guard", "redact", "unruly"] {
        fs::copy(plugin(name), at("target/plugins").join(format!("{name}.wasm"))).unwrap();
    }
    fs::create_dir(at("wit")).unwrap();
    for entry in fs::read_dir(root().join("wit")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), at("wit").join(entry.file_name())).unwrap();
    }
    fs::write(at("cofferdam.toml"), CONFIG).unwrap();
    fs::write(at("answers.json"), ANSWERS).unwrap();
    let mut allow = cofferdam();
    allow.current_dir(folder.path()).args(["plugin", "allow", "target/plugins/calc.wasm", "--yes"]);
    assert_eq!(run(&mut allow).code, 0);
    folder
}

/// The shell with a block of commands, in a scene.
fn shell(text: &str, folder: &Path) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_cofferdam")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-euc", text]).current_dir(folder).env("PATH", path);
    command.env("COFFERDAM_CACHE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled"));
    command.env("COFFERDAM_STATE_DIR", folder.join("state"));
    command.stdin(std::process::Stdio::null());
    command
}

/// Runs one document: how many blocks were run.
#[expect(clippy::print_stderr, reason = "what is left out is said")]
fn check(path: &Path) -> usize {
    let shown = path.strip_prefix(root()).unwrap().display();
    let blocks = blocks(&fs::read_to_string(path).unwrap());
    if !blocks.iter().any(|block| block.mark == "sh") {
        return 0;
    }
    let scene = scene();
    let mut ran = 0;
    for Block { line, mark, text } in blocks {
        if let Some((_, name)) = mark.split_once(" file=") {
            fs::write(scene.path().join(name), text).unwrap();
        } else if let (true, Some(why)) = (mark == "sh", text.strip_prefix(NOT_RUN)) {
            eprintln!("NOT RUN: {shown}, line {line}: {}", why.lines().next().unwrap());
        } else if mark == "sh" {
            let came = run(&mut shell(&text, scene.path()));
            assert_eq!(came.code, 0, "{shown}, line {line}:\n{text}\n{}\n{}", came.out, came.err);
            ran += 1;
        }
    }
    ran
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages
}

#[test]
fn the_commands_of_the_readme_run() {
    assert!(check(&root().join("README.md")) >= 5);
}

#[test]
fn the_commands_of_the_authors_guide_run() {
    assert!(check(&root().join("host/docs/authors.md")) >= 8);
}

#[test]
fn the_commands_of_the_other_documents_run() {
    let all: Vec<PathBuf> = ["host", "host/docs", "plugins"]
        .iter()
        .flat_map(|folder| pages(&root().join(folder)))
        .filter(|path| !path.ends_with("authors.md"))
        .collect();
    assert!(all.len() >= 8, "{all:?}");
    assert!(all.iter().map(|path| check(path)).sum::<usize>() >= 5);
}

#[test]
fn what_documents_link_to_is_there() {
    let folders = [".", "host", "host/docs", "plugins"];
    for page in folders.iter().flat_map(|folder| pages(&root().join(folder))) {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.contains([' ', '\n'])) {
            let file = link.split('#').next().unwrap();
            let there = page.parent().unwrap().join(file);
            assert!(there.exists(), "{}: {link}", page.display());
        }
    }
}
