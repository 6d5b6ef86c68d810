//! `cofferdam plugin pack`: what a plugin says of itself, written into its component.

use crate::args::PackArgs;
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use anyhow::Context as _;
use cofferdam_app::manifest::Manifest;
use cofferdam_sandbox::{pack, read_component};

pub(crate) fn run(args: &PackArgs) -> anyhow::Result<Exit> {
    let file = &args.file;
    let manifest = Manifest::read(&args.manifest).refused()?;
    let component =
        read_component(file).with_context(|| format!("read {}", file.display())).refused()?;
    let packed = pack(&component, &manifest.metadata(), Some(&manifest.wants))
        .with_context(|| format!("{} cannot be packed", file.display()))
        .refused()?;
    let output = args.output.as_ref().unwrap_or(file);
    write_whole(output, &packed).with_context(|| format!("write {}", output.display()))?;
    Output::Out.line(&format!(
        "{}  {} {}, {} wanted grants",
        output.display(),
        manifest.name,
        manifest.version,
        manifest.wants.len()
    ));
    Ok(DONE)
}

/// A host that is running sees the old file or the new one, and no half of either.
fn write_whole(path: &std::path::Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("wasm.part");
    std::fs::write(&part, bytes)?;
    std::fs::rename(&part, path)
}
