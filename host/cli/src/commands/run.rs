//! `cofferdam run`: an agent on a prompt, to its answer, or at a terminal for as long as somebody sits
//! there.

use super::open::{Opened, open};
use crate::approver;
use crate::args::RunArgs;
use crate::exit::{self, ABORTED, DONE, Exit, Refused as _};
use crate::interrupts::Interrupts;
use crate::observe::Observing;
use crate::render::{JsonLines, Lines, Output, answer};
use crate::terminal::{self, First, History};
use anyhow::{Context as _, anyhow, bail};
use cofferdam_agent::event::Observer;
use cofferdam_agent::{Agent, AgentError, RunEnd};
use cofferdam_app::reload::Reload;
use cofferdam_app::{Options, approve, places};
use futures::FutureExt as _;
use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let reads_prompt = args.prompt.as_deref() == Some("-");
    if terminal::is_possible() && !args.print && !args.json && !reads_prompt {
        return at_the_terminal(args).await;
    }
    let prompt = match &args.prompt {
        None if args.record.resumes() => None,
        given => Some(prompt(given.as_deref()).refused()?),
    };
    let options = Options {
        approver: approver::at_this_terminal(),
        record: args.answers.clone(),
        ..Options::default()
    };
    let observing = Observing::begin(&args.observe, None).await.refused()?;
    let Opened { agent, .. } = open(&args.file, Some(&args.record), &observing, options).await?;
    let subscription = agent.subscribe(view(&args));
    let Some(end) = with_interrupt(&agent, prompt).await? else { return Ok(ABORTED) };
    drop(subscription);
    if args.print && !args.json {
        Output::Out.line(&end.messages.last().map(|message| answer(message)).unwrap_or_default());
    }
    Ok(said(&agent, &end))
}

async fn at_the_terminal(args: RunArgs) -> anyhow::Result<Exit> {
    let first = match args.prompt {
        Some(prompt) if prompt.trim().is_empty() => {
            Err(anyhow!("the prompt is empty")).refused()?
        }
        Some(prompt) => Some(First::Prompt(prompt)),
        None if args.record.resumes() => Some(First::GoOn),
        None => None,
    };
    let (approver, questions) = approve::channel();
    // What it tells is shown on the screen.
    let reload = Reload::new(|_| ());
    let options = Options {
        approver: Some(approver),
        record: args.answers,
        reload: Some(reload.clone()),
        ..Options::default()
    };
    let observing = Observing::begin(&args.observe, None).await.refused()?;
    observing.keep_off_the_screen().refused()?;
    let opened = open(&args.file, Some(&args.record), &observing, options).await?;
    let Opened { agent, is_recorded } = opened;
    // Where no session is kept, nothing of it is.
    let history = match places::history().filter(|_| is_recorded) {
        Some(file) => History::in_file(file),
        None => History::forgetful(),
    };
    terminal::run(agent, reload, questions, history, first).await
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

/// The run; an interrupt aborts it, and a second one leaves at once. Without a prompt it goes on from
/// where the transcript stops. None if it was left.
async fn with_interrupt(agent: &Agent, prompt: Option<String>) -> anyhow::Result<Option<RunEnd>> {
    let mut interrupts = Interrupts::listen()?;
    let mut aborted = false;
    let mut run = match prompt {
        Some(prompt) => agent.prompt(prompt).boxed(),
        None => agent.continue_run().boxed(),
    };
    loop {
        tokio::select! { biased;
            () = interrupts.next() => {
                if aborted {
                    Output::Err.line("interrupted twice: left at once");
                    return Ok(None);
                }
                Output::Err.line("aborting; interrupt again to leave at once");
                agent.abort();
                aborted = true;
            }
            end = &mut run => return match end {
                Err(AgentError::NothingToContinue | AgentError::AssistantTail) => Err(anyhow!(
                    "the session has nothing to go on with: say what to do next, as in: cofferdam \
                     run --continue \"And then?\""
                )).refused(),
                end => Ok(Some(end?)),
            },
        }
    }
}

/// The exit code of a run, and a word on why it did not come to an answer.
fn said(agent: &Agent, end: &RunEnd) -> Exit {
    let exit = exit::of_run(end.reason);
    if exit != DONE && exit != ABORTED {
        let problem = agent.last_error().unwrap_or_else(|| end.reason.to_string());
        Output::Err.line(&format!("error: {problem}"));
    }
    exit
}
