//! The tools that an agent offers, by exact name, each with its compiled schema. A tool that cannot
//! be offered is left out and reported: one bad declaration fails the whole request at most
//! providers, and it must not fail the session here.

mod declaration;

pub use declaration::Rules;

use crate::message::Arguments;
use crate::schema::Schema;
use crate::tool::{Declaration, Execution, Tool};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A set of tools. Cheap to share: an agent holds it in an `Arc` and takes a new one at the next
/// turn boundary when it is changed.
#[derive(Default)]
pub struct Toolset {
    tools: Vec<Arc<Entry>>,
    by_name: HashMap<String, usize>,
    declarations: Arc<Vec<Arc<Declaration>>>,
    refused: Vec<RefusedTool>,
    /// Whether any tool, refused ones included, must run alone: most sets have none.
    any_alone: bool,
}

/// A tool with what was made of its declaration.
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) schema: Schema,
    declaration: Arc<Declaration>,
}

/// A tool that is not offered, and why.
#[derive(Clone)]
pub struct RefusedTool {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Why it is refused, as a clause that fits after "the tool … cannot be used: ".
    pub reason: String,
}

/// What a name leads to.
pub(crate) enum Lookup<'t> {
    Found(&'t Arc<Entry>),
    Refused(&'t RefusedTool),
    Unknown,
}

impl Toolset {
    /// Checks and compiles every declaration, in order, and keeps those that satisfy the rules.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>, rules: Rules) -> Self {
        let mut set = Self::default();
        for tool in tools {
            set.any_alone |= runs_alone(&*tool);
            match set.admit(&tool, rules) {
                Ok(entry) => set.insert(Arc::new(entry)),
                Err(reason) => set.refused.push(RefusedTool { tool, reason }),
            }
        }
        set
    }

    /// The same with only the tools that satisfy `keep`; nothing is compiled again.
    pub fn subset(&self, keep: impl Fn(&str) -> bool) -> Self {
        let (refused, any_alone) = (self.refused.clone(), self.any_alone);
        let mut set = Self { refused, any_alone, ..Self::default() };
        for entry in &self.tools {
            if keep(&entry.declaration.name) {
                set.insert(entry.clone());
            }
        }
        set
    }

    /// The tools that are offered, in order.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|entry| &entry.tool)
    }

    /// The tool of this exact name, if it is offered.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// What the model is told, in order.
    pub fn declarations(&self) -> &Arc<Vec<Arc<Declaration>>> {
        &self.declarations
    }

    /// The tools that are not offered.
    pub fn refused(&self) -> &[RefusedTool] {
        &self.refused
    }

    /// The number of tools that are offered.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether no tool is offered.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The arguments of a call to one of these tools as the loop would hand them to it: coerced
    /// and validated. For callers that run a tool without an agent.
    pub fn validate(
        &self,
        name: &str,
        arguments: &Arguments,
    ) -> Option<Result<Arguments, crate::args::ArgsError>> {
        let entry = self.entry(name)?;
        let raw = crate::args::Prepared::from(arguments);
        Some(raw.validated(&entry.schema, true).map(crate::args::Valid::into_inner))
    }

    /// Whether a call of this name must run beside no other.
    pub(crate) fn is_alone(&self, name: &str) -> bool {
        self.any_alone
            && match self.lookup(name) {
                Lookup::Found(entry) => runs_alone(&*entry.tool),
                Lookup::Refused(refused) => runs_alone(&*refused.tool),
                Lookup::Unknown => false,
            }
    }

    pub(crate) fn lookup(&self, name: &str) -> Lookup<'_> {
        if let Some(entry) = self.entry(name) {
            return Lookup::Found(entry);
        }
        let refused = self.refused.iter().find(|refused| refused.tool.declaration().name == name);
        refused.map_or(Lookup::Unknown, Lookup::Refused)
    }

    fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name).map(|index| &self.tools[*index])
    }

    fn admit(&self, tool: &Arc<dyn Tool>, rules: Rules) -> Result<Entry, String> {
        let declared = tool.declaration();
        self.check_unique(tool, rules)?;
        let declaration = declaration::checked(declared, rules)?;
        let schema = Schema::compile(&declaration.parameters)?;
        if rules == Rules::Portable && schema.is_recursive() {
            return Err("its schema refers to itself, which some providers refuse".into());
        }
        Ok(Entry { tool: tool.clone(), schema, declaration })
    }

    /// A name belongs to one plugin. Some providers ignore case, so portable names that differ in
    /// case only are one.
    fn check_unique(&self, tool: &Arc<dyn Tool>, rules: Rules) -> Result<(), String> {
        let name = &tool.declaration().name;
        let same = |other: &str| match rules {
            Rules::Portable => other.eq_ignore_ascii_case(name),
            Rules::Lenient => other == name,
        };
        let taken = self.tools.iter().find(|e| same(&e.declaration.name));
        let Some(first) = taken else { return Ok(()) };
        Err(format!(
            "{} already offers a tool {:?}; keep one of them with `tools`, or rename this one with \
             `prefix`, in the entry of {}",
            owner(first.tool.plugin()),
            first.declaration.name,
            owner(tool.plugin()),
        ))
    }

    fn insert(&mut self, entry: Arc<Entry>) {
        self.by_name.insert(entry.declaration.name.clone(), self.tools.len());
        Arc::make_mut(&mut self.declarations).push(entry.declaration.clone());
        self.tools.push(entry);
    }
}

fn runs_alone(tool: &dyn Tool) -> bool {
    *tool.execution() == Execution::Sequential
}

fn owner(plugin: &str) -> String {
    if plugin.is_empty() { "the host itself".into() } else { format!("plugin {plugin:?}") }
}

impl fmt::Debug for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|e| e.declaration.name.as_str()).collect();
        f.debug_struct("Toolset").field("tools", &names).field("refused", &self.refused).finish()
    }
}

impl fmt::Debug for RefusedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedTool")
            .field("tool", &self.tool.declaration().name)
            .field("reason", &self.reason)
            .finish()
    }
}
