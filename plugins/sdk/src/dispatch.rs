//! What the exports do: values in, the author's function, values out. Called by `export!` only.

use serde_json::Value;

use crate::contract::imports::types as wit;
use crate::contract::{after, before, tools};
use crate::failure::{Failure, Result};
use crate::hook::{Amendment, HookedCall, Outcome, Verdict};
use crate::tool::Tool;
use crate::{call, convert};

/// Describes the tools.
pub fn list_tools(tools: impl IntoIterator<Item = Tool>) -> Vec<tools::interface::Tool> {
    tools.into_iter().map(Into::into).collect()
}

/// Finds the tool and runs the call.
pub fn call_tool(
    tools: impl IntoIterator<Item = Tool>,
    call: wit::ToolCall,
) -> Result<wit::ToolResult, wit::Failure> {
    call::begin(call.id, call.name.clone());
    let run = || {
        let tool = tools.into_iter().find(|tool| tool.name == call.name);
        let tool = tool
            .ok_or_else(|| Failure::rejected(format!("no tool `{}` in this plugin", call.name)))?;
        tool.run(convert::json("arguments", &call.arguments)?)
    };
    run().map(Into::into).map_err(Into::into)
}

/// Repairs arguments.
pub fn prepare(
    prepare: fn(&str, Value) -> Result<Value>,
    tool: String,
    arguments: String,
) -> Result<String, String> {
    call::begin(String::new(), tool.clone());
    let run = || prepare(&tool, convert::json("arguments", &arguments)?);
    run().map(|arguments| arguments.to_string()).map_err(|failure| failure.message)
}

/// Asks the hook before a call.
pub fn before(
    hook: fn(&HookedCall) -> Result<Verdict>,
    call: wit::ToolCall,
    context: wit::HookContext,
) -> Result<before::interface::Verdict, String> {
    call::begin(call.id.clone(), call.name.clone());
    let run = || hook(&convert::hooked_call(call, context)?);
    run().map(Into::into).map_err(|failure| failure.message)
}

/// Asks the hook after a call.
pub fn after(
    hook: fn(&HookedCall, &Outcome) -> Result<Amendment>,
    call: wit::ToolCall,
    outcome: after::interface::Outcome,
    context: wit::HookContext,
) -> Result<after::interface::Amendment, String> {
    call::begin(call.id.clone(), call.name.clone());
    let run = || hook(&convert::hooked_call(call, context)?, &convert::outcome(outcome)?);
    run().map(Into::into).map_err(|failure| failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;
    use crate::tool::{tool, tool_with_schema};
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Deserialize, JsonSchema)]
    struct Divide {
        by: u32,
    }

    fn divide(args: Divide) -> Result {
        let share = 12_u32.checked_div(args.by).ok_or(Failure::rejected("by zero").code("zero"))?;
        Ok(Reply::text(format!("{}: {share}", call::id())).details(json!({ "share": share })))
    }

    fn tools() -> [Tool; 2] {
        let echo = |args: Value| Ok(args["text"].as_str().unwrap_or("nothing").to_owned());
        [
            tool("divide", "Divides.", divide).label("Divide").lane("a").lane("b").read_only(),
            tool_with_schema("echo", "Says it back.", json!({ "type": "object" }), echo)
                .sequential(),
        ]
    }

    fn asked(name: &str, arguments: &str) -> wit::ToolCall {
        wit::ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            meta: Vec::new(),
        }
    }

    fn context() -> wit::HookContext {
        wit::HookContext {
            plugin: "files".to_owned(),
            assistant_message: "{}".to_owned(),
            meta: Vec::new(),
        }
    }

    #[test]
    fn tools_are_described() {
        let listed = list_tools(tools());
        assert!(
            matches!(&listed[0].execution, tools::interface::Execution::Exclusive(lanes) if lanes == &["a", "b"])
        );
        assert!(matches!(listed[1].execution, tools::interface::Execution::Sequential));
        assert_eq!(listed[0].meta, [("read-only".to_owned(), "true".to_owned())]);
        let parameters = json!({
            "type": "object",
            "properties": { "by": { "type": "integer", "minimum": 0 } },
            "required": ["by"]
        });
        assert_eq!(listed[0].parameters.parse::<Value>().unwrap(), parameters);
    }

    #[test]
    fn a_call_answers_or_fails() {
        let result = call_tool(tools(), asked("divide", r#"{"by": 3}"#)).unwrap();
        assert!(matches!(&result.content[..], [wit::Content::Text(text)] if text == "c1: 4"));
        assert_eq!(result.details.unwrap(), r#"{"share":4}"#);

        let check = |name, arguments, kind, message| {
            let failure = call_tool(tools(), asked(name, arguments)).unwrap_err();
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
        };
        use wit::FailureKind::Rejected;
        check("divide", r#"{"by": 0}"#, Rejected, "by zero");
        check("divide", "{}", Rejected, "arguments do not fit: missing field `by`");
        check("multiply", "{}", Rejected, "no tool `multiply` in this plugin");
    }

    #[test]
    fn hooks_are_asked() {
        fn curfew(call: &HookedCall) -> Result<Verdict> {
            assert_eq!((call.plugin.as_str(), &call.arguments), ("files", &json!({ "a": 1 })));
            Ok(Verdict::block("too late"))
        }
        let verdict = before(curfew, asked("shell", r#"{"a": 1}"#), context()).unwrap();
        assert!(
            matches!(verdict, before::interface::Verdict::Block(refusal) if refusal.reason == "too late")
        );

        fn sealed(_: &HookedCall, outcome: &Outcome) -> Result<Amendment> {
            assert_eq!(outcome.ended_by.as_deref(), Some("trap"));
            Ok(Amendment::keep().is_error(true).details(json!([])))
        }
        let value = Reply::text("x").into();
        let outcome =
            after::interface::Outcome { value, ended_by: Some("trap".to_owned()), wall_ms: 1 };
        let amendment = after(sealed, asked("shell", "{}"), outcome, context()).unwrap();
        assert!(amendment.content.is_none());
        assert_eq!((amendment.is_error, amendment.details.as_deref()), (Some(true), Some("[]")));
    }

    #[test]
    fn a_failed_hook_is_its_message() {
        let fail = |_: &HookedCall| Err(Failure::denied("no rules"));
        assert_eq!(before(fail, asked("x", "{}"), context()).unwrap_err(), "no rules");
        let unreadable = prepare(|_, arguments| Ok(arguments), "x".to_owned(), "{".to_owned());
        assert!(unreadable.unwrap_err().starts_with("arguments from the host"));
    }
}
