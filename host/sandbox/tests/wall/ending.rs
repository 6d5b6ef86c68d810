//! How a hostile file ends, as one line.

use crate::guest::hostile::{End, Hostile};
use crate::support::{SANDBOX, grants, limits, source};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::hook::{HookedCall, Ran, Verdict};
use cofferdam_agent::message::{Arguments, AssistantMessage, Content};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Call, ToolResult};
use cofferdam_agent::toolset::{Rules, Toolset};
use cofferdam_sandbox::{Code, Plugin, PluginSource};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// How a file ends, as `load: …`, `tool: …`, `answer: …`, or what ended the call and the message.
pub async fn end(row: &Hostile) -> String {
    let source = PluginSource { name: "hostile".into(), ..source(Code::Bytes(row.published())) };
    let loaded = Plugin::load(&SANDBOX, source, limits(row.limits), grants(row.grants)).await;
    let plugin = match loaded {
        Ok(plugin) => plugin,
        Err(error) => return format!("load: {error}"),
    };
    if let End::Before(..) = row.end {
        return before(&plugin).await;
    }
    if let End::After(..) = row.end {
        return after(&plugin).await;
    }
    let tools = Toolset::new(plugin.tools(None, None).unwrap(), Rules::Portable);
    let Some(tool) = tools.get(row.tool) else {
        let reasons = plugin.refused_tools().iter().map(|refused| refused.reason.clone());
        let reasons = reasons.chain(tools.refused().iter().map(|refused| refused.reason.clone()));
        return format!("tool: {}", reasons.collect::<Vec<_>>().join("; "));
    };
    let arguments: Arguments = serde_json::from_str(row.arguments).map(Arc::new).unwrap();
    if let Some(Err(problem)) = tools.validate(row.tool, &arguments) {
        return format!("invalid-arguments: {problem}");
    }
    let call = Call { id: "call".into(), name: row.tool.into(), arguments };
    let (progress, updates) = Progress::channel();
    let mut running = tool.call(call, progress, AbortSignal::new());
    let outcome = loop {
        tokio::select! {
            _ = updates.next() => {}
            outcome = &mut running => break outcome,
        }
    };
    match outcome.answer {
        Ok(result) => format!("answer: {}", shown(&result.content)),
        Err(failure) => format!("{}: {}", failure.ended_by, failure.message),
    }
}

fn shown(content: &[Content]) -> String {
    let shown = |content: &Content| match content {
        Content::Text(text) => text.clone(),
        Content::Image(image) => image.media_type.clone(),
    };
    content.iter().map(shown).collect::<Vec<_>>().join("\n")
}

/// A call to ask hooks about.
struct Asked {
    call: Call,
    assistant: Arc<AssistantMessage>,
}

impl Asked {
    fn new() -> Self {
        let call = Call { id: "call".into(), name: "run".into(), arguments: Arc::default() };
        Self { call, assistant: Arc::new(AssistantMessage::pending()) }
    }

    fn hooked(&self) -> HookedCall<'_> {
        HookedCall { call: &self.call, plugin: "other", assistant: &self.assistant }
    }
}

async fn before(plugin: &Plugin) -> String {
    let (asked, abort) = (Asked::new(), AbortSignal::new());
    let hook = plugin.before_hook().unwrap();
    match hook.before(asked.hooked(), &abort).await.answer {
        Ok(Verdict::Proceed) => "before proceed: ".into(),
        Ok(Verdict::Rewrite(arguments)) => {
            format!("before rewrite: {}", Value::Object((*arguments).clone()))
        }
        Ok(Verdict::Block(refusal)) => format!("before block: {}", refusal.reason),
        Ok(Verdict::Ask(question)) => format!("before ask: {}", question.title),
        Err(failure) => format!("before failure: {failure}"),
    }
}

async fn after(plugin: &Plugin) -> String {
    let (asked, abort) = (Asked::new(), AbortSignal::new());
    let result = ToolResult::text("an answer");
    let duration = Duration::from_millis(1);
    let ran = Ran { result: &result, is_error: false, ended_by: None, duration };
    let hook = plugin.after_hook().unwrap();
    match hook.after(asked.hooked(), ran, &abort).await.answer {
        Ok(amendment) => format!("after amend: {}", shown(&amendment.content.unwrap_or_default())),
        Err(failure) => format!("after failure: {failure}"),
    }
}
