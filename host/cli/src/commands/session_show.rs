//! `cofferdam session show`: what happened in a session, as `run` shows it.

use super::session;
use crate::args::SessionArgs;
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::{Lines, Output};
use cofferdam_agent::event::Observer as _;
use cofferdam_app::session::{Record, as_events};
use futures::FutureExt as _;

pub(crate) fn run(args: &SessionArgs) -> anyhow::Result<Exit> {
    let record = session::folder(&args.folder).refused()?.read(&args.session).refused()?;
    let lines = Lines::new(Output::Out, true);
    as_events(&record.lines, |event| {
        // Lines are written at once.
        lines.on_event(event).now_or_never();
    });
    report(&record);
    Ok(DONE)
}

/// Says what of the file could not be read.
pub(super) fn report(record: &Record) {
    for skipped in &record.skipped {
        Output::Err.line(&format!("note: line {} is skipped: {}", skipped.line, skipped.problem));
    }
    if record.cut_bytes > 0 {
        Output::Err.line(&format!("note: the last line is cut: {} bytes", record.cut_bytes));
    }
}
