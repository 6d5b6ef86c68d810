//! `cofferdam run`: an agent on a prompt, to its answer.

use crate::args::RunArgs;
use crate::exit::{ABORTED, DONE, Exit, FAILED, Refused as _};
use crate::render::{JsonLines, Lines, Output, answer};
use anyhow::{Context as _, bail};
use cofferdam_agent::event::Observer;
use cofferdam_agent::{Agent, EndReason, RunEnd};
use cofferdam_app::{Assembled, Config, Options, Pinning, assemble};
use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let prompt = prompt(args.prompt.as_deref()).refused()?;
    let config = Config::read(&args.config).refused()?;
    let pinning = if args.allow_unpinned { Pinning::Optional } else { Pinning::Required };
    let options = Options { pinning, sandbox: super::sandbox_config(), ..Options::default() };
    let Assembled { agent, notices, .. } = assemble(&config, options).await.refused()?;
    for notice in notices {
        Output::Err.line(&format!("note: {notice}"));
    }
    let subscription = agent.subscribe(view(&args));
    let end = with_interrupt(&agent, prompt).await?;
    drop(subscription);
    if args.print && !args.json {
        Output::Out.line(&end.messages.last().map(|message| answer(message)).unwrap_or_default());
    }
    Ok(exit(&agent, &end))
}

fn view(args: &RunArgs) -> Arc<dyn Observer> {
    match (args.json, args.print) {
        (true, _) => Arc::new(JsonLines(Output::Out)),
        (false, true) => Arc::new(Lines::new(Output::Err, false)),
        (false, false) => Arc::new(Lines::new(Output::Out, true)),
    }
}

fn prompt(given: Option<&str>) -> anyhow::Result<String> {
    let text = match given {
        Some(text) if text != "-" => text.to_owned(),
        None if std::io::stdin().is_terminal() => {
            bail!("say what to do, as in: cofferdam run \"What does this project do?\"")
        }
        _ => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("read the prompt")?;
            text
        }
    };
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    Ok(text)
}

/// The run; an interrupt aborts it, and a second one ends the process.
async fn with_interrupt(agent: &Agent, prompt: String) -> anyhow::Result<RunEnd> {
    let mut aborted = false;
    let mut run = std::pin::pin!(agent.prompt(prompt));
    loop {
        tokio::select! {
            end = &mut run => return Ok(end?),
            Ok(()) = tokio::signal::ctrl_c() => {
                if aborted {
                    bail!("interrupted twice: left at once");
                }
                Output::Err.line("aborting; interrupt again to leave at once");
                agent.abort();
                aborted = true;
            }
        }
    }
}

fn exit(agent: &Agent, end: &RunEnd) -> Exit {
    match end.reason {
        EndReason::Finished | EndReason::Terminated | EndReason::Stopped => DONE,
        EndReason::Aborted => ABORTED,
        EndReason::ModelFailed | EndReason::TurnLimit(_) | EndReason::TruncationLimit(_) => {
            let problem = agent.last_error().unwrap_or_else(|| "the model failed".into());
            Output::Err.line(&format!("error: {problem}"));
            FAILED
        }
    }
}
