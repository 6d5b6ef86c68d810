//! `cofferdam plugin inspect`: what a file is, exports and imports. Nothing of it is compiled or run.

use crate::args::InspectArgs;
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use anyhow::Context as _;
use cofferdam_sandbox::text::visible;
use cofferdam_sandbox::{Inspection, Metadata, component_bytes, inspect};

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    let file = args.file.display();
    let bytes = std::fs::read(&args.file).with_context(|| format!("read {file}")).refused()?;
    let named = || format!("{file} is no plugin for this host");
    let bytes = component_bytes(&bytes, true).with_context(named).refused()?;
    let inspection = inspect(&bytes).with_context(named).refused()?;
    if args.json {
        Output::Out.json(&serde_json::to_value(&inspection)?);
    } else {
        Output::Out.line(&table(&inspection));
    }
    Ok(DONE)
}

fn table(inspection: &Inspection) -> String {
    let mut lines = vec![
        format!("contract  cofferdam:plugin@{}", inspection.contract_version),
        format!("offers    {}", roles(inspection).join(", ")),
        format!(
            "size      {} bytes, {} functions",
            inspection.size_bytes, inspection.code.functions
        ),
        format!("sha256    {}", inspection.sha256),
    ];
    lines.extend(claims(&inspection.metadata));
    lines.push("exports".into());
    lines.extend(inspection.exports.iter().map(|name| format!("  {}", visible(name, 200))));
    lines.push("imports".into());
    lines.extend(inspection.imports.iter().map(|name| format!("  {}", visible(name, 200))));
    if let Some(wants) = &inspection.wants {
        lines.push(format!("wants     {}", visible(&wants.to_string(), 2_000)));
    }
    lines.join("\n")
}

fn roles(inspection: &Inspection) -> Vec<&'static str> {
    let roles = inspection.roles;
    [
        (roles.tools, "tools"),
        (roles.argument_preparation, "argument preparation"),
        (roles.before_tool_call, "a hook before calls"),
        (roles.after_tool_call, "a hook after calls"),
    ]
    .into_iter()
    .filter_map(|(offered, name)| offered.then_some(name))
    .collect()
}

/// What the plugin says of itself.
fn claims(metadata: &Metadata) -> Vec<String> {
    [
        ("name", &metadata.name),
        ("version", &metadata.version),
        ("about", &metadata.description),
        ("authors", &metadata.authors),
        ("licence", &metadata.licenses),
        ("homepage", &metadata.homepage),
        ("source", &metadata.source),
        ("revision", &metadata.revision),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some(format!("{key:8}  {}", visible(value.as_ref()?, 400))))
    .collect()
}
