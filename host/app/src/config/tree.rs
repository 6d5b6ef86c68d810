//! The operator's file as a tree in which each value knows where it came from, before anything is
//! made of it.

use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// What is written.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    /// Wider than any key takes, so that what is too large is told so.
    Whole(i128),
    Decimal(f64),
    Switch(bool),
    Date(toml::value::Datetime),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Nobody set it.
    #[default]
    Default,
    /// A line of the file.
    Line(usize),
    /// A variable of the environment.
    Variable(String),
    /// The command line: `--set KEY=…`.
    Flag(String),
}

/// A step from a table or list to what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item(usize),
}

impl Node {
    /// Reads a file. `Err` has the line, if it is known, and what is wrong there.
    pub(crate) fn parse(text: &str) -> Result<Self, (Option<usize>, String)> {
        let lines = Lines::of(text);
        let table = DeTable::parse(text).map_err(|problem| {
            // Its own text would show the line, which may hold a credential.
            (problem.span().map(|span| lines.at(span.start)), problem.message().to_owned())
        })?;
        let value = Value::Table(of_table(table.into_inner(), &|at| Origin::Line(lines.at(at))));
        Ok(Self { value, origin: Origin::Line(1) })
    }

    /// Reads one value that came from elsewhere. `Err` says why it is none.
    pub(crate) fn parse_value(text: &str, origin: &Origin) -> Result<Self, String> {
        let value = DeValue::parse(text).map_err(|problem| problem.message().to_owned())?;
        Ok(of_value(value, &|_| origin.clone()))
    }

    pub(crate) fn table(origin: Origin) -> Self {
        Self { value: Value::Table(Vec::new()), origin }
    }

    /// The entries of a table; none of anything else.
    pub(crate) fn entries(&self) -> &[(String, Node)] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// What a table has under a key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Where something came from: what is nearest to it on the way there, if it is not there itself.
    pub(crate) fn origin_at(&self, path: &[Step]) -> &Origin {
        let Some((step, rest)) = path.split_first() else { return &self.origin };
        let next = match step {
            Step::Key(key) => self.get(key),
            Step::Item(item) => self.items().get(*item),
        };
        next.map_or(&self.origin, |next| next.origin_at(rest))
    }

    /// Puts a value in its place, with the tables on the way there.
    pub(crate) fn set(&mut self, path: &[Step], node: Node) {
        let Some((step, rest)) = path.split_first() else {
            *self = node;
            return;
        };
        match (step, &mut self.value) {
            (Step::Item(item), Value::List(items)) => {
                if let Some(next) = items.get_mut(*item) {
                    next.set(rest, node);
                }
            }
            (Step::Key(key), Value::Table(entries)) => {
                let place = entries.iter().position(|(name, _)| name == key);
                let place = place.unwrap_or_else(|| {
                    entries.push((key.clone(), Node::table(node.origin.clone())));
                    entries.len() - 1
                });
                entries[place].1.set(rest, node);
            }
            // What is no table is wrong there, and told so by the check.
            _ => {}
        }
    }

    /// The tree as TOML has it.
    pub(crate) fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) => text.clone().into(),
            Value::Whole(number) => i64::try_from(*number)
                .unwrap_or(if *number < 0 { i64::MIN } else { i64::MAX })
                .into(),
            Value::Decimal(number) => (*number).into(),
            Value::Switch(switch) => (*switch).into(),
            Value::Date(date) => (*date).into(),
            Value::List(items) => items.iter().map(Self::to_toml).collect::<Vec<_>>().into(),
            Value::Table(entries) => {
                let entries = entries.iter().map(|(name, node)| (name.clone(), node.to_toml()));
                toml::Value::Table(entries.collect())
            }
        }
    }
}

impl Value {
    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Whole(_) => "a whole number",
            Self::Decimal(_) => "a number with a fraction",
            Self::Switch(_) => "a switch",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl fmt::Display for Origin {
    /// As it stands before a message, save for the name of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(key) => write!(f, "--set {key}"),
        }
    }
}

type OriginOf<'a> = &'a dyn Fn(usize) -> Origin;

fn of_table(table: DeTable<'_>, origin: OriginOf<'_>) -> Vec<(String, Node)> {
    let mut entries: Vec<(usize, String, Node)> = table
        .into_iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let mut node = of_value(value, origin);
            // A table is where its first key is named; the value of a key, on the key's line.
            node.origin = origin(at);
            (at, key.into_inner().into_owned(), node)
        })
        .collect();
    entries.sort_by_key(|(at, ..)| *at);
    entries.into_iter().map(|(_, key, node)| (key, node)).collect()
}

fn of_value(value: Spanned<DeValue<'_>>, origin: OriginOf<'_>) -> Node {
    let at = value.span().start;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let wide = i128::from_str_radix(number.as_str(), number.radix());
            let too_low = number.as_str().starts_with('-');
            Value::Whole(wide.unwrap_or(if too_low { i128::MIN } else { i128::MAX }))
        }
        DeValue::Float(number) => Value::Decimal(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(switch) => Value::Switch(switch),
        DeValue::Datetime(date) => Value::Date(date),
        DeValue::Array(items) => {
            Value::List(items.into_iter().map(|item| of_value(item, origin)).collect())
        }
        DeValue::Table(table) => Value::Table(of_table(table, origin)),
    };
    Node { value, origin: origin(at) }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let after = |(at, byte): (usize, u8)| (byte == b'\n').then_some(at + 1);
        Self(std::iter::once(0).chain(text.bytes().enumerate().filter_map(after)).collect())
    }

    /// The line of a byte, counted from one.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte)
    }
}
