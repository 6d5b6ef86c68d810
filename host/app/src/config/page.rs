//! The page `host/docs/config.md`: every key, from the same descriptions that are enforced.

use super::Config;
use super::check::heading;
use super::keys::{Key, Takes, Unset};
use super::layers::variable;
use std::fmt::Write as _;

const HEAD: &str = "\
# The operator's file, key by key

<!-- Written by `cargo xtask docs` from the types that read the file. Change their comments, not this page. -->

`cofferdam.toml` says which model answers, which plugins may be loaded, what each may touch, and which hooks stand before and after
their tools. Relative paths begin at the folder of the file. A key that is not here is an error, with the nearest one as a suggestion.

## Three layers

The file, above it the environment, above that the command line; each reaches every key.

| layer | `agent.max_turns` | a limit of the plugin `calc` |
|---|---|---|
| file | `[agent]` `max_turns = 20` | `limits = { wall_ms = 500 }` in its `[[plugins]]` |
| environment | `COFFERDAM_AGENT_MAX_TURNS=20` | `COFFERDAM_PLUGINS_CALC_LIMITS_WALL_MS=500` |
| command line | `--set agent.max_turns=20` | `--set plugins.calc.limits.wall_ms=500` |

The keys of a plugin go by its name, those of a hook by its place in the list, from 0 (`hooks.0.tools`). A text is written as it is;
lists and tables as in the file, and a list of one item also as that item: `--set approval.ask=write_*`. Paths of the environment and of the
command line begin where the process does. A variable that begins like one of these and belongs to no key is an error too; so is a
plugin that the file does not have.

```sh
cofferdam config show                     # every value in force, and where it came from
cofferdam config show --changed --json    # only what somebody set
cofferdam config keys                     # this page in short
```

What may be a credential is never shown.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in Config::keys() {
        let (Takes::Table(keys, _) | Takes::Tables(keys, _)) = &section.rule.takes else {
            continue;
        };
        let _ = write!(page, "\n## `{}`\n\n{}\n", heading(&section), section.doc);
        keys_of(&mut page, &heading(&section), section.name, keys);
    }
    page
}

/// A table of keys, then those of the tables in it.
fn keys_of(page: &mut String, whose: &str, at: &str, keys: &[Key]) {
    page.push_str("\n| key | takes | if not set | |\n|---|---|---|---|\n");
    for key in keys {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            key.name,
            cell(&takes(key)),
            cell(&unset(key)),
            cell(&doc(key))
        );
    }
    for key in keys {
        let path = format!("{at}.{}", key.name);
        let (title, keys) = match &key.rule.takes {
            Takes::Table(keys, _) => (format!("`{}` of `{whose}`", key.name), keys),
            Takes::Tables(keys, _) => (format!("each of `{path}`"), keys),
            Takes::Word(words) if words.iter().any(|(_, doc)| !doc.is_empty()) => {
                let _ = write!(page, "\n`{}`:\n\n", key.name);
                for (word, doc) in words {
                    let _ = writeln!(page, "- `{word}`: {}", doc.trim_end_matches('.'));
                }
                continue;
            }
            _ => continue,
        };
        let _ = write!(page, "\n### {title}\n\n{}\n", key.doc);
        keys_of(page, whose, &path, keys);
    }
}

fn takes(key: &Key) -> String {
    match (&key.rule.takes, &key.rule.example) {
        (
            Takes::Text(_) | Takes::Path | Takes::List(_) | Takes::Map(..) | Takes::Tables(..),
            Some(example),
        ) => {
            format!("{}: `{example}`", key.rule.takes)
        }
        (takes, _) => takes.to_string(),
    }
}

fn unset(key: &Key) -> String {
    match (&key.rule.unset, &key.rule.takes) {
        (Unset::Refused, _) => "must be there".into(),
        (Unset::Value(value), _) => format!("`{value}`"),
        (Unset::Means(""), Takes::Table(..)) => "see below".into(),
        (Unset::Means(words), _) => (*words).into(),
    }
}

fn doc(key: &Key) -> String {
    // That a model has a server goes without saying.
    match key.rule.only {
        only if only.is_empty() || only.len() > 2 => key.doc.clone(),
        only => format!("{} Only with `provider = \"{}\"`.", key.doc, only.join("\" or \"")),
    }
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Every key in a line: name, what it takes, what holds without it.
pub fn list() -> Vec<[String; 4]> {
    fn each(keys: &[Key], at: &str, lines: &mut Vec<[String; 4]>) {
        for key in keys {
            let path =
                if at.is_empty() { key.name.to_owned() } else { format!("{at}.{}", key.name) };
            match &key.rule.takes {
                Takes::Table(keys, _) => each(keys, &path, lines),
                Takes::Tables(keys, _) => {
                    let item = if path == "plugins" { "NAME" } else { "N" };
                    each(keys, &format!("{path}.{item}"), lines);
                }
                takes => {
                    lines.push([variable(&path), path, takes.to_string(), unset(key)]);
                }
            }
        }
    }
    let mut lines = Vec::new();
    each(&Config::keys(), "", &mut lines);
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_that_of_the_types() {
        let page = include_str!("../../../docs/config.md");
        assert!(
            super::page() == page,
            "host/docs/config.md differs from the types: cargo xtask docs"
        );
    }
}
