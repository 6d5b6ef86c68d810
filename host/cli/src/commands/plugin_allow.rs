//! `cofferdam plugin allow`: a component on the operator's list, after a look at what it is, what
//! it wants and what grew.

use crate::args::AllowArgs;
use crate::exit::{DONE, Exit, REFUSED, Refused as _};
use crate::render::{Output, Paint};
use anyhow::{Context as _, bail};
use cofferdam_app::allow::{Candidate, Known, Ledger, Proposal};
use cofferdam_app::oci::{self, CredentialFile, Reference};
use cofferdam_app::offer::{self, Offer};
use cofferdam_app::places;
use cofferdam_sandbox::read_component;
use cofferdam_sandbox::text::visible;
use std::collections::BTreeSet;
use std::io::{BufRead as _, IsTerminal as _};

pub(crate) async fn run(args: &AllowArgs) -> anyhow::Result<Exit> {
    let ledger = Ledger::new(places::allowed());
    // Read once: what is shown, run and pinned is the same.
    let candidate = candidate(args).await?;
    let name = args.name.as_deref();
    let proposal = Proposal::new(&args.config, candidate, name, &ledger).refused()?;
    let offer = offer::ask(super::sandbox_config(), proposal.bytes().to_vec()).await;
    if let Offer::None(problem) = &offer {
        bail!(crate::exit::Refusal(anyhow::anyhow!(
            "{} would not be loaded: {problem}",
            proposal.candidate()
        )));
    }
    let proposal = proposal.with_offer(&offer);
    show(&proposal, Paint::of_stdout()).iter().for_each(|line| Output::Out.painted(line));
    let mut grants = args.grants.clone();
    if args.grant_wanted {
        grants.extend(proposal.ungranted().iter().map(|want| want.pair()));
    }
    // A grant that cannot be given is said before anything is asked.
    proposal.preview(&grants).refused()?;
    if !args.yes {
        if !std::io::stdin().is_terminal() {
            Output::Err
                .line("nothing was written: say --yes to allow it, or run this on a terminal");
            return Ok(REFUSED);
        }
        if !asked("Allow this component?")? {
            Output::Err.line("nothing was written");
            return Ok(REFUSED);
        }
        for want in proposal.ungranted() {
            let pair = want.pair();
            if !grants.contains(&pair) && asked(&format!("Grant {pair} ({})?", want.reason))? {
                grants.push(pair);
            }
        }
    }
    let line = proposal.write(&grants, &ledger).refused()?;
    Output::Out.line(&format!(
        "allowed: `{}` in {}, line {line}",
        proposal.name,
        proposal.config.display()
    ));
    rest(&proposal, &grants).iter().for_each(|line| Output::Out.line(line));
    Ok(DONE)
}

/// The component of a file, or of a registry.
async fn candidate(args: &AllowArgs) -> anyhow::Result<Candidate> {
    match args.component.to_str().filter(|text| Reference::is_meant(text)) {
        Some(text) => {
            let reference: Reference = text.parse().refused()?;
            let credentials = CredentialFile::of_user();
            let pulled = oci::pull(&reference, &credentials, &oci::Bounds::default()).await;
            Ok(Candidate::Pulled(pulled.with_context(|| format!("get {reference}")).refused()?))
        }
        None => {
            let file = &args.component;
            let bytes = read_component(file);
            let bytes = bytes.with_context(|| format!("read {}", file.display())).refused()?;
            Ok(Candidate::File(file.clone(), bytes))
        }
    }
}

