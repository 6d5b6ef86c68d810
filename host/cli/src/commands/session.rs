//! What the commands about sessions share: where the sessions are.

use crate::args::SessionFolder;
use anyhow::Context as _;
use cofferdam_app::session::Sessions;
use cofferdam_app::{Config, places};
use std::path::Path;

/// The operator's file that is used if it is there.
const CONFIG: &str = "cofferdam.toml";

/// The folder that the command line means.
pub(super) fn folder(args: &SessionFolder) -> anyhow::Result<Sessions> {
    if let Some(dir) = &args.dir {
        return Ok(Sessions::at(dir));
    }
    let config = match &args.config {
        Some(path) => Some(Config::read(path)?),
        None if Path::new(CONFIG).is_file() => Some(Config::read(Path::new(CONFIG))?),
        None => None,
    };
    folder_of(config.as_ref())
}

/// The folder of an operator's file, or the person's own.
pub(super) fn folder_of(config: Option<&Config>) -> anyhow::Result<Sessions> {
    let chosen = config.and_then(|config| config.session.dir.clone());
    let folder = chosen.or_else(places::sessions).context(
        "there is no home folder to keep sessions in; name a folder with `[session] dir = \"…\"`",
    )?;
    Ok(Sessions::at(folder))
}
