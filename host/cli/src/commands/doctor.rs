//! `cofferdam doctor`: what is promised about plugins, proved on this machine.

use crate::args::DoctorArgs;
use crate::exit::{DONE, Exit, FAILED};
use crate::render::Output;
use cofferdam_app::Pinning;
use cofferdam_app::doctor::{DoctorOptions, Row, Scope, Section, Verdict, examine};

pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<Exit> {
    let config = super::operators_file(args.config.as_deref(), &args.over.layers()).transpose();
    let pinning = if args.allow_unpinned { Pinning::Optional } else { Pinning::Required };
    let scope = if args.quick { Scope::Configuration } else { Scope::All };
    let options = DoctorOptions { scope, pinning, sandbox: super::sandbox_config() };
    let mut tell = |section: &Section| {
        if !args.json {
            Output::Out.line(&table(section));
        }
    };
    let report = examine(config, options, &mut tell).await;
    if args.json {
        Output::Out.json(&report.to_json());
    } else {
        let count = |verdict| report.rows().filter(|row| row.verdict == verdict).count();
        let (failed, warnings) = (count(Verdict::Failed), count(Verdict::Warning));
        Output::Out.line(&match (failed, warnings) {
            (0, 0) => "everything holds".into(),
            (0, warnings) => format!("everything holds; {warnings} to look at"),
            (failed, warnings) => format!("{failed} failed, {warnings} more to look at"),
        });
    }
    Ok(if report.is_sound() { DONE } else { FAILED })
}

/// A section as lines: verdict, subject, the values where there are some, what was found.
fn table(section: &Section) -> String {
    let width = |cell: fn(&Row) -> &str| {
        section.rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or_default()
    };
    let subject = width(subject);
    let (value, default) = (width(value), width(default));
    let mut lines = vec![match value {
        0 => section.title.to_owned(),
        _ => format!(
            "{:10}{:subject$}  {:>value$}  {:>default$}",
            section.title,
            "",
            "in force",
            "default",
            value = value.max(8),
            default = default.max(7),
            subject = subject.saturating_sub(0),
        ),
    }];
    for row in &section.rows {
        let values = match value {
            0 => String::new(),
            _ => format!(
                "{:>value$}  {:>default$}  ",
                self::value(row),
                self::default(row),
                value = value.max(8),
                default = default.max(7)
            ),
        };
        let word = word(row.verdict);
        lines.push(format!("  {word:8}{:subject$}  {values}{}", self::subject(row), row.found));
        if let Some(advice) = &row.advice {
            lines.push(format!("  {:8}{:subject$}  → {advice}", "", ""));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn subject(row: &Row) -> &str {
    &row.subject
}

fn value(row: &Row) -> &str {
    row.value.as_deref().unwrap_or_default()
}

fn default(row: &Row) -> &str {
    row.default.as_deref().unwrap_or_default()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Note => "note",
        Verdict::Warning => "warning",
        Verdict::Failed => "FAILED",
    }
}
