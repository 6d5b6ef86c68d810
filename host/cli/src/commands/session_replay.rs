//! `cofferdam session replay`: whether the loop still does what it did, or a plugin in one call.

use super::{session, session_show};
use crate::args::SessionReplayArgs;
use crate::exit::{DONE, Exit, FAILED, Refused as _};
use crate::render::Output;
use anyhow::Context as _;
use cofferdam_app::session::Record;
use cofferdam_app::session::repeat::{OldCall, Row};
use cofferdam_app::session::replay::{Difference, Replay, replay};
use cofferdam_sandbox::text::visible;
use serde_json::Value;

/// Bytes of a line that differs.
const LINE_BYTES_MAX: usize = 2_000;

pub(crate) async fn run(args: &SessionReplayArgs) -> anyhow::Result<Exit> {
    let sessions = session::folder(&args.session.folder).refused()?;
    let record = sessions.read(&args.session.session).refused()?;
    session_show::report(&record);
    match &args.call {
        Some(id) => one_call(args, &record, id).await,
        None => Ok(whole(&record)),
    }
}

fn whole(record: &Record) -> Exit {
    let runs = replay(record);
    for (number, run) in (1..).zip(&runs) {
        Output::Out.line(&line(number, run));
        if let Some(difference) = &run.difference {
            show(difference);
        }
    }
    if runs.is_empty() {
        Output::Err.line("there is no run in this session");
    }
    if runs.iter().all(|run| run.difference.is_none()) { DONE } else { FAILED }
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

async fn one_call(args: &SessionReplayArgs, record: &Record, id: &str) -> anyhow::Result<Exit> {
    let old = OldCall::find(record, id).refused()?;
    let config = session::config(&args.session.folder).refused()?;
    let config = config
        .context(
            "what a call may touch comes from the operator's file and not from the session: name it \
             with --config",
        )
        .refused()?;
    let rows = old.repeat(&config, super::sandbox_config()).await.refused()?;
    let seeds = match old.seeds {
        Some(_) => "with the recorded chance and time",
        None => "with other chance and time (a session of `run --record-seeds` has them)",
    };
    let (tool, plugin) = (visible(old.tool, 80), visible(&old.plugin.name, 80));
    Output::Out.line(&format!("{tool} of the plugin {plugin}, {seeds}"));
    for row in &rows {
        Output::Out.line(&compared(row));
    }
    let same = rows.iter().all(|row| row.is_same() || !row.counts);
    Ok(if same { DONE } else { FAILED })
}

fn compared(row: &Row) -> String {
    let Row { what, recorded, now, counts } = row;
    let (then, now) = (visible(recorded, LINE_BYTES_MAX), visible(now, LINE_BYTES_MAX));
    match (row.is_same(), counts) {
        (true, _) => format!("  same     {what:8}  {then}"),
        (false, false) => format!("  other    {what:8}  {then} then, {now} now"),
        (false, true) => format!("  differs  {what:8}  {then}\n  now      {what:8}  {now}"),
    }
}
