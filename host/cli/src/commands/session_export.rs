//! `cofferdam session export`: a session as a page, as Markdown or as JSON.

use super::{session, session_show};
use crate::args::{ExportFormat, SessionExportArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use anyhow::Context as _;
use cofferdam_app::session::export;
use std::ffi::OsStr;
use std::path::Path;

pub(crate) fn run(args: &SessionExportArgs) -> anyhow::Result<Exit> {
    let sessions = session::folder(&args.session.folder).refused()?;
    let record = sessions.read(&args.session.session).refused()?;
    let text = match args.format.unwrap_or_else(|| by_ending(args.output.as_deref())) {
        ExportFormat::Html => export::page(&record),
        ExportFormat::Markdown => export::markdown(&record),
        ExportFormat::Json => format!("{:#}\n", export::document(&record)),
    };
    match &args.output {
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("write the export {}", path.display()))?,
        None => Output::Out.line(text.trim_end_matches('\n')),
    }
    session_show::report(&record);
    Ok(DONE)
}

fn by_ending(output: Option<&Path>) -> ExportFormat {
    match output.and_then(Path::extension).and_then(OsStr::to_str) {
        Some("html" | "htm") => ExportFormat::Html,
        Some("json") => ExportFormat::Json,
        _ => ExportFormat::Markdown,
    }
}
