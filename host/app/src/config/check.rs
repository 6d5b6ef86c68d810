//! Every value held against the description of its key, before anything is made of it. All mistakes
//! are told at once, each with its place, its key and what to write instead.

use super::keys::{Key, Rule, SECONDS_MAX, Takes, Unset};
use super::tree::{Node, Origin, Value};
use cofferdam_sandbox::{nearest_of, text::visible};
use std::path::Path;

/// Something in the operator's file, in the environment or on the command line that cannot be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is: `cofferdam.toml:3`, the name of a variable, or the flag.
    pub place: String,
    /// The key, such as `agent.max_turns`.
    pub key: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// Characters of a value that a message shows.
const SHOWN_MAX: usize = 60;

/// Collects the mistakes of one file.
pub(crate) struct Checker<'a> {
    file: &'a Path,
    top: &'a [Key],
    pub(crate) mistakes: Vec<Mistake>,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(file: &'a Path, top: &'a [Key]) -> Self {
        Self { file, top, mistakes: Vec::new() }
    }

    /// The whole file.
    pub(crate) fn file(&mut self, tree: &Node) {
        self.table("", self.top, tree);
    }

    /// Notes a mistake.
    pub(crate) fn mistake(&mut self, origin: &Origin, key: &str, problem: impl Into<String>) {
        let place = place(self.file, origin);
        let problem = problem.into();
        self.mistakes.push(Mistake { place, key: key.into(), problem });
    }

    fn table(&mut self, at: &str, keys: &[Key], node: &Node) {
        let provider = node.get("provider").and_then(Node::as_text);
        for (name, entry) in node.entries() {
            let path = join(at, name);
            let Some(key) = keys.iter().find(|key| key.name == name) else {
                let problem = self.unknown(at, name, keys);
                self.mistake(&entry.origin, &path, problem);
                continue;
            };
            match provider {
                Some(provider) if !goes_with(&key.rule, provider) => {
                    let problem = format!(
                        "`{path}` does not go with `provider = \"{}\"`: take it away, or choose {}",
                        visible(provider, SHOWN_MAX),
                        or_list(key.rule.only)
                    );
                    self.mistake(&entry.origin, &path, problem);
                }
                _ => self.value(&path, &key.rule, entry),
            }
        }
        for key in keys {
            let needed = matches!(key.rule.unset, Unset::Refused)
                && provider.is_none_or(|provider| goes_with(&key.rule, provider));
            // Which keys a model has to have depends on a provider that is not known.
            let unknown = provider.is_none() && !key.rule.only.is_empty();
            if needed && !unknown && node.get(key.name).is_none() {
                let path = join(at, key.name);
                let problem = format!(
                    "`{path}` is missing: add {} ({})",
                    example(key),
                    first_sentence(&key.doc)
                );
                self.mistake(&node.origin, &path, problem);
            }
        }
    }

    fn value(&mut self, path: &str, rule: &Rule, node: &Node) {
        match (&rule.takes, &node.value) {
            (Takes::Table(keys, together), Value::Table(_)) => {
                self.group(path, keys, *together, node);
            }
            (Takes::Tables(keys, together), Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let path = join(path, &item_name(item, at));
                    match &item.value {
                        Value::Table(_) => self.group(&path, keys, *together, item),
                        other => {
                            let problem = format!("`{path}` takes a table, not {}", other.kind());
                            self.mistake(&item.origin, &path, problem);
                        }
                    }
                }
            }
            (Takes::Tables(..), _) => {
                let problem = match path.contains('.') {
                    true => format!("`{path}` takes a list of tables, as in {path} = [{{ … }}]"),
                    false => {
                        format!("`{path}` is a list: write each as a table of its own, [[{path}]]")
                    }
                };
                self.mistake(&node.origin, path, problem);
            }
            (Takes::Table(..), Value::List(_)) if !path.contains('.') => {
                let problem = format!("there is one `{path}`: write it as [{path}]");
                self.mistake(&node.origin, path, problem);
            }
            (Takes::Map(names, values), Value::Table(entries)) => {
                for (name, entry) in entries {
                    let path = join(path, name);
                    if let Err(takes) = names(name) {
                        let problem = format!(
                            "`{}` cannot be a name there: it takes {takes}",
                            visible(&path, SHOWN_MAX)
                        );
                        self.mistake(&entry.origin, &path, problem);
                    }
                    let rule = Rule { takes: (**values).clone(), example: None, ..rule.clone() };
                    self.value(&path, &rule, entry);
                }
            }
            (Takes::List(takes), Value::List(items)) => {
                for item in items {
                    if let Err(problem) = scalar(takes, &item.value) {
                        let problem = self.refusal(path, rule, &item.value, &problem);
                        self.mistake(&item.origin, path, problem);
                    }
                }
            }
            (takes, value) => {
                if let Err(problem) = scalar(takes, value) {
                    let problem = self.refusal(path, rule, value, &problem);
                    self.mistake(&node.origin, path, problem);
                }
            }
        }
    }

    /// A table, and what its keys say together if each is right by itself.
    fn group(&mut self, path: &str, keys: &[Key], together: super::keys::Together, node: &Node) {
        let before = self.mistakes.len();
        self.table(path, keys, node);
        if self.mistakes.len() > before {
            return;
        }
        if let Err(problem) = together(&node.to_toml()) {
            self.mistake(&node.origin, path, format!("`{path}`: {problem}"));
        }
    }

    fn refusal(&self, path: &str, rule: &Rule, value: &Value, takes: &str) -> String {
        let given = match (rule.hidden, shown(value)) {
            (false, Some(shown)) if !may_name_a_user(&shown) => shown,
            _ => value.kind().to_owned(),
        };
        let example = match &rule.example {
            Some(example) => format!(", as in `{} = {example}`", last(path)),
            None => String::new(),
        };
        format!("`{path}` cannot be {given}: it takes {takes}{example}")
    }

    /// A key that nobody knows: what was meant, perhaps.
    fn unknown(&self, at: &str, name: &str, keys: &[Key]) -> String {
        let path = visible(&join(at, name), 2 * SHOWN_MAX);
        let known: Vec<&str> = keys.iter().map(|key| key.name).collect();
        let near = nearest_of(name, &known).unwrap_or_default();
        let elsewhere = self.top.iter().find(|section| match &section.rule.takes {
            Takes::Table(keys, _) | Takes::Tables(keys, _) => {
                keys.iter().any(|key| key.name == name)
            }
            _ => false,
        });
        let hint = match elsewhere {
            Some(section) if section.name != at => format!("it is one of {}", heading(section)),
            _ => format!("did you mean `{near}`?"),
        };
        format!("`{path}` is no key: {hint} {} {}", whose(at), or_list(&known))
    }
}

