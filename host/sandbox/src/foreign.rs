//! Components of other worlds: those that know nothing of the contract and export plain functions.
//! Each function is offered as a tool behind the same wall, with a schema derived from its types.
//!
//! A function that takes or returns a resource, a stream or a future is refused: every call has an
//! instance of its own, so a handle from one call would be nothing to the next.

mod schema;
mod value;

use crate::call::{GuestCall, Reply};
use crate::declare::{Offered, RefusedTool};
use crate::error::Failure;
use crate::inspect::is_ours;
use crate::state::State;
use crate::text::visible;
use cofferdam_agent::tool::{Execution, ToolResult};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, ComponentExportIndex, Instance, Val};
use wasmtime::{Engine, Store};

/// The functions of a component that are offered as tools, and those that are not.
#[derive(Clone, Default)]
pub(crate) struct Functions {
    offered: Arc<[Function]>,
    refused: Arc<[RefusedTool]>,
}

/// One exported function.
struct Function {
    tool: String,
    /// As its component has it: `docs:adder/add@0.1.0#add`, or `add` where it is in no interface.
    path: String,
    index: ComponentExportIndex,
    params: Vec<(String, Type)>,
    result: Option<Type>,
    schema: Value,
}

/// More than a model can be told of; those beyond are refused by the rules for tools.
const FUNCTIONS_MAX: usize = 1_000;

impl Functions {
    /// Finds the functions that a component exports, other than those of WASI and of the contract.
    pub(crate) fn find(component: &Component, engine: &Engine) -> Self {
        let mut found = Vec::new();
        let ty = component.component_type();
        for (name, export) in ty.exports(engine).filter(|(name, _)| !is_ours(name)) {
            let Some(index) = component.get_export_index(None, name) else { continue };
            match export.ty {
                ComponentItem::ComponentFunc(func) => {
                    found.push((None, name.to_owned(), index, func));
                }
                ComponentItem::ComponentInstance(instance) => {
                    for (function, export) in instance.exports(engine) {
                        let inner = component.get_export_index(Some(&index), function);
                        if let (Some(inner), ComponentItem::ComponentFunc(func)) =
                            (inner, export.ty)
                        {
                            found.push((Some(name.to_owned()), function.to_owned(), inner, func));
                        }
                    }
                }
                _ => {}
            }
        }
        // The same order for the same component: first what is in no interface.
        found.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        found.truncate(FUNCTIONS_MAX);
        let mut count = BTreeMap::<String, usize>::new();
        for (_, name, ..) in &found {
            *count.entry(name.clone()).or_default() += 1;
        }
        let (mut offered, mut refused) = (Vec::new(), Vec::new());
        for (interface, name, index, func) in found {
            let alone = count.get(&name) == Some(&1);
            let tool = match &interface {
                // Two interfaces may each have a `read`.
                Some(interface) if !alone => format!("{}-{name}", short(interface)),
                _ => name.clone(),
            };
            let path =
                interface.map_or_else(|| name.clone(), |interface| format!("{interface}#{name}"));
            match Function::new(tool.clone(), path, index, &func) {
                Ok(function) => offered.push(function),
                Err(reason) => refused.push(RefusedTool { name: visible(&tool, 100), reason }),
            }
        }
        Self { offered: offered.into(), refused: refused.into() }
    }

    /// The functions as tools, unchecked like those of any plugin.
    pub(crate) fn tools(&self) -> Vec<Offered> {
        self.offered.iter().map(Function::tool).collect()
    }

    /// Functions that cannot be tools.
    pub(crate) fn refused(&self) -> &[RefusedTool] {
        &self.refused
    }

    /// Runs one function of a fresh instance.
    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        call: &GuestCall,
    ) -> wasmtime::Result<Result<Reply, Failure>> {
        let Some(function) = self.offered.iter().find(|function| function.tool == *call.name)
        else {
            return Ok(Err(Failure::new(
                "failure",
                format!("the component has no function for `{}`", call.name),
            )));
        };
        let params = match function.arguments(&call.arguments) {
            Ok(params) => params,
            Err(problem) => return Ok(Err(Failure::new("invalid-arguments", problem))),
        };
        let Some(func) = instance.get_func(&mut *store, function.index) else {
            return Ok(Err(Failure::new(
                "failure",
                format!("the component lost its function {}", function.path),
            )));
        };
        let mut results = vec![Val::Bool(false); usize::from(function.result.is_some())];
        func.call_async(&mut *store, &params, &mut results).await?;
        Ok(answer(results.into_iter().next()))
    }
}

impl Function {
    fn new(
        tool: String,
        path: String,
        index: ComponentExportIndex,
        func: &ComponentFunc,
    ) -> Result<Self, String> {
        if func.async_() {
            return Err("it is an async function, and calls of this host are plain ones".into());
        }
        let params: Vec<(String, Type)> =
            func.params().map(|(name, ty)| (name.to_owned(), ty)).collect();
        let result = func.results().next();
        let schema = schema::of_params(&params)?;
        if let Some(result) = &result {
            schema::check(result).map_err(|problem| format!("its result {problem}"))?;
        }
        Ok(Self { tool, path, index, params, result, schema })
    }

    fn tool(&self) -> Offered {
        Offered {
            name: self.tool.clone(),
            label: None,
            description: format!(
                "Calls the function `{}` of a WebAssembly component: {}",
                visible(&self.path, 200),
                visible(&self.signature(), 2_000)
            ),
            parameters: self.schema.to_string(),
            execution: Execution::Parallel,
            meta: Vec::new(),
        }
    }

    /// As WIT has it, in short.
    fn signature(&self) -> String {
        let name = self.path.rsplit('#').next().unwrap_or_default();
        let params: Vec<String> =
            self.params.iter().map(|(name, ty)| format!("{name}: {}", schema::name(ty))).collect();
        let result = self.result.as_ref().map(|ty| format!(" -> {}", schema::name(ty)));
        format!("{name}({}){}", params.join(", "), result.unwrap_or_default())
    }

    /// The arguments of a call as the function takes them.
    fn arguments(&self, text: &str) -> Result<Vec<Val>, String> {
        let arguments: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let one = |(name, ty): &(String, Type)| {
            let given = arguments.get(name).unwrap_or(&Value::Null);
            value::from_json(given, ty).map_err(|problem| format!("`{name}`: {problem}"))
        };
        self.params.iter().map(one).collect()
    }
}

/// What a function returned: an `err` is a failure, anything else a result. Text is text; other
/// values are JSON.
fn answer(returned: Option<Val>) -> Result<Reply, Failure> {
    let value = match returned {
        Some(Val::Result(Ok(value))) => value.map(|value| *value),
        Some(Val::Result(Err(problem))) => {
            let details = problem.map_or(Value::Null, |problem| value::to_json(&problem));
            let text = match &details {
                Value::Null => "the function failed without saying why".into(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let mut failure = Failure::new("failure", text);
            failure.details = json!({ "kind": "failure", "error": details });
            return Err(failure);
        }
        other => other,
    };
    Ok(Reply::Tool(match value {
        None => ToolResult::text("done"),
        Some(Val::String(text)) => ToolResult::text(text),
        Some(value) => {
            let value = value::to_json(&value);
            ToolResult {
                details: Some(json!({ "value": value })),
                ..ToolResult::text(value.to_string())
            }
        }
    }))
}

/// The last part of an interface's name: `add` of `docs:adder/add@0.1.0`.
fn short(interface: &str) -> &str {
    let name = interface.split('@').next().unwrap_or(interface);
    name.rsplit(['/', ':']).next().unwrap_or(name)
}
