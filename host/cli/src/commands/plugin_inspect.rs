//! `cofferdam plugin inspect`: what a file is, exports, imports and wants, and the tools that it
//! offers when it is asked in the sandbox.

use crate::args::InspectArgs;
use crate::exit::{DONE, Exit, FAILED, Refused as _};
use crate::render::Output;
use anyhow::Context as _;
use cofferdam_agent::tool::Declaration;
use cofferdam_app::offer::{self, Offer, execution};
use cofferdam_sandbox::text::visible;
use cofferdam_sandbox::{Inspection, Metadata, Want, component_bytes, inspect, read_component};

pub(crate) async fn run(args: &InspectArgs) -> anyhow::Result<Exit> {
    let file = args.file.display();
    let bytes = read_component(&args.file).with_context(|| format!("read {file}")).refused()?;
    let named = || format!("{file} is no plugin for this host");
    let bytes = component_bytes(&bytes, true).with_context(named).refused()?.into_owned();
    let inspection = inspect(&bytes).with_context(named).refused()?;
    let offer = match args.no_run {
        true => Offer::Unknown,
        false => offer::ask(super::sandbox_config(), bytes).await,
    };
    if args.json {
        let mut shown = serde_json::to_value(&inspection)?;
        if let Some(fields) = shown.as_object_mut() {
            fields.extend(offer.to_json());
        }
        Output::Out.json(&shown);
    } else {
        Output::Out.line(&[table(&inspection), offered(&offer)].concat());
    }
    Ok(if let Offer::None(_) = offer { FAILED } else { DONE })
}

/// The tools as people read them.
fn offered(offer: &Offer) -> String {
    match offer {
        Offer::Unknown => String::new(),
        Offer::None(problem) => {
            format!("\ntools     none can be told: {}", visible(problem, 1_000))
        }
        Offer::Tools(tools, refused) if tools.is_empty() && refused.is_empty() => String::new(),
        Offer::Tools(tools, refused) => {
            let mut text = "\ntools".to_owned();
            for tool in tools {
                let Declaration { name, description, parameters, .. } = &*tool.declaration;
                text.push_str(&format!("\n  {name}: {}", visible(description, 400)));
                text.push_str(&format!("\n    runs {}", execution(&tool.execution)));
                for (key, value) in &tool.meta {
                    text.push_str(&format!("; {} {}", visible(key, 80), visible(value, 200)));
                }
                text.push_str(&format!("\n    {}", visible(&parameters.to_string(), 4_000)));
            }
            for tool in refused {
                text.push_str(&format!(
                    "\n  {} is not offered: {}",
                    tool.name,
                    visible(&tool.reason, 400)
                ));
            }
            text
        }
    }
}

fn table(inspection: &Inspection) -> String {
    let mut lines = vec![
        contract(inspection),
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
        lines.push("wants".into());
        lines.extend(wants.iter().map(|want| format!("  {}", wanted(want))));
    }
    lines.join("\n")
}

/// A wanted grant as the command line takes it, and why.
fn wanted(want: &Want) -> String {
    let need = if want.optional { " (works without)" } else { "" };
    format!("{}{need}: {}", want.pair(), want.reason)
}

pub(super) fn contract(inspection: &Inspection) -> String {
    match inspection.roles.functions {
        true => "contract  none: its functions are offered as tools".into(),
        false => format!("contract  cofferdam:plugin@{}", inspection.contract_version),
    }
}

fn roles(inspection: &Inspection) -> Vec<&'static str> {
    let roles = inspection.roles;
    [
        (roles.tools, "tools"),
        (roles.argument_preparation, "argument preparation"),
        (roles.before_tool_call, "a hook before calls"),
        (roles.after_tool_call, "a hook after calls"),
        (roles.functions, "functions"),
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
