//! Contract 0.1: its bindings, and conversions between them and the values of the loop.
//!
//! Nothing is decided here. What the guest asks for goes to a service; what it answers becomes a
//! value of the loop or a sentence on why it cannot.

use crate::call::{Entry, Reply};
use crate::declare::Offered;
use crate::error::Failure;
use crate::inspect::Roles;
use crate::services::{self, kv::KeyValueError, log::Level};
use crate::state::State;
use crate::text::visible;
use bindings::cofferdam::plugin::{cancellation, config, key_value, log, progress, types};
use bindings::exports::cofferdam::plugin::{
    after_tool_call, argument_preparation, before_tool_call, tools,
};
use cofferdam_agent::hook::{Amendment, Question, Refusal, Verdict};
use cofferdam_agent::message::{Arguments, Content, Image};
use cofferdam_agent::tool::{Execution, ToolResult};
use serde_json::{Value, json};
use std::sync::Arc;
use wasmtime::Store;
use wasmtime::component::{
    ComponentExportIndex, HasSelf, Instance, InstancePre, Linker, TypedFunc,
};

#[allow(missing_docs, unreachable_pub, unused_qualifications, rust_2018_idioms, clippy::all)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package cofferdam:host;
            world every-role {
                include cofferdam:plugin/tool-plugin@0.1.0;
                include cofferdam:plugin/preparation-plugin@0.1.0;
                include cofferdam:plugin/guard-plugin@0.1.0;
                include cofferdam:plugin/audit-plugin@0.1.0;
            }
        ",
        imports: {
            "cofferdam:plugin/progress.report": async | trappable,
            "cofferdam:plugin/key-value.read": async | trappable,
            "cofferdam:plugin/key-value.write": async | trappable,
            "cofferdam:plugin/key-value.remove": async | trappable,
            "cofferdam:plugin/key-value.keys": async | trappable,
            default: trappable,
        },
        exports: { default: async },
    });
}

/// Offers the contract's own imports.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    bindings::EveryRole::add_to_linker::<State, HasSelf<State>>(linker, |state| state)
}

/// The interface of tools, as components export it.
const TOOLS: &str = "cofferdam:plugin/tools@0.1.0";

/// What `call-tool` answers.
type Called = Result<types::ToolResult, types::Failure>;

/// Where the exports of one component are.
#[derive(Clone)]
pub(crate) struct Exports {
    tools: Option<tools::GuestIndices>,
    /// By itself, because to load an interface checks the types of all its functions, each time.
    call_tool: Option<ComponentExportIndex>,
    preparation: Option<argument_preparation::GuestIndices>,
    before: Option<before_tool_call::GuestIndices>,
    after: Option<after_tool_call::GuestIndices>,
}

impl Exports {
    /// Looks up what the component says it exports, and whether it has the right shape.
    pub(crate) fn find(pre: &InstancePre<State>, roles: Roles) -> wasmtime::Result<Self> {
        Ok(Self {
            tools: roles.tools.then(|| tools::GuestIndices::new(pre)).transpose()?,
            call_tool: pre
                .component()
                .get_export_index(None, TOOLS)
                .and_then(|tools| pre.component().get_export_index(Some(&tools), "call-tool")),
            preparation: roles
                .argument_preparation
                .then(|| argument_preparation::GuestIndices::new(pre))
                .transpose()?,
            before: roles
                .before_tool_call
                .then(|| before_tool_call::GuestIndices::new(pre))
                .transpose()?,
            after: roles
                .after_tool_call
                .then(|| after_tool_call::GuestIndices::new(pre))
                .transpose()?,
        })
    }

