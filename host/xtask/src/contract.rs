//! `cargo xtask contract`: the reference of the contract, out of the WIT files themselves.
//!
//! It reads the files as they are written, which is one way only: `///` above every item, items two
//! spaces in, a closing brace on a line of its own. What is written otherwise is an error.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::repo::Repo;
use crate::say;

/// In the order in which one reads them.
const FILES: [&str; 5] = ["types.wit", "tools.wit", "hooks.wit", "host.wit", "worlds.wit"];

const ABOUT: &str = "\
All that a plugin and the host say to each other. This page is made from the files in [`wit/`](../../wit) by
`cargo xtask contract`; `cofferdam plugin wit DIR` writes those files, to build a plugin against. [The author's
guide](authors.md) is the way in.

A plugin exports any of `tools`, `argument-preparation`, `before-tool-call` and `after-tool-call`, and imports what it
needs of the rest and of WASI 0.2.
";

/// Writes the page.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let page = page(&repo.contract())?;
    let file = repo.contract_page();
    fs::write(&file, page).with_context(|| format!("write {}", file.display()))?;
    say(&format!("wrote {}", file.display()));
    Ok(())
}

/// The page for a folder of WIT files.
fn page(folder: &Path) -> Result<String> {
    let mut texts = Vec::new();
    for name in FILES {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        texts.push((name, text));
    }
    let package =
        texts.iter().find_map(|(_, text)| package(text)).context("no package is named")?;
    let mut page = format!("# The contract `{package}`\n\n{ABOUT}");
    for (name, text) in &texts {
        page.push_str(&sections(text).with_context(|| format!("read {name}"))?);
    }
    Ok(page)
}

fn package(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix("package ")?.strip_suffix(';')
}

/// What is open while the lines of a file go by.
#[derive(Default)]
struct Reader {
    page: String,
    docs: Vec<String>,
    /// The lines of the item that is open.
    item: Vec<String>,
    /// Items of a world and types that are taken over, which have no page of their own.
    plain: Vec<String>,
    within: bool,
}

/// The sections of one file.
fn sections(text: &str) -> Result<String> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(line).with_context(|| format!("line {}: {line}", at + 1))?;
    }
    ensure!(!reader.within && reader.item.is_empty(), "something is not closed");
    Ok(reader.page)
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<()> {
        let trimmed = line.trim();
        if !self.item.is_empty() {
            self.item.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
            if line == "  }" || (trimmed.ends_with(';') && !self.item[0].ends_with('{')) {
                self.end_item()?;
            }
            return Ok(());
        }
        match trimmed {
            "" => Ok(()),
            "}" => self.end_section(),
            _ if trimmed.starts_with("package ") || trimmed.starts_with("@since(") => Ok(()),
            _ if trimmed.starts_with("///") => {
                self.docs.push(trimmed.trim_start_matches('/').trim().to_owned());
                Ok(())
            }
            _ if !self.within => self.section(trimmed),
            _ => self.begin_item(trimmed),
        }
    }

    fn section(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind @ ("interface" | "world"), name, "{"] = words[..] else {
            bail!("neither an interface nor a world begins here");
        };
        ensure!(!self.docs.is_empty(), "`{name}` is not documented");
        let title = if kind == "world" { format!("World `{name}`") } else { format!("`{name}`") };
        self.page.push_str(&format!("\n## {title}\n\n{}", prose(&self.docs)));
        self.docs.clear();
        self.within = true;
        Ok(())
    }

    fn begin_item(&mut self, line: &str) -> Result<()> {
        let starts = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
        if starts(&["use ", "import ", "export ", "include "]) {
            ensure!(self.docs.is_empty(), "what is taken over has no text of its own");
            self.plain.push(line.to_owned());
            return Ok(());
        }
        self.item.push(line.to_owned());
        if line.ends_with(';') || line.ends_with('}') {
            self.end_item()?;
        }
        Ok(())
    }

    fn end_item(&mut self) -> Result<()> {
        let item = std::mem::take(&mut self.item);
        let first = item[0].clone();
        let (kind, name) = match first.split_once(' ') {
            Some((kind @ ("record" | "variant" | "enum" | "type" | "flags"), rest)) => {
                (kind, rest.split([' ', '=']).next().unwrap_or_default())
            }
            _ => ("function", first.split(':').next().unwrap_or_default()),
        };
        // Records say the rest with their fields.
        ensure!(!self.docs.is_empty() || kind == "record", "`{name}` is not documented");
        self.page.push_str(&format!("\n### `{name}` ({kind})\n\n"));
        if !self.docs.is_empty() {
            self.page.push_str(&format!("{}\n", prose(&self.docs)));
        }
        self.docs.clear();
        self.page.push_str(&format!("```wit\n{}\n```\n", item.join("\n")));
        Ok(())
    }

    fn end_section(&mut self) -> Result<()> {
        ensure!(self.within, "a brace too many");
        if !self.plain.is_empty() {
            self.page.push_str(&format!("\n```wit\n{}\n```\n", self.plain.join("\n")));
            self.plain.clear();
        }
        self.within = false;
        Ok(())
    }
}

/// Comment lines as paragraphs.
fn prose(docs: &[String]) -> String {
    format!("{}\n", docs.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_that_of_the_contract() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = page(&root.join("wit")).unwrap();
        let written = fs::read_to_string(root.join("host/docs/contract.md")).unwrap();
        assert!(
            page == written,
            "host/docs/contract.md is not that of wit/: `cargo xtask contract`"
        );
    }

    #[test]
    fn every_item_is_there_with_its_words() {
        let text = "package a:b@1.0.0;\n\n/// Says it.\n///\n/// Twice.\n@since(version = 1.0.0)\ninterface c {\n  \
            use d.{e};\n\n  /// A pair.\n  @since(version = 1.0.0)\n  record f {\n    /// One.\n    g: u8,\n  }\n\n  \
            /// Does.\n  h: func(i: u8)\n    -> u8;\n}\n";
        assert_eq!(
            sections(text).unwrap(),
            "\n## `c`\n\nSays it.\n\nTwice.\n\n### `f` (record)\n\nA pair.\n\n```wit\nrecord f {\n  /// One.\n  \
             g: u8,\n}\n```\n\n### `h` (function)\n\nDoes.\n\n```wit\nh: func(i: u8)\n  -> u8;\n```\n\
             \n```wit\nuse d.{e};\n```\n"
        );
        assert_eq!(package(text), Some("a:b@1.0.0"));
    }

    #[test]
    fn what_is_not_documented_or_not_closed_is_an_error() {
        for (text, part) in [
            ("interface a {\n}\n", "`a` is not documented"),
            ("/// A.\ninterface a {\n  b: func();\n}\n", "`b` is not documented"),
            ("/// A.\ninterface a {\n", "not closed"),
            ("/// A.\nthing a {\n}\n", "neither an interface"),
        ] {
            let problem = format!("{:#}", sections(text).unwrap_err());
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
