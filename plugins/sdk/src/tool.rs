//! A tool: what the model is told about it, how it may be scheduled, and the function that runs it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::reply::Reply;
use crate::schema;

/// A tool whose arguments are `A`; their schema is derived.
///
/// `name` begins with a letter or underscore and goes on with letters, digits, `_` and `-`.
/// `description` is for the model: what the tool does, when to use it, what it returns.
///
/// ```
/// use cofferdam_plugin::{Deserialize, JsonSchema, Result, tool};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Dice {
///     /// How many sides; six if absent.
///     sides: Option<u32>,
/// }
///
/// fn roll(dice: Dice) -> Result<String> {
///     Ok(format!("4 of {}, chosen by fair dice roll", dice.sides.unwrap_or(6)))
/// }
///
/// let dice = tool("roll", "Rolls a die and returns the number.", roll).label("Dice").read_only();
/// ```
pub fn tool<A, R, F>(name: impl Into<String>, description: impl Into<String>, run: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + 'static,
    R: Into<Reply>,
    F: Fn(A) -> Result<R> + 'static,
{
    Tool::new(name.into(), description.into(), Box::new(schema::of::<A>), run)
}

/// A tool with a hand-written schema: a JSON Schema of an object, with local references only.
///
/// `A` is anything that serde reads, also [`serde_json::Value`].
///
/// ```
/// use cofferdam_plugin::{Result, Value, json, tool_with_schema};
///
/// fn echo(args: Value) -> Result<String> {
///     Ok(args["text"].as_str().unwrap_or_default().to_owned())
/// }
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "text": { "type": "string" } },
///     "required": ["text"]
/// });
/// let echo = tool_with_schema("echo", "Says it back.", schema, echo);
/// ```
pub fn tool_with_schema<A, R, F>(
    name: impl Into<String>,
    description: impl Into<String>,
    schema: Value,
    run: F,
) -> Tool
where
    A: DeserializeOwned + 'static,
    R: Into<Reply>,
    F: Fn(A) -> Result<R> + 'static,
{
    Tool::new(name.into(), description.into(), Box::new(move || schema.clone()), run)
}

/// Which other calls of the same batch a call may run beside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Execution {
    /// Beside any other call.
    #[default]
    Parallel,
    /// Beside none: a batch that names this tool runs one call at a time.
    Sequential,
    /// Beside any call that shares none of these lanes.
    Exclusive(Vec<String>),
}

/// A tool of a plugin; made by [`tool`] or [`tool_with_schema`].
pub struct Tool {
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    pub(crate) description: String,
    pub(crate) execution: Execution,
    pub(crate) meta: Vec<(String, String)>,
    // Made when asked for: a call needs no schema, and every call is a fresh instance.
    pub(crate) parameters: Box<dyn Fn() -> Value>,
    run: Box<dyn Fn(Value) -> Result>,
}

impl Tool {
    fn new<A, R, F>(
        name: String,
        description: String,
        parameters: Box<dyn Fn() -> Value>,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + 'static,
        R: Into<Reply>,
        F: Fn(A) -> Result<R> + 'static,
    {
        let run = move |arguments| {
            let arguments = serde_json::from_value(arguments)
                .map_err(|error| Failure::rejected(format!("arguments do not fit: {error}")))?;
            run(arguments).map(Into::into)
        };
        Self {
            name,
            label: None,
            description,
            execution: Execution::default(),
            meta: Vec::new(),
            parameters,
            run: Box::new(run),
        }
    }

    /// A short name for people; the tool's name if not given.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// A batch that names this tool runs one call at a time. Replaces lanes.
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.execution = Execution::Sequential;
        self
    }

    /// Calls that share this lane run one after the other, in the order in which the model asked.
    /// Lanes belong to the agent: two plugins that both name `files` exclude each other. May be
    /// said several times, up to 8 lanes. Replaces [`sequential`](Self::sequential).
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        match &mut self.execution {
            Execution::Exclusive(lanes) => lanes.push(lane.into()),
            execution => *execution = Execution::Exclusive(vec![lane.into()]),
        }
        self
    }

    /// Tells people that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.meta("read-only", "true")
    }

    /// Tells people that the tool may destroy something.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.meta("destructive", "true")
    }

    /// Tells people that a second call with the same arguments changes nothing more.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.meta("idempotent", "true")
    }

    /// Tells interfaces the shape of the details.
    #[must_use]
    pub fn output<D: JsonSchema>(self) -> Self {
        self.meta("output-schema", schema::of::<D>().to_string())
    }

    /// Says something else about the tool; hosts ignore names that they do not know.
    #[must_use]
    pub fn meta(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.meta.push((name.into(), value.into()));
        self
    }

    /// The name as declared.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema of the arguments.
    pub fn parameters(&self) -> Value {
        (self.parameters)()
    }

    /// Runs one call, as the host would: the arguments are a JSON object.
    pub fn run(&self, arguments: Value) -> Result {
        (self.run)(arguments)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("execution", &self.execution)
            .finish_non_exhaustive()
    }
}
