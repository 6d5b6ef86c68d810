//! `cofferdam plugin wit`: the contract that plugins are built against, as the files that this host
//! was built with.

use crate::args::WitArgs;
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use anyhow::Context as _;

const FILES: [(&str, &str); 5] = [
    ("types.wit", include_str!("../../../../wit/types.wit")),
    ("tools.wit", include_str!("../../../../wit/tools.wit")),
    ("hooks.wit", include_str!("../../../../wit/hooks.wit")),
    ("host.wit", include_str!("../../../../wit/host.wit")),
    ("worlds.wit", include_str!("../../../../wit/worlds.wit")),
];

pub(crate) fn run(args: &WitArgs) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("create {}", folder.display()))
        .refused()?;
    for (name, text) in FILES {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        Output::Out.line(&file.display().to_string());
    }
    Ok(DONE)
}