/// Whether a text may be an address with a user's name and password.
fn may_name_a_user(text: &str) -> bool {
    text.split_once(':').is_some_and(|(_, rest)| rest.contains('@'))
}

/// Where something is, for a message.
pub(crate) fn place(file: &Path, origin: &Origin) -> String {
    match origin {
        Origin::Line(line) => format!("{}:{line}", file.display()),
        Origin::Default => file.display().to_string(),
        other => other.to_string(),
    }
}

/// The key of something in something.
pub(crate) fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.into() } else { format!("{at}.{name}") }
}

/// What an item of a list of tables is called: by its name, or by its number from 0.
pub(crate) fn item_name(item: &Node, at: usize) -> String {
    match item.get("name").and_then(Node::as_text) {
        Some(name) if super::is_plain_name(name) => name.into(),
        _ => at.to_string(),
    }
}

fn goes_with(rule: &Rule, provider: &str) -> bool {
    rule.only.is_empty() || rule.only.contains(&provider)
}

/// Whether a value is one that is taken: `Err` says what is.
fn scalar(takes: &Takes, value: &Value) -> Result<(), String> {
    let fits = match (takes, value) {
        (Takes::Text(check), Value::Text(text)) => return check(text),
        (Takes::Path, Value::Text(text)) => !text.is_empty() && !text.contains('\0'),
        (Takes::Switch, Value::Switch(_)) | (Takes::Anything, _) => true,
        (Takes::Whole { least, most, .. }, Value::Whole(number)) => {
            (i128::from(*least)..=i128::from(*most)).contains(number)
        }
        (Takes::Whole { words, .. }, Value::Text(text)) => words.contains(&text.as_str()),
        // A word that switches something off may be written as a switch.
        (Takes::Whole { words, .. }, Value::Switch(on)) => {
            words.contains(&if *on { "on" } else { "off" })
        }
        (Takes::Seconds, Value::Whole(number)) => (1..=SECONDS_MAX as i128).contains(number),
        (Takes::Seconds, Value::Decimal(number)) => *number > 0.0 && *number <= SECONDS_MAX,
        (Takes::Word(words), Value::Text(text)) => {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            if known.contains(&text.as_str()) {
                return Ok(());
            }
            let near = nearest_of(text, &known).unwrap_or_default();
            return Err(format!("{takes}; did you mean `{near}`?"));
        }
        _ => false,
    };
    if fits { Ok(()) } else { Err(takes.to_string()) }
}

/// A value for a message; none of what has no short form.
fn shown(value: &Value) -> Option<String> {
    Some(match value {
        Value::Text(text) => format!("{:?}", visible(text, SHOWN_MAX)),
        Value::Whole(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Switch(switch) => switch.to_string(),
        Value::Date(_) | Value::List(_) | Value::Table(_) => return None,
    })
}

/// How a section is written.
pub(crate) fn heading(section: &Key) -> String {
    match section.rule.takes {
        Takes::Tables(..) => format!("[[{}]]", section.name),
        _ => format!("[{}]", section.name),
    }
}

/// Begins a sentence about the keys of a table.
fn whose(at: &str) -> String {
    match at {
        "" => "The file has".into(),
        at => format!("`{at}` has"),
    }
}

fn or_list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A key as it might be written.
fn example(key: &Key) -> String {
    match (&key.rule.example, &key.rule.takes) {
        (Some(value), _) => format!("`{} = {value}`", key.name),
        (None, takes) => format!("`{} = …`, {takes}", key.name),
    }
}

/// The first sentence of a documentation, as it stands in brackets.
fn first_sentence(doc: &str) -> String {
    let end = doc.find(". ").unwrap_or(doc.len());
    let sentence = doc[..end].trim_end_matches('.');
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}
