//! What stands above the file: variables of the environment, and above them the command line. Both
//! reach every key, and both are held against the same descriptions as the file.

use super::check::{Checker, item_name, join};
use super::keys::{Key, Takes};
use super::tree::{Node, Origin, Step, Value};
use crate::places;
use cofferdam_sandbox::nearest_of;
use std::fmt;

/// What stands above the operator's file.
///
/// The variable of a key is `COFFERDAM_` and the key in capital letters, each dot, dash and underscore
/// an underscore: `COFFERDAM_AGENT_MAX_TURNS` sets `agent.max_turns`. A plugin's keys go by its name:
/// `plugins.calc.limits.wall_ms`; those of a hook by its place in the list, from 0: `hooks.0.tools`.
///
/// A text is taken as it is. Lists and tables are written as in the file; a list may also be the text
/// of its only item.
#[derive(Clone, Default)]
pub struct Layers {
    /// Variables with their values. Those that belong to no section of the file are left alone.
    pub environment: Vec<(String, String)>,
    /// `KEY=VALUE`, as the command line has them. A later one stands above an earlier one.
    pub flags: Vec<String>,
}

impl fmt::Debug for Layers {
    /// The values may be credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
        f.debug_struct("Layers")
            .field(
                "environment",
                &self.environment.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("flags", &self.flags.iter().map(keys).collect::<Vec<_>>())
            .finish()
    }
}

/// What every variable of the host begins with.
const PREFIX: &str = "COFFERDAM_";

impl Layers {
    /// The environment of this process, and flags of its command line.
    pub fn of_process(flags: Vec<String>) -> Self {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        let mut environment: Vec<_> = environment.collect();
        environment.sort();
        Self { environment, flags }
    }

    /// Puts the layers over the file.
    pub(super) fn over(&self, tree: &mut Node, keys: &[Key], checker: &mut Checker<'_>) {
        let known = self.variables(tree, keys);
        for (name, value) in &self.environment {
            let origin = Origin::Variable(name.clone());
            let own = known.iter().find(|(variable, ..)| variable == name);
            match own {
                Some((_, path, takes)) => put(tree, path, takes, value, origin, checker),
                // The older name, which commands without a file know too. Set to nothing, it is
                // no folder: see `places`.
                None if name == places::CACHE_VARIABLE && !value.is_empty() => {
                    let path = [Step::Key("sandbox".into()), Step::Key("cache_dir".into())];
                    put(tree, &path, &Takes::Path, value, origin, checker);
                }
                None if is_of_a_section(name, keys) => {
                    let names: Vec<&str> = known.iter().map(|(name, ..)| name.as_str()).collect();
                    let near = nearest_of(name, &names).unwrap_or_default();
                    let problem = format!("no key has this variable: did you mean `{near}`?");
                    checker.mistake(&origin, name, problem);
                }
                None => {}
            }
        }
        for flag in &self.flags {
            let Some((key, value)) = flag.split_once('=') else {
                let origin = Origin::Flag(flag.clone());
                let problem = "it takes KEY=VALUE, as in `--set agent.max_turns=20`";
                checker.mistake(&origin, flag, problem);
                continue;
            };
            let key = key.trim();
            let origin = Origin::Flag(key.to_owned());
            match find(tree, keys, key) {
                Ok((path, takes)) => put(tree, &path, &takes, value, origin, checker),
                Err(problem) => checker.mistake(&origin, key, problem),
            }
        }
    }

    /// The variables of all keys that this file can have, with the places that they set.
    fn variables(&self, tree: &Node, keys: &[Key]) -> Vec<(String, Vec<Step>, Takes)> {
        if self.environment.is_empty() {
            return Vec::new();
        }
        let mut all = Vec::new();
        each(Some(tree), keys, "", &mut Vec::new(), &mut |key, path, takes| {
            all.push((variable(key), path.to_vec(), takes.clone()));
        });
        all
    }
}

/// The variable of a key.
pub(crate) fn variable(key: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    PREFIX.chars().chain(key.chars().map(capital)).collect()
}

fn is_of_a_section(variable_name: &str, keys: &[Key]) -> bool {
    keys.iter().any(|section| variable_name.starts_with(&format!("{}_", variable(section.name))))
}

