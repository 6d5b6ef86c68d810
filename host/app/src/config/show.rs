//! The values that are in force, each with where it came from. What may be a credential is not among
//! them.

use super::Config;
use super::check::{item_name, join, place};
use super::keys::{Key, Rule, Takes, Unset};
use super::tree::{Node, Origin, Value};
use crate::places;
use cofferdam_sandbox::grants::is_credential;
use serde_json::{Map, Value as Json, json};

/// A value in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Effective {
    /// The key, such as `plugins.calc.limits.wall_ms`.
    pub key: String,
    /// The value; none if there is none, or if it is not shown.
    pub value: Option<Json>,
    /// In words, what holds where there is no value.
    pub words: Option<String>,
    /// Whether the value may be a credential, and is not shown.
    pub hidden: bool,
    /// Where it came from.
    pub origin: Origin,
    /// The same for people: `cofferdam.toml:3`, a variable, a flag, `default`.
    pub place: String,
}

/// What stands for a value that is not shown.
const HIDDEN: &str = "…";

/// Every key with its value in force, in the order of the documentation. Without a configuration those
/// that hold without one.
pub fn effective(config: Option<&Config>) -> Vec<Effective> {
    let mut rows = Vec::new();
    let tree = config.and_then(|config| config.sources.tree());
    let mut shower = Shower { config, rows: &mut rows };
    shower.table("", &Config::keys(), tree);
    rows
}

struct Shower<'a> {
    config: Option<&'a Config>,
    rows: &'a mut Vec<Effective>,
}

impl Shower<'_> {
    fn table(&mut self, at: &str, keys: &[Key], node: Option<&Node>) {
        let provider = node.and_then(|node| node.get("provider")).and_then(Node::as_text);
        for key in keys {
            let only = &key.rule.only;
            if !only.is_empty() && provider.is_none_or(|provider| !only.contains(&provider)) {
                continue;
            }
            let set = node.and_then(|node| node.get(key.name));
            self.key(&join(at, key.name), &key.rule, set);
        }
    }

    fn key(&mut self, path: &str, rule: &Rule, set: Option<&Node>) {
        match (&rule.takes, set) {
            // A model that is not there has no keys.
            (Takes::Table(..), None) if matches!(rule.unset, Unset::Means(words) if !words.is_empty()) =>
            {
                self.unset(path, rule);
            }
            (Takes::Table(keys, _), set) => self.table(path, keys, set),
            (Takes::Tables(keys, _), Some(node)) if !node.items().is_empty() => {
                for (at, item) in node.items().iter().enumerate() {
                    self.table(&join(path, &item_name(item, at)), keys, Some(item));
                }
            }
            (Takes::Map(..), Some(node)) if !node.entries().is_empty() => {
                for (name, entry) in node.entries() {
                    let hidden = rule.hidden || is_credential(name);
                    self.set(&join(path, name), hidden, entry);
                }
            }
            (_, Some(node)) => self.set(path, rule.hidden, node),
            (_, None) => self.unset(path, rule),
        }
    }

    fn set(&mut self, path: &str, hidden: bool, node: &Node) {
        let value = (!hidden).then(|| to_json(node));
        self.row(path, value, None, hidden, node.origin.clone());
    }

    fn unset(&mut self, path: &str, rule: &Rule) {
        if path == "sandbox.cache_dir"
            && std::env::var_os(places::CACHE_VARIABLE).is_some_and(|dir| dir.is_empty())
        {
            let origin = Origin::Variable(places::CACHE_VARIABLE.into());
            return self.row(path, None, Some("no code is kept".into()), false, origin);
        }
        let (value, words) = match &rule.unset {
            Unset::Value(written) => {
                let read = Node::parse_value(written, &Origin::Default);
                (read.ok().map(|node| to_json(&node)), None)
            }
            Unset::Means(words) => (None, Some((*words).to_owned())),
            Unset::Refused => (None, None),
        };
        let folder = match path {
            "session.dir" => places::sessions(),
            "sandbox.cache_dir" => places::cache().map(|cache| cache.dir),
            _ => None,
        };
        let value = folder.map(|folder| json!(folder.display().to_string())).or(value);
        self.row(path, value, words, false, Origin::Default);
    }

    fn row(
        &mut self,
        key: &str,
        value: Option<Json>,
        words: Option<String>,
        hidden: bool,
        origin: Origin,
    ) {
        let place = match (&origin, self.config) {
            (Origin::Line(_), Some(config)) => place(&config.path, &origin),
            _ => origin.to_string(),
        };
        self.rows.push(Effective { key: key.into(), value, words, hidden, origin, place });
    }
}

impl Effective {
    /// The value for people, as it is written in the file; words in brackets where there is none.
    pub fn shown(&self) -> String {
        match (&self.value, &self.words) {
            (_, _) if self.hidden => format!("({HIDDEN}, not shown)"),
            (Some(value), _) => value.to_string(),
            (None, words) => format!("({})", words.as_deref().unwrap_or("none")),
        }
    }

    /// The row for programs.
    pub fn to_json(&self) -> Json {
        let source = match &self.origin {
            Origin::Default => json!({"kind": "default"}),
            Origin::Line(line) => json!({"kind": "file", "line": line}),
            Origin::Variable(name) => json!({"kind": "environment", "variable": name}),
            Origin::Flag(key) => json!({"kind": "flag", "flag": format!("--set {key}")}),
        };
        json!({
            "key": self.key,
            "value": self.value,
            "words": self.words,
            "hidden": self.hidden,
            "source": source,
        })
    }
}

/// A value, without what may be a credential by its name.
fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Text(text) => json!(text),
        Value::Whole(number) => json!(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Decimal(number) => json!(number),
        Value::Switch(switch) => json!(switch),
        Value::Date(date) => json!(date.to_string()),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Table(entries) => {
            let shown = entries.iter().map(|(name, entry)| {
                let hidden = is_credential(name);
                (name.clone(), if hidden { json!(HIDDEN) } else { to_json(entry) })
            });
            Json::Object(shown.collect::<Map<_, _>>())
        }
    }
}
