//! Bounds on the work of one check: of the schema when it is compiled, of the arguments when they
//! are checked. Both may come from a plugin, and nothing can interrupt a check.
//!
//! A validator does about one step for each pair of a schema node and a value that it applies to,
//! and has one stack frame for each node on the way to a value. Without recursion the steps are at
//! most the expanded schema (references and combinators multiplied out) for each value. Where that
//! product is large, or the schema is recursive, the pairs are counted for the arguments at hand,
//! which costs more than checking them.

use super::issue::Issue;
use super::node::{count, data, each_member, has_members, members, references, resolve, same};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Bytes of the schema as JSON text.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Nesting of the schema's JSON.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Nesting of the schema after references are followed: a chain of a thousand references, thirty
/// bytes each, takes more stack than a thread has.
const EXPANDED_DEPTH_MAX: usize = 128;
/// Schema nodes after references and combinators are multiplied out.
const EXPANDED_NODES_MAX: u64 = 20_000;
/// Patterns after references and combinators are multiplied out: each is compiled.
const PATTERNS_MAX: u64 = 64;
/// Nesting of the arguments.
const ARGUMENTS_DEPTH_MAX: usize = 128;
/// Values in the arguments.
const ARGUMENTS_VALUES_MAX: usize = 500_000;
/// Steps that a check may take at most, so that nobody needs to count them: some tenths of a second.
const STEPS_UNCOUNTED_MAX: u64 = 64_000_000;
/// Steps that are counted. Counting one takes as long as a hundred checks of one.
const STEPS_COUNTED_MAX: u64 = 200_000;
/// Schema nodes on the way to a value in one check: each is a stack frame.
const CHECK_DEPTH_MAX: usize = 512;
/// Bytes of a text that cost about as much as one step, where the text is looked at as a whole.
const TEXT_BYTES_PER_STEP: u64 = 32;
/// Steps for each byte that a pattern or a format is matched with: in the worst case each byte moves
/// every state of the pattern.
const STEPS_PER_MATCHED_BYTE: u64 = 8;
/// Bytes that the errors of alternatives may copy: each has a copy of the value that it is about.
const COPIED_BYTES_MAX: u64 = 32 << 20;
/// Bytes of one JSON value in memory, roughly.
const VALUE_BYTES: u64 = 72;

/// What is known of a schema from its compilation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) recursive: bool,
    size: Size,
}

/// A schema node with everything below it, multiplied out.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: u64,
    patterns: u64,
    /// Branches of `anyOf` and `oneOf`.
    alternatives: u64,
    /// Nodes that look at each part of a value: patterns, formats, unique items.
    matchers: u64,
    height: usize,
}

/// How much there is to check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    values: usize,
    text_bytes: usize,
}

impl Bounds {
    pub(super) fn of(document: &Value) -> Result<Self, String> {
        let bytes = document.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(format!("its schema has {bytes} bytes, the limit is {SCHEMA_BYTES_MAX}"));
        }
        if Extent::of(document, SCHEMA_DEPTH_MAX).is_none() {
            return Err(format!("its schema nests deeper than {SCHEMA_DEPTH_MAX} levels"));
        }
        if let Some(keyword) = rebased(document, true) {
            return Err(format!(
                "its schema has {keyword:?} below its root; a pointer after it would mean \
                 something else to each reader"
            ));
        }
        let mut expansion = Expansion { root: document, known: HashMap::new(), recursive: false };
        let size = expansion.size(document, &mut Way::default())?;
        for (found, most, what) in
            [(size.nodes, EXPANDED_NODES_MAX, "nodes"), (size.patterns, PATTERNS_MAX, "patterns")]
        {
            if found > most {
                return Err(format!(
                    "its schema has {found} {what} when references and combinators are multiplied \
                     out, the limit is {most}"
                ));
            }
        }
        Ok(Self { recursive: expansion.recursive, size })
    }

    /// Patterns that are compiled for the schema.
    pub(super) fn patterns(&self) -> usize {
        usize::try_from(self.size.patterns).unwrap_or(usize::MAX)
    }

    /// Refuses arguments whose check would be unbounded work, or says how much there is to check.
    pub(super) fn check(&self, document: &Value, arguments: &Value) -> Result<Extent, Issue> {
        let extent = Extent::of(arguments, ARGUMENTS_DEPTH_MAX).ok_or_else(|| {
            Issue::root("depth", format!("at most {ARGUMENTS_DEPTH_MAX} levels"), "more levels")
        })?;
        if extent.values > ARGUMENTS_VALUES_MAX {
            let actual = format!("{} values", extent.values);
            return Err(Issue::root(
                "size",
                format!("at most {ARGUMENTS_VALUES_MAX} values"),
                &actual,
            ));
        }
        if !self.recursive && self.size.steps(extent) <= STEPS_UNCOUNTED_MAX {
            return Ok(extent);
        }
        match (Steps { root: document, left: STEPS_COUNTED_MAX }).take(document, arguments, 0) {
            Some(()) => Ok(extent),
            None => Err(Issue::root(
                "size",
                "arguments that the schema can be checked against".into(),
                "so many or so deeply nested values that its alternatives multiply beyond the limit",
            )),
        }
    }

    /// Whether errors can be told one by one. Those of alternatives copy the values that they are
    /// about, so a large value with many alternatives would fill the memory.
    pub(super) fn can_explain(&self, extent: Extent) -> bool {
        self.size.alternatives.saturating_mul(extent.bytes()) <= COPIED_BYTES_MAX
    }
}

