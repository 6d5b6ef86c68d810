//! What the commands about sessions share: where the sessions are.

use crate::args::SessionFolder;
use anyhow::Context as _;
use cofferdam_app::config::Layers;
use cofferdam_app::session::Sessions;
use cofferdam_app::{Config, places};

/// The folder that the command line means.
pub(super) fn folder(args: &SessionFolder) -> anyhow::Result<Sessions> {
    match &args.dir {
        Some(dir) => Ok(Sessions::at(dir)),
        None => folder_of(config(args)?.as_ref()),
    }
}

/// The operator's file that the command line means, if there is one.
pub(super) fn config(args: &SessionFolder) -> anyhow::Result<Option<Config>> {
    let layers = Layers::of_process(Vec::new());
    Ok(super::operators_file(args.config.as_deref(), &layers)?)
}

/// The folder of an operator's file, or the person's own.
pub(super) fn folder_of(config: Option<&Config>) -> anyhow::Result<Sessions> {
    let chosen = config.and_then(|config| config.session.dir.clone());
    let folder = chosen.or_else(places::sessions).context(
        "there is no home folder to keep sessions in; name a folder with `[session] dir = \"…\"`",
    )?;
    Ok(Sessions::at(folder))
}