/// Every key that can be set, with its place: tables and what is in them, lists of tables as far as
/// the file has items.
fn each(
    node: Option<&Node>,
    keys: &[Key],
    at: &str,
    path: &mut Vec<Step>,
    tell: &mut dyn FnMut(&str, &[Step], &Takes),
) {
    for key in keys {
        let name = join(at, key.name);
        let node = node.and_then(|node| node.get(key.name));
        path.push(Step::Key(key.name.into()));
        tell(&name, path, &key.rule.takes);
        match &key.rule.takes {
            Takes::Table(keys, _) => each(node, keys, &name, path, tell),
            Takes::Tables(keys, _) => {
                for (place, item) in node.map(Node::items).unwrap_or_default().iter().enumerate() {
                    path.push(Step::Item(place));
                    let name = join(&name, &item_name(item, place));
                    each(Some(item), keys, &name, path, tell);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// The place of a key, as the command line names it.
fn find(tree: &Node, keys: &[Key], wanted: &str) -> Result<(Vec<Step>, Takes), String> {
    let mut found = None;
    let mut names = Vec::new();
    each(Some(tree), keys, "", &mut Vec::new(), &mut |key, path, takes| {
        if key == wanted {
            found = Some((path.to_vec(), takes.clone()));
        }
        // A name of the operator's own.
        if let (Takes::Map(_, values), Some(rest)) = (takes, wanted.strip_prefix(key))
            && let Some(name) = rest.strip_prefix('.')
        {
            let own = path.iter().cloned().chain([Step::Key(name.into())]).collect();
            found = Some((own, (**values).clone()));
        }
        names.push(key.to_owned());
    });
    found.ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = nearest_of(wanted, &names).unwrap_or_default();
        format!("`{wanted}` is no key of this file: did you mean `{near}`?")
    })
}

fn put(
    tree: &mut Node,
    path: &[Step],
    takes: &Takes,
    text: &str,
    origin: Origin,
    checker: &mut Checker<'_>,
) {
    match read(takes, text, &origin) {
        Ok(node) => tree.set(path, node),
        Err(problem) => {
            let key = key_of(path);
            let problem = format!("`{key}` is not written as TOML: {problem}; it takes {takes}");
            checker.mistake(&origin, &key, problem);
        }
    }
}

/// The value that a text stands for.
fn read(takes: &Takes, text: &str, origin: &Origin) -> Result<Node, String> {
    let plain = |value| Node { value, origin: origin.clone() };
    let as_text = || plain(Value::Text(text.to_owned()));
    Ok(match takes {
        Takes::Text(_) | Takes::Word(_) => as_text(),
        Takes::Path => plain(Value::Text(from_here(text))),
        // What is no number and no switch is a text, which the check refuses in its own words.
        Takes::Whole { .. } | Takes::Switch | Takes::Seconds | Takes::Anything => {
            Node::parse_value(text.trim(), origin).unwrap_or_else(|_| as_text())
        }
        Takes::List(items) if !text.trim_start().starts_with('[') => match text.trim() {
            "" => plain(Value::List(Vec::new())),
            one => plain(Value::List(vec![read(items, one, origin)?])),
        },
        Takes::List(_) | Takes::Table(..) | Takes::Tables(..) | Takes::Map(..) => {
            let mut node = Node::parse_value(text.trim(), origin)?;
            paths_from_here(&mut node, takes);
            node
        }
    })
}

/// Paths of the environment and of the command line begin where the process does, not at the file.
fn from_here(text: &str) -> String {
    match std::path::absolute(text) {
        Ok(path) if !text.is_empty() => path.to_string_lossy().into_owned(),
        _ => text.to_owned(),
    }
}

fn paths_from_here(node: &mut Node, takes: &Takes) {
    let of_table = |node: &mut Node, keys: &[Key]| {
        let Value::Table(entries) = &mut node.value else { return };
        for (name, entry) in entries {
            if let Some(key) = keys.iter().find(|key| key.name == name) {
                paths_from_here(entry, &key.rule.takes);
            }
        }
    };
    match (takes, &mut node.value) {
        (Takes::Path, Value::Text(text)) => *text = from_here(text),
        (Takes::Tables(keys, _), Value::List(items)) => {
            items.iter_mut().for_each(|item| of_table(item, keys));
        }
        (Takes::Table(keys, _), _) => of_table(node, keys),
        _ => {}
    }
}

fn key_of(path: &[Step]) -> String {
    path.iter().fold(String::new(), |at, step| match step {
        Step::Key(key) => join(&at, key),
        Step::Item(item) => join(&at, &item.to_string()),
    })
}