impl Extent {
    /// The extent of a value, or `None` if it nests too deep. Not recursive beyond the limit.
    fn of(value: &Value, levels: usize) -> Option<Self> {
        let mut extent = Self::default();
        extent.add(value, levels).then_some(extent)
    }

    fn add(&mut self, value: &Value, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return false };
        self.values += 1;
        match value {
            Value::String(text) => {
                self.text_bytes += text.len();
                true
            }
            Value::Array(items) => items.iter().all(|item| self.add(item, below)),
            Value::Object(members) => members.iter().all(|(name, member)| {
                self.text_bytes += name.len();
                self.add(member, below)
            }),
            _ => true,
        }
    }

    fn bytes(self) -> u64 {
        (self.values as u64).saturating_mul(VALUE_BYTES).saturating_add(self.text_bytes as u64)
    }
}

/// A keyword below the root that gives pointers another root. Where it stands for a field's name its
/// value is a schema, and no text.
fn rebased(schema: &Value, at_root: bool) -> Option<&'static str> {
    match schema {
        Value::Object(node) => {
            let here = ["$id", "id", "$anchor", "$dynamicAnchor"]
                .into_iter()
                .find(|keyword| !at_root && node.get(*keyword).is_some_and(Value::is_string));
            here.or_else(|| node.values().find_map(|child| rebased(child, false)))
        }
        Value::Array(items) => items.iter().find_map(|item| rebased(item, false)),
        _ => None,
    }
}

/// The nodes from the root of a schema to where the counting is.
#[derive(Default)]
struct Way {
    /// Each with the members before it.
    nodes: HashMap<*const Value, usize>,
    /// Members on the way.
    members: usize,
}

/// Measures the expanded schema. Each node is measured once and remembered, so the measuring itself
/// is linear.
struct Expansion<'s> {
    root: &'s Value,
    known: HashMap<*const Value, Size>,
    recursive: bool,
}

impl<'s> Expansion<'s> {
    fn size(&mut self, schema: &'s Value, way: &mut Way) -> Result<Size, String> {
        let Value::Object(node) = schema else { return Ok(Size::ONE) };
        let key: *const Value = schema;
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if let Some(members) = way.nodes.get(&key) {
            if *members == way.members {
                return Err(
                    "its schema refers to itself for the same value, which ends never".into()
                );
            }
            self.recursive = true;
            return Ok(Size::ONE);
        }
        let too_deep = || {
            format!(
                "its schema nests deeper than {EXPANDED_DEPTH_MAX} levels when references are followed"
            )
        };
        if way.nodes.len() >= EXPANDED_DEPTH_MAX {
            return Err(too_deep());
        }
        way.nodes.insert(key, way.members);
        let mut size = Size::of(node);
        let times = looks(node);
        for reference in references(node) {
            let target = resolve(self.root, reference).ok_or_else(|| {
                format!(
                    "its schema refers to {reference:?}; only pointers into the schema are taken"
                )
            })?;
            size.add(self.size(target, way)?, times);
        }
        for child in same(node) {
            size.add(self.size(child, way)?, times);
        }
        way.members += 1;
        for child in members(node) {
            size.add(self.size(child, way)?, 1);
        }
        way.members -= 1;
        way.nodes.remove(&key);
        if size.height > EXPANDED_DEPTH_MAX {
            return Err(too_deep());
        }
        self.known.insert(key, size);
        Ok(size)
    }
}

