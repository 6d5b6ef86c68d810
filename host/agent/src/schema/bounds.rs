//! Bounds on the work of one check: of the schema when it is compiled, of the arguments when they
//! are checked.
//!
//! A validator does about one step for each pair of a schema node and a value that it applies to.
//! Without recursion that is at most the expanded schema (references and combinators multiplied
//! out) for each value; with recursion it may double with each level of the arguments, so there
//! the pairs are counted for the arguments at hand.

use super::issue::Issue;
use super::node::{each_member, members, references, resolve, same};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Bytes of the schema as JSON text.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Nesting of the schema's JSON.
const SCHEMA_DEPTH_MAX: usize = 64;
/// Schema nodes after references and combinators are multiplied out.
const EXPANDED_NODES_MAX: u64 = 20_000;
/// Nesting of the arguments.
const ARGUMENTS_DEPTH_MAX: usize = 128;
/// Values in the arguments.
const ARGUMENTS_VALUES_MAX: usize = 500_000;
/// Pairs of a schema node and a value, counted where the schema is recursive.
const RECURSIVE_STEPS_MAX: u64 = 1_000_000;

/// What is known of a schema from its compilation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) recursive: bool,
}

impl Bounds {
    pub(super) fn of(document: &Value) -> Result<Self, String> {
        let bytes = document.to_string().len();
        if bytes > SCHEMA_BYTES_MAX {
            return Err(format!("its schema has {bytes} bytes, the limit is {SCHEMA_BYTES_MAX}"));
        }
        if depth(document, SCHEMA_DEPTH_MAX).is_none() {
            return Err(format!("its schema nests deeper than {SCHEMA_DEPTH_MAX} levels"));
        }
        let mut expansion = Expansion { root: document, known: HashMap::new(), recursive: false };
        let nodes = expansion.nodes(document, &mut HashSet::new())?;
        if nodes > EXPANDED_NODES_MAX {
            return Err(format!(
                "its schema has {nodes} nodes when references and combinators are multiplied out, \
                 the limit is {EXPANDED_NODES_MAX}"
            ));
        }
        Ok(Self { recursive: expansion.recursive })
    }

    /// Refuses arguments whose check would be unbounded work.
    pub(super) fn check(&self, document: &Value, arguments: &Value) -> Result<(), Issue> {
        let values = depth(arguments, ARGUMENTS_DEPTH_MAX).ok_or_else(|| {
            Issue::root("depth", format!("at most {ARGUMENTS_DEPTH_MAX} levels"), "more levels")
        })?;
        if values > ARGUMENTS_VALUES_MAX {
            let actual = format!("{values} values");
            return Err(Issue::root(
                "size",
                format!("at most {ARGUMENTS_VALUES_MAX} values"),
                &actual,
            ));
        }
        if !self.recursive {
            return Ok(());
        }
        let steps = Steps { root: document, known: HashMap::new() }.steps(document, arguments);
        if steps > RECURSIVE_STEPS_MAX {
            return Err(Issue::root(
                "depth",
                "arguments that the schema can be checked against".into(),
                "nesting that its alternatives multiply beyond the limit",
            ));
        }
        Ok(())
    }
}

/// The number of values, or `None` if they nest too deep. Not recursive beyond the limit.
fn depth(value: &Value, levels: usize) -> Option<usize> {
    let below = levels.checked_sub(1)?;
    let mut count = 1;
    match value {
        Value::Array(items) => {
            for item in items {
                count += depth(item, below)?;
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                count += depth(member, below)?;
            }
        }
        _ => {}
    }
    Some(count)
}

/// Counts the nodes of the expanded schema. Each node is counted once and remembered, so the
/// counting itself is linear.
struct Expansion<'s> {
    root: &'s Value,
    known: HashMap<*const Value, u64>,
    recursive: bool,
}

impl<'s> Expansion<'s> {
    fn nodes(
        &mut self,
        schema: &'s Value,
        path: &mut HashSet<*const Value>,
    ) -> Result<u64, String> {
        let Value::Object(node) = schema else { return Ok(1) };
        let key: *const Value = schema;
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        if !path.insert(key) {
            self.recursive = true;
            return Ok(1);
        }
        let mut count = 1u64;
        for reference in references(node) {
            let target = resolve(self.root, reference).ok_or_else(|| {
                format!(
                    "its schema refers to {reference:?}; only pointers into the schema are taken"
                )
            })?;
            count = count.saturating_add(self.nodes(target, path)?);
        }
        for child in same(node).chain(members(node)) {
            count = count.saturating_add(self.nodes(child, path)?);
        }
        path.remove(&key);
        self.known.insert(key, count);
        Ok(count)
    }
}

/// Counts the steps of a check of one value, each pair once and remembered.
struct Steps<'s> {
    root: &'s Value,
    known: HashMap<(*const Value, *const Value), u64>,
}

impl<'s> Steps<'s> {
    fn steps(&mut self, schema: &'s Value, value: &Value) -> u64 {
        let Value::Object(node) = schema else { return 1 };
        let key: (*const Value, *const Value) = (schema, value);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        // A reference loop without a member between is harmless to the validator.
        self.known.insert(key, 1);
        let mut count = 1u64;
        for target in references(node).filter_map(|reference| resolve(self.root, reference)) {
            count = count.saturating_add(self.steps(target, value));
        }
        for child in same(node) {
            count = count.saturating_add(self.steps(child, value));
        }
        let mut of_members = 0u64;
        each_member(node, value, &mut |schema, member| {
            of_members = of_members.saturating_add(self.steps(schema, member));
        });
        count = count.saturating_add(of_members);
        self.known.insert(key, count);
        count
    }
}
