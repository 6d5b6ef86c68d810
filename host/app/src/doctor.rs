//! The self-test: what is promised about plugins, proved on this machine.
//!
//! Every limit and every kind of grant is tried on a small guest that is part of the program, at
//! the values that are in force; the plugins of a configuration are loaded, and the configuration
//! itself is looked at. Nothing here prints: an embedder gets the same [`Report`].
//!
//! ```no_run
//! # async fn run() {
//! let report = cofferdam_app::doctor::examine(None, Default::default(), &mut |_| ()).await;
//! assert!(report.is_sound(), "{}", report.to_json());
//! # }
//! ```

mod bench;
mod config_checks;
mod grants;
mod limits;
mod load_limits;
mod plugins;
mod report;
mod server;
mod settings;

pub use report::{Report, Row, Section, Verdict};

use crate::config::{Config, ConfigError, Mistake};
use crate::registry::Pinning;
use bench::Bench;
use cofferdam_sandbox::{Limits, Sandbox, SandboxConfig};
use plugins::Loaded;

/// What is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// This machine and the configuration.
    #[default]
    All,
    /// The configuration and its plugins alone, without any trial.
    Configuration,
}

/// What the self-test is done with.
#[derive(Default)]
pub struct DoctorOptions {
    /// What is examined.
    pub scope: Scope,
    /// Whether plugins must be pinned by their digests.
    pub pinning: Pinning,
    /// The sandbox's own settings, under those of the configuration.
    pub sandbox: SandboxConfig,
}

/// Examines this machine, and a configuration if there is one. Each section is told as soon as it
/// is known; together they take some seconds.
pub async fn examine(
    config: Option<Result<Config, ConfigError>>,
    options: DoctorOptions,
    tell: &mut (dyn FnMut(&Section) + Send),
) -> Report {
    let mut report = Report::default();
    let mut add = |title, rows| report.add(Section { title, rows }, tell);
    let config = match config {
        None => None,
        Some(Ok(config)) => Some(config),
        Some(Err(ConfigError::Mistakes(mistakes))) => {
            let row = |mistake: Mistake| Row::failed(mistake.place, mistake.problem);
            add("configuration", mistakes.into_iter().map(row).collect());
            None
        }
        Some(Err(problem)) => {
            add("configuration", vec![Row::failed("the file", problem.to_string())]);
            None
        }
    };
    let entry = config.as_ref().map(|config| config.sandbox.clone()).unwrap_or_default();
    let sandbox = match Sandbox::new(entry.over(options.sandbox)) {
        Ok(sandbox) => sandbox,
        Err(problem) => {
            add("engine", vec![Row::failed("engine", problem.to_string())]);
            return report;
        }
    };
    add("engine", settings::engine(&sandbox));
    if options.scope == Scope::All {
        match Bench::set_up(&sandbox).await {
            Ok(bench) => {
                add("settings", settings::rows(&bench, &entry).await);
                add("limits", limits::rows(&bench, &in_force(config.as_ref())).await);
                add("grants", grants::rows(&bench).await);
            }
            Err(problem) => add("probe", vec![Row::failed("probe", problem)]),
        }
        add("compiled code", settings::cache(&sandbox));
    }
    if let Some(config) = &config {
        let loaded = Loaded::all(&sandbox, config, options.pinning).await;
        add("plugins", loaded.rows());
        add("configuration", config_checks::rows(config, &loaded).await);
    }
    report
}

/// The limits of all plugins; the defaults if there are none.
fn in_force(config: Option<&Config>) -> Vec<Limits> {
    let of_plugins = config.iter().flat_map(|config| &config.plugins);
    let mut limits: Vec<Limits> = of_plugins.map(|entry| entry.limits.clone()).collect();
    if limits.is_empty() {
        limits.push(Limits::default());
    }
    limits
}
