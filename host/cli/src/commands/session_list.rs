//! `cofferdam session list`: the sessions, the latest last.

use super::session;
use crate::args::SessionListArgs;
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use cofferdam_app::session::{Listed, Summary, local_time};
use cofferdam_sandbox::text::visible;
use serde_json::{Value, json};

/// Bytes of a title on its line.
const TITLE_BYTES_MAX: usize = 80;

pub(crate) fn run(args: &SessionListArgs) -> anyhow::Result<Exit> {
    let sessions = session::folder(&args.folder).refused()?;
    let list = sessions.list().refused()?;
    if list.is_empty() && !args.json {
        Output::Err.line(&format!("there is no session in {}", sessions.folder().display()));
    }
    for Listed { id, summary } in list {
        match summary {
            Ok(summary) if args.json => Output::Out.json(&as_json(&id, &summary)),
            Ok(summary) => Output::Out.line(&line(&id, &summary)),
            Err(problem) => Output::Err.line(&format!("note: {problem}")),
        }
    }
    Ok(DONE)
}

fn line(id: &str, summary: &Summary) -> String {
    let Summary { began_us, messages, calls, title, ended, .. } = summary;
    let (began, title) = (local_time(*began_us), visible(title, TITLE_BYTES_MAX));
    let state = if *ended { "" } else { "  (unfinished)" };
    format!("{id}  {began}  {messages:>5} messages  {calls:>5} calls  {title}{state}")
}

fn as_json(id: &str, summary: &Summary) -> Value {
    let Summary { began_us, config, messages, calls, title, ended } = summary;
    json!({
        "id": id,
        "began_us": began_us,
        "config": config,
        "messages": messages,
        "calls": calls,
        "title": title,
        "ended": ended,
    })
}
