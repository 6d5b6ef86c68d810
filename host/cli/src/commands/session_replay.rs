//! `cofferdam session replay`: whether the loop still does what it did.

use super::{session, session_show};
use crate::args::SessionReplayArgs;
use crate::exit::{DONE, Exit, FAILED, Refused as _};
use crate::render::Output;
use cofferdam_app::session::replay::{Difference, Replay, replay};
use cofferdam_sandbox::text::visible;
use serde_json::Value;

/// Bytes of a line that differs.
const LINE_BYTES_MAX: usize = 2_000;

pub(crate) fn run(args: &SessionReplayArgs) -> anyhow::Result<Exit> {
    let sessions = session::folder(&args.session.folder).refused()?;
    let record = sessions.read(&args.session.session).refused()?;
    session_show::report(&record);
    let runs = replay(&record);
    for (number, run) in (1..).zip(&runs) {
        Output::Out.line(&line(number, run));
        if let Some(difference) = &run.difference {
            show(difference);
        }
    }
    if runs.is_empty() {
        Output::Err.line("there is no run in this session");
    }
    Ok(if runs.iter().all(|run| run.difference.is_none()) { DONE } else { FAILED })
}

fn line(number: usize, run: &Replay) -> String {
    let Replay { answers, calls, lines, cut, difference } = run;
    let broken = if *cut { " (the process was ended in it)" } else { "" };
    let outcome = match difference {
        None => format!("{lines} lines, all the same"),
        Some(difference) => format!("line {} of {lines} differs", difference.line),
    };
    format!("run {number}{broken}: {answers} answers, {calls} calls; {outcome}")
}

fn show(difference: &Difference) {
    let text = |value: &Option<Value>| match value {
        Some(value) => visible(&value.to_string(), LINE_BYTES_MAX),
        None => "nothing".into(),
    };
    Output::Out.line(&format!("  recorded  {}", text(&difference.recorded)));
    Output::Out.line(&format!("  replayed  {}", text(&difference.replayed)));
}
