//! `cofferdam run`: an agent on a prompt, to its answer.

use super::session;
use crate::approver;
use crate::args::RunArgs;
use crate::exit::{ABORTED, DONE, Exit, FAILED, Refused as _};
use crate::render::{JsonLines, Lines, Output, answer};
use anyhow::{Context as _, anyhow, bail};
use cofferdam_agent::event::Observer;
use cofferdam_agent::{Agent, AgentError, EndReason, RunEnd};
use cofferdam_app::session::{Recorder, Sessions};
use cofferdam_app::{Assembled, Config, Options, Pinning, assemble};
use futures::FutureExt as _;
use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let resumes = args.continue_latest || args.session.is_some();
    let prompt = match &args.prompt {
        None if resumes => None,
        given => Some(prompt(given.as_deref()).refused()?),
    };
    let config = Config::read(&args.config).refused()?;
    let pinning = if args.allow_unpinned { Pinning::Optional } else { Pinning::Required };
    let options = Options {
        pinning,
        approver: approver::at_this_terminal(),
        sandbox: super::sandbox_config(),
        session: session(&args, &config)?,
        record: args.record.clone(),
    };
    let Assembled { agent, notices, session, .. } = assemble(&config, options).await.refused()?;
    for notice in notices {
        Output::Err.line(&format!("note: {notice}"));
    }
    if let Some(session) = session {
        Output::Err.line(&format!("session {}", session.id()));
    }
    let subscription = agent.subscribe(view(&args));
    let end = with_interrupt(&agent, prompt).await?;
    drop(subscription);
    if args.print && !args.json {
        Output::Out.line(&end.messages.last().map(|message| answer(message)).unwrap_or_default());
    }
    Ok(exit(&agent, &end))
}

/// The session to write: a new one, an old one, or none.
fn session(args: &RunArgs, config: &Config) -> anyhow::Result<Option<Recorder>> {
    let resumes = args.continue_latest || args.session.is_some();
    if args.no_session || !(config.session.record || resumes) {
        return Ok(None);
    }
    let sessions = match session::folder_of(Some(config)) {
        Ok(sessions) => sessions,
        Err(problem) if resumes => return Err(problem).refused(),
        Err(problem) => {
            Output::Err.line(&format!("note: no session is kept: {problem}"));
            return Ok(None);
        }
    };
    let session = match &args.session {
        Some(wanted) => sessions.open(wanted),
        None if args.continue_latest => sessions.open_latest_of(&args.config),
        None => return fresh(&sessions, config),
    };
    session.map(Some).refused()
}

/// Nobody asked for the folder that is used by default: where it cannot be made, the run goes on
/// without a session.
fn fresh(sessions: &Sessions, config: &Config) -> anyhow::Result<Option<Recorder>> {
    match sessions.make_folder() {
        Ok(()) => Ok(Some(sessions.fresh())),
        Err(problem) if config.session.dir.is_some() => Err(problem).refused(),
        Err(problem) => {
            Output::Err.line(&format!("note: no session is kept: {problem}"));
            Ok(None)
        }
    }
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

/// The run; an interrupt aborts it, and a second one ends the process. Without a prompt it goes on
/// from where the transcript stops.
async fn with_interrupt(agent: &Agent, prompt: Option<String>) -> anyhow::Result<RunEnd> {
    let mut aborted = false;
    let mut run = match prompt {
        Some(prompt) => agent.prompt(prompt).boxed(),
        None => agent.continue_run().boxed(),
    };
    loop {
        tokio::select! {
            end = &mut run => return match end {
                Err(AgentError::NothingToContinue | AgentError::AssistantTail) => Err(anyhow!(
                    "the session has nothing to go on with: say what to do next, as in: cofferdam \
                     run --continue \"And then?\""
                )).refused(),
                end => Ok(end?),
            },
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
