//! `cofferdam plugin call`: one call of one tool in the sandbox, with its receipt.

use crate::args::CallArgs;
use crate::exit::{DONE, Exit, FAILED, Refused as _};
use crate::render::{Output, Paint, partial_line, receipt_table};
use anyhow::Context as _;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{Arguments, Content};
use cofferdam_agent::tool::{Outcome, ToolFailure, ToolResult};
use cofferdam_app::{Config, direct, json};
use cofferdam_sandbox::text::harmless;
use cofferdam_sandbox::{Code, Grants, Limits, Plugin, PluginSource, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

pub(crate) async fn run(args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = arguments(&args.arguments).refused()?;
    let terms = terms(&args).refused()?;
    let plugin = load(&args, terms).await.refused()?;
    let called = call(&plugin, &args.tool, arguments).await?;
    if args.json || !std::io::stdout().is_terminal() {
        Output::Out.json(&called.to_json());
    } else {
        called.print(plugin.limits());
    }
    Ok(if called.is_error { FAILED } else { DONE })
}

fn arguments(given: &str) -> anyhow::Result<Arguments> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).context("read the arguments")?;
    }
    let fields = serde_json::from_str(&text).with_context(|| {
        format!("the arguments are no JSON object such as {{\"path\": \"a.txt\"}}: {text}")
    })?;
    Ok(Arc::new(fields))
}

/// Under which name, pin, limits, grants and settings the plugin runs.
#[derive(Default)]
struct Terms {
    name: Option<String>,
    sha256: Option<String>,
    limits: Limits,
    grants: Grants,
    sandbox: SandboxConfig,
}

/// The entry of an operator's file, if there is one, and over it the flags.
fn terms(args: &CallArgs) -> anyhow::Result<Terms> {
    // One call, at most with as many memories as a component of another language has.
    let sandbox = SandboxConfig { slots: 4, ..super::sandbox_config() };
    let mut terms = match &args.config {
        None => Terms { sandbox, ..Terms::default() },
        Some(path) => {
            let config = Config::load(path, &args.over.layers())?;
            let entry = config.plugin_at(&args.file).with_context(|| {
                format!(
                    "{} has no [[plugins]] entry with the path of {}",
                    path.display(),
                    args.file.display()
                )
            })?;
            Terms {
                name: Some(entry.name.clone()),
                sha256: entry.sha256.clone(),
                limits: entry.limits.clone(),
                grants: entry.grants.clone(),
                sandbox: config.sandbox.over(sandbox),
            }
        }
    };
    args.limits.iter().try_for_each(|pair| terms.limits.set_pair(pair))?;
    args.grants.iter().try_for_each(|pair| terms.grants.add_pair(pair))?;
    Ok(terms)
}

async fn load(args: &CallArgs, terms: Terms) -> anyhow::Result<Plugin> {
    let file = args.file.display();
    let stem = || args.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let source = PluginSource {
        name: terms.name.or_else(stem).unwrap_or_default(),
        code: Code::Path(args.file.clone()),
        sha256: terms.sha256,
        accept_text: true,
    };
    let sandbox = Sandbox::new(terms.sandbox)?;
    let plugin = Plugin::load(&sandbox, source, terms.limits, terms.grants).await;
    plugin.with_context(|| format!("{file} cannot be loaded"))
}

/// What a call came to.
struct Called {
    result: ToolResult,
    is_error: bool,
    failure: Option<ToolFailure>,
    receipt: Option<Value>,
}

/// The call to its end, with its progress on standard error. An interrupt aborts it; it then ends
/// like any other.
async fn call(plugin: &Plugin, name: &str, arguments: Arguments) -> anyhow::Result<Called> {
    let abort = AbortSignal::new();
    let call = direct::call(plugin, name, arguments, abort.clone(), |partial| {
        Output::Err.line(&format!("· {}", partial_line(partial)));
    });
    let mut call = std::pin::pin!(call);
    let outcome = loop {
        tokio::select! { biased;
            Ok(()) = tokio::signal::ctrl_c() => abort.cancel(),
            outcome = &mut call => break outcome.refused()?,
        }
    };
    Ok(Called::from(outcome))
}

impl From<Outcome> for Called {
    fn from(outcome: Outcome) -> Self {
        let receipt = outcome.receipt.map(|receipt| receipt.to_json());
        match outcome.answer {
            Ok(result) => {
                let is_error = result.is_error == Some(true);
                Self { result, is_error, failure: None, receipt }
            }
            Err(failure) => {
                let result = ToolResult::text(failure.message.clone());
                Self { result, is_error: true, failure: Some(failure), receipt }
            }
        }
    }
}

impl Called {
    fn to_json(&self) -> Value {
        let failure = self.failure.as_ref().map(|failure| {
            json!({"kind": failure.ended_by, "message": failure.message, "details": failure.details})
        });
        json!({
            "result": json::tool_result(&self.result),
            "is_error": self.is_error,
            "failure": failure,
            "receipt": self.receipt,
        })
    }

    fn print(&self, limits: &Limits) {
        if let Some(failure) = &self.failure {
            Output::Out.line(&format!(
                "error ({}): {}",
                failure.ended_by,
                harmless(&failure.message)
            ));
        } else {
            if self.is_error {
                Output::Out.line("error result:");
            }
            for block in &self.result.content {
                Output::Out.line(&match block {
                    Content::Text(text) => harmless(text),
                    Content::Image(image) => {
                        format!("[{}, {} bytes]", image.media_type, image.data.len())
                    }
                });
            }
        }
        if let Some(details) = &self.result.details {
            Output::Out.line(&format!("\ndetails\n  {}", harmless(&details.to_string())));
        }
        if let Some(receipt) = &self.receipt {
            Output::Out.painted(&format!(
                "\nreceipt\n{}",
                receipt_table(receipt, limits, Paint::of_stdout())
            ));
        }
    }
}