    /// Whether every function has the types of the contract, before the first of them is needed.
    fn check_shapes(&self, store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<()> {
        if let Some(preparation) = &self.preparation {
            preparation.load(&mut *store, instance)?;
        }
        if let Some(before) = &self.before {
            before.load(&mut *store, instance)?;
        }
        if let Some(after) = &self.after {
            after.load(&mut *store, instance)?;
        }
        Ok(())
    }

    /// Runs one function of a fresh instance. `Err` outside is how the guest ended; `Err` inside is
    /// an answer that breaks the contract.
    pub(crate) async fn enter(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        entry: Entry,
    ) -> wasmtime::Result<Result<Reply, Failure>> {
        match entry {
            Entry::ListTools => {
                self.check_shapes(store, instance)?;
                let Some(tools) = &self.tools else { return Ok(Ok(Reply::Tools(Vec::new()))) };
                let guest = tools.load(&mut *store, instance)?;
                let offered = guest.call_list_tools(&mut *store).await?;
                Ok(Ok(Reply::Tools(offered.into_iter().map(offered_tool).collect())))
            }
            Entry::CallTool { call } => {
                let function: TypedFunc<(&types::ToolCall,), (Called,)> =
                    instance.get_typed_func(&mut *store, exported(&self.call_tool)?)?;
                let (answer,) = function.call_async(&mut *store, (&tool_call(call),)).await?;
                Ok(match answer {
                    Ok(result) => tool_result(result).map(Reply::Tool),
                    Err(failed) => Err(failure(failed)),
                })
            }
            Entry::Prepare { tool, arguments } => {
                let guest = exported(&self.preparation)?.load(&mut *store, instance)?;
                let answer = guest.call_prepare_arguments(&mut *store, &tool, &arguments).await?;
                Ok(answer
                    .map_err(refusal)
                    .and_then(|text| parse("prepared arguments", &text))
                    .map(Reply::Prepared))
            }
            Entry::Before { call, context } => {
                let guest = exported(&self.before)?.load(&mut *store, instance)?;
                let answer = guest
                    .call_before(&mut *store, &tool_call(call), &hook_context(context))
                    .await?;
                Ok(answer.map_err(refusal).and_then(verdict).map(Reply::Verdict))
            }
            Entry::After { call, context, ran } => {
                let guest = exported(&self.after)?.load(&mut *store, instance)?;
                let outcome = after_tool_call::Outcome {
                    value: value_of(&ran.result, ran.is_error),
                    ended_by: ran.ended_by,
                    wall_ms: ran.wall_ms,
                };
                let answer = guest
                    .call_after(&mut *store, &tool_call(call), &outcome, &hook_context(context))
                    .await?;
                Ok(answer.map_err(refusal).and_then(amendment).map(Reply::Amendment))
            }
        }
    }
}

/// What the host asks for only if the component has it.
fn exported<T>(indices: &Option<T>) -> wasmtime::Result<&T> {
    indices
        .as_ref()
        .ok_or_else(|| wasmtime::Error::msg("the plugin does not export this interface"))
}

/// Bytes of the name of an image's format.
const MEDIA_TYPE_BYTES_MAX: usize = 100;
/// Bytes of a failure's own code, which is an identifier.
const CODE_BYTES_MAX: usize = 200;

// Values that go in.

fn tool_call(call: crate::call::GuestCall) -> types::ToolCall {
    types::ToolCall {
        id: call.id.as_ref().into(),
        name: call.name.as_ref().into(),
        arguments: call.arguments,
        meta: Vec::new(),
    }
}

fn hook_context(context: crate::call::GuestContext) -> types::HookContext {
    types::HookContext {
        plugin: context.plugin,
        assistant_message: context.assistant,
        meta: Vec::new(),
    }
}

fn value_of(result: &ToolResult, is_error: bool) -> types::ToolResult {
    types::ToolResult {
        content: result.content.iter().map(content_in).collect(),
        details: result.details.as_ref().map(Value::to_string),
        is_error,
        terminate: result.terminate,
        meta: Vec::new(),
    }
}

fn content_in(content: &Content) -> types::Content {
    match content {
        Content::Text(text) => types::Content::Text(text.clone()),
        Content::Image(image) => types::Content::Image(types::Blob {
            media_type: image.media_type.clone(),
            data: image.data.to_vec(),
        }),
    }
}

// Values that come out.

fn offered_tool(tool: tools::Tool) -> Offered {
    Offered {
        name: tool.name,
        label: tool.label,
        description: tool.description,
        parameters: tool.parameters,
        execution: match tool.execution {
            tools::Execution::Parallel => Execution::Parallel,
            tools::Execution::Sequential => Execution::Sequential,
            tools::Execution::Exclusive(lanes) => Execution::Exclusive(lanes),
        },
        meta: tool.meta,
    }
}

fn tool_result(result: types::ToolResult) -> Result<ToolResult, Failure> {
    Ok(ToolResult {
        content: contents(result.content),
        details: result.details.map(|text| parse("details", &text)).transpose()?,
        is_error: Some(result.is_error),
        terminate: result.terminate,
    })
}

fn contents(contents: Vec<types::Content>) -> Vec<Content> {
    contents
        .into_iter()
        .map(|content| match content {
            types::Content::Text(text) => Content::Text(text),
            types::Content::Image(blob) => {
                let media_type = visible(&blob.media_type, MEDIA_TYPE_BYTES_MAX);
                Content::Image(Image { media_type, data: Arc::from(blob.data) })
            }
            // A kind that this host does not know is shown as text, as the contract says.
            types::Content::Other(custom) => Content::Text(custom.data),
        })
        .collect()
}

fn failure(failed: types::Failure) -> Failure {
    let kind = match failed.kind {
        types::FailureKind::Rejected => "rejected",
        types::FailureKind::Denied => "denied",
        types::FailureKind::Unavailable => "unavailable",
        types::FailureKind::Other => "other",
    };
    let message = if failed.message.is_empty() {
        "the plugin failed without saying why".into()
    } else {
        failed.message
    };
    let mut failure = Failure::new("failure", message);
    let code = failed.code.map(|code| visible(&code, CODE_BYTES_MAX));
    failure.details = json!({ "kind": "failure", "failure_kind": kind, "code": code });
    failure
}

fn verdict(verdict: before_tool_call::Verdict) -> Result<Verdict, Failure> {
    use before_tool_call::Verdict as Said;
    Ok(match verdict {
        Said::Proceed => Verdict::Proceed,
        Said::Rewrite(text) => Verdict::Rewrite(object("rewritten arguments", &text)?),
        Said::Block(refusal) => {
            Verdict::Block(Refusal { reason: refusal.reason, terminate: refusal.terminate })
        }
        Said::Ask(question) => {
            Verdict::Ask(Question { title: question.title, message: question.message })
        }
    })
}

fn amendment(amendment: after_tool_call::Amendment) -> Result<Amendment, Failure> {
    Ok(Amendment {
        content: amendment.content.map(contents),
        details: amendment.details.map(|text| parse("details", &text)).transpose()?,
        is_error: amendment.is_error,
        terminate: amendment.terminate,
    })
}

/// The text of an `err` that is a string.
fn refusal(text: String) -> Failure {
    Failure::new("failure", text)
}

/// JSON from a guest.
fn parse(what: &str, text: &str) -> Result<Value, Failure> {
    crate::json::parse(text).map_err(|problem| {
        Failure::new("failure", format!("the plugin broke its contract: its {what} {problem}"))
    })
}

fn object(what: &str, text: &str) -> Result<Arguments, Failure> {
    match parse(what, text)? {
        Value::Object(map) => Ok(Arc::new(map)),
        _ => Err(Failure::new(
            "failure",
            format!("the plugin broke its contract: its {what} are no JSON object"),
        )),
    }
}

// What the guest asks the host for.

impl types::Host for State {}

impl progress::Host for State {
    async fn report(
        &mut self,
        content: Vec<types::Content>,
        details: Option<String>,
    ) -> wasmtime::Result<()> {
        let bytes =
            content.iter().map(size).sum::<usize>() + details.as_ref().map_or(0, String::len);
        // Details that are no JSON are not worth a call.
        let details = details.and_then(|text| crate::json::parse(&text).ok());
        services::progress::report(self, || contents(content), bytes, details).await
    }
}

fn size(content: &types::Content) -> usize {
    match content {
        types::Content::Text(text) => text.len(),
        types::Content::Image(blob) => blob.media_type.len() + blob.data.len(),
        types::Content::Other(custom) => custom.kind.len() + custom.data.len(),
    }
}

impl cancellation::Host for State {
    fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(services::cancellation::is_cancelled(self))
    }

    fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(services::cancellation::remaining_ms(self))
    }
}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
            log::Level::Error => Level::Error,
        };
        services::log::write(self, level, &message);
        Ok(())
    }
}

impl config::Host for State {
    fn read(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(services::config::read(self, &key))
    }
}

impl key_value::Host for State {
    async fn read(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, key_value::Error>> {
        Ok(services::kv::read(self, key).await.map_err(Into::into))
    }

    async fn write(
        &mut self,
        key: String,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), key_value::Error>> {
        Ok(services::kv::write(self, key, value).await.map_err(Into::into))
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<Result<(), key_value::Error>> {
        Ok(services::kv::remove(self, key).await.map_err(Into::into))
    }

    async fn keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<String>, key_value::Error>> {
        Ok(services::kv::keys(self, prefix, after, limit).await.map_err(Into::into))
    }
}

impl From<KeyValueError> for key_value::Error {
    fn from(error: KeyValueError) -> Self {
        match error {
            KeyValueError::Denied => Self::Denied,
            KeyValueError::OverQuota => Self::OverQuota,
            KeyValueError::Other(text) => Self::Other(text),
        }
    }
}
