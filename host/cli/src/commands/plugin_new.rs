//! `cofferdam plugin new`: a project of an author's own.

use crate::args::{Lang, NewArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use cofferdam_app::scaffold::{Kind, Language, scaffold};
use std::path::Path;

pub(crate) fn run(args: &NewArgs) -> anyhow::Result<Exit> {
    let language = match args.lang {
        Lang::Rust => Language::Rust,
        Lang::Js => Language::JavaScript,
        Lang::Python => Language::Python,
    };
    let kind = if args.hook { Kind::Hook } else { Kind::Tool };
    let made = scaffold(Path::new(""), &args.name, language, kind).refused()?;
    Output::Err.line(&format!("made {}; to build it, test it and try it:", made.folder.display()));
    made.steps.iter().for_each(|step| Output::Out.line(step));
    Ok(DONE)
}