impl Size {
    const ONE: Self = Self { nodes: 1, patterns: 0, alternatives: 0, matchers: 0, height: 1 };

    /// A node without what is below it. Data that values are compared with counts as nodes.
    fn of(node: &Map<String, Value>) -> Self {
        let patterns = keywords(node, &["pattern"])
            + node.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
        let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|k| node.get(k)?.as_array());
        Self {
            nodes: 1 + data(node),
            patterns: patterns as u64,
            alternatives: alternatives.map(|branches| branches.len() as u64).sum(),
            matchers: (patterns + keywords(node, &["format", "uniqueItems"])) as u64,
            height: 1,
        }
    }

    /// The most steps that a check of so much can take.
    fn steps(self, extent: Extent) -> u64 {
        let (values, bytes) = (extent.values as u64, extent.text_bytes as u64);
        let looks = self.nodes.saturating_mul(2 * values + bytes / TEXT_BYTES_PER_STEP);
        let parts = values * SCHEMA_DEPTH_MAX as u64 + bytes * STEPS_PER_MATCHED_BYTE;
        looks.saturating_add(self.matchers.saturating_mul(parts))
    }

    fn add(&mut self, below: Self, times: u64) {
        self.nodes = self.nodes.saturating_add(below.nodes.saturating_mul(times));
        self.patterns = self.patterns.saturating_add(below.patterns);
        self.alternatives = self.alternatives.saturating_add(below.alternatives);
        self.matchers = self.matchers.saturating_add(below.matchers);
        self.height = self.height.max(below.height + 1);
    }
}

/// Counts the steps of a check of one value; `None` if there are too many, or too deep.
struct Steps<'s> {
    root: &'s Value,
    left: u64,
}

impl<'s> Steps<'s> {
    fn take(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        let Value::Object(node) = schema else { return self.spend(1) };
        if depth > CHECK_DEPTH_MAX {
            return None;
        }
        self.spend((1 + data(node)).saturating_mul(looked_at(value)))?;
        self.spend(matched(node, value))?;
        for _ in 0..looks(node) {
            for target in references(node).filter_map(|reference| resolve(self.root, reference)) {
                self.take(target, value, depth + 1)?;
            }
            for child in same(node) {
                self.take(child, value, depth + 1)?;
            }
        }
        if !has_members(node) {
            return Some(());
        }
        self.spend(width(value))?;
        each_member(node, value, &mut |schema, member| self.take(schema, member, depth + 1))
    }

    fn spend(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}

/// How many of these a node has.
fn keywords(node: &Map<String, Value>, keywords: &[&str]) -> usize {
    keywords.iter().filter(|keyword| node.contains_key(**keyword)).count()
}

/// How often a node has the schemas for the same value checked: to find what is unevaluated, they are
/// asked again.
fn looks(node: &Map<String, Value>) -> u64 {
    let again = ["unevaluatedProperties", "unevaluatedItems"];
    if keywords(node, &again) > 0 { 3 } else { 1 }
}

/// Steps of looking at a value once, its members excepted.
fn looked_at(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / TEXT_BYTES_PER_STEP,
        _ => 1,
    }
}

/// Members of a value.
fn width(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.len() as u64,
        Value::Object(fields) => fields.len() as u64,
        _ => 0,
    }
}

/// Steps of the patterns, the formats and the comparisons of a node.
fn matched(node: &Map<String, Value>, value: &Value) -> u64 {
    let bytes = |text: &str| (text.len() as u64).saturating_mul(STEPS_PER_MATCHED_BYTE);
    match value {
        Value::String(text) => {
            bytes(text).saturating_mul(keywords(node, &["pattern", "format"]) as u64)
        }
        Value::Object(fields) => {
            let patterns = node.get("patternProperties").and_then(Value::as_object);
            match patterns.map_or(0, Map::len) as u64 {
                0 => 0,
                patterns => {
                    let names: u64 = fields.keys().map(|name| bytes(name)).sum();
                    names.saturating_mul(patterns)
                }
            }
        }
        Value::Array(_) if node.contains_key("uniqueItems") => count(value),
        _ => 0,
    }
}
