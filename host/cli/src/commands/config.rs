//! `cofferdam config`: what is configured, and what can be.

use crate::args::{ConfigKeysArgs, ConfigShowArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use cofferdam_app::Config;
use cofferdam_app::config::{Effective, Origin, effective, list_keys, page};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn show(args: &ConfigShowArgs) -> anyhow::Result<Exit> {
    let config = super::operators_file(args.config.as_deref(), &args.over.layers()).refused()?;
    let config = match config {
        Some(config) => config,
        None => Config::parse("", Path::new("")).refused()?,
    };
    let mut rows = effective(Some(&config));
    rows.retain(|row| !args.changed || row.origin != Origin::Default);
    if args.json {
        let file = match config.path.as_os_str().is_empty() {
            true => Value::Null,
            false => json!(config.path.display().to_string()),
        };
        let rows: Vec<Value> = rows.iter().map(Effective::to_json).collect();
        Output::Out.json(&json!({"file": file, "values": rows}));
    } else {
        let rows = rows.iter().map(|row| [row.key.clone(), row.shown(), row.place.clone()]);
        columns(&rows.collect::<Vec<_>>()).iter().for_each(|line| Output::Out.line(line));
    }
    Ok(DONE)
}

pub(crate) fn keys(args: &ConfigKeysArgs) -> anyhow::Result<Exit> {
    if args.markdown {
        Output::Out.line(page().trim_end());
        return Ok(DONE);
    }
    let rows = list_keys().into_iter().map(|[variable, key, takes, unset]| {
        [key, takes, if unset.is_empty() { String::new() } else { format!("({unset})") }, variable]
    });
    columns(&rows.collect::<Vec<_>>()).iter().for_each(|line| Output::Out.line(line));
    Ok(DONE)
}

/// Rows as lines. A cell that is very long does not push the others aside.
fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    const WIDTH_MAX: usize = 48;
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            let own = cell.chars().count();
            *width = (*width).max(if own > WIDTH_MAX { 0 } else { own });
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