/// A question on the terminal; anything but yes is no.
fn asked(question: &str) -> anyhow::Result<bool> {
    Output::Err.question(&format!("{question} [y/N] "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("read the answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// What the component is, and how it differs from the one in force.
fn show(proposal: &Proposal, paint: Paint) -> Vec<String> {
    let Proposal { inspection, entry, before, now, .. } = proposal;
    let mut lines = vec![format!(
        "plugin    {} {}",
        proposal.name,
        visible(inspection.metadata.version.as_deref().unwrap_or("without a version"), 80)
    )];
    if let Some(about) = &inspection.metadata.description {
        lines.push(format!("about     {}", visible(about, 400)));
    }
    lines.push(super::plugin_inspect::contract(inspection));
    lines.push(format!("sha256    {}", inspection.sha256));
    if let Some(source) = &proposal.source {
        lines.push(format!("from      {source}"));
    }
    match entry.as_ref().map(|entry| entry.sha256.as_deref()) {
        None => lines.push("in force  nothing of this name".into()),
        Some(_) if proposal.is_in_force() => lines.push("in force  this component".into()),
        Some(None) => lines.push("in force  any component: the entry is not pinned".into()),
        Some(Some(pinned)) => {
            lines.push(format!("in force  {pinned}"));
            if before.is_none() {
                lines.push(
                    "          (it was not allowed on this machine: what changed cannot be told)"
                        .into(),
                );
            }
        }
    }
    // Everything of a component that nothing is known of is new.
    let old = before.as_ref();
    type List = fn(&Known) -> &BTreeSet<String>;
    let lists: [(&str, List); 3] = [
        ("exports", |known| &known.exports),
        ("imports", |known| &known.imports),
        ("tools", |known| &known.tools),
    ];
    for (title, list) in lists {
        lines.extend(difference(title, old.map(list), list(now), paint));
    }
    lines.extend(wants(proposal, paint));
    lines
}

fn difference(
    title: &str,
    old: Option<&BTreeSet<String>>,
    now: &BTreeSet<String>,
    paint: Paint,
) -> Vec<String> {
    if now.is_empty() && old.is_none_or(BTreeSet::is_empty) {
        return Vec::new();
    }
    let is_new = |name: &String| old.is_some_and(|old| !old.contains(name));
    let gone = old.into_iter().flatten().filter(|name| !now.contains(*name));
    let shown = now.iter().map(|name| match is_new(name) {
        true => paint.red(&format!("  + {}  (new)", visible(name, 200))),
        false => format!("    {}", visible(name, 200)),
    });
    let gone = gone.map(|name| format!("  - {}  (gone)", visible(name, 200)));
    std::iter::once(title.to_owned()).chain(shown).chain(gone).collect()
}

/// What it asks for, and what became of that.
fn wants(proposal: &Proposal, paint: Paint) -> Vec<String> {
    let wants = proposal.inspection.wants.iter().flatten();
    let off = proposal.ungranted();
    let mut lines: Vec<String> = wants
        .map(|want| {
            let pair = want.pair();
            let known = proposal.before.as_ref().is_none_or(|old| old.wants.contains(&pair));
            let granted = !off.contains(&want);
            let need = if want.optional { ", works without" } else { "" };
            let line = |mark: char, state: &str| {
                format!("  {mark} {pair}  ({state}{need}): {}", want.reason)
            };
            match (granted, known) {
                (true, _) => line(' ', "granted"),
                (false, true) => line(' ', "off"),
                (false, false) => paint.red(&line('+', "grew, off")),
            }
        })
        .collect();
    match lines.is_empty() {
        true => lines.push("asks for  nothing".into()),
        false => lines.insert(0, "asks for".into()),
    }
    if let Some(entry) = &proposal.entry {
        let pairs = entry.grants.pairs();
        if !pairs.is_empty() {
            lines.push("granted".into());
            lines.extend(pairs.iter().map(|pair| format!("    {}", visible(pair, 400))));
        }
    }
    lines
}

/// What is left for the operator to do.
fn rest(proposal: &Proposal, granted: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let off: Vec<String> = proposal.ungranted().iter().map(|want| want.pair()).collect();
    let off: Vec<&String> = off.iter().filter(|pair| !granted.contains(pair)).collect();
    if !off.is_empty() {
        lines.push("what it asks for and does not get; to grant it:".into());
        let candidate = proposal.candidate();
        let config = proposal.config.display();
        lines.extend(off.iter().map(|pair| {
            format!("  cofferdam plugin allow {candidate} --config {config} --yes --grant '{pair}'")
        }));
    }
    let roles = proposal.inspection.roles;
    let points: Vec<&str> =
        [(roles.before_tool_call, "\"before\""), (roles.after_tool_call, "\"after\"")]
            .into_iter()
            .filter_map(|(has, point)| has.then_some(point))
            .collect();
    if !points.is_empty() && proposal.entry.is_none() {
        lines.push("it has hooks, which are asked only where the file says so:".into());
        lines.push(format!(
            "  [[hooks]]\n  plugin = \"{}\"\n  on = [{}]",
            proposal.name,
            points.join(", ")
        ));
    }
    lines
}
