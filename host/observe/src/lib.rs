//! What an agent does, for those who operate it: logs, traces for OpenTelemetry and metrics for
//! Prometheus, each an observer of the loop's events. None of them holds up a run: a collector that
//! is slow or gone, and a reader of metrics that never comes, cost it nothing.
//!
//! Texts of prompts, answers, arguments and results stay out unless [`Contents::Shown`] asks for
//! them. Names that come from a model or a plugin are cut to a length that fits a log.
//!
//! ```
//! use cofferdam_agent::testing::{ScriptedModel, answer, block_on};
//! use cofferdam_agent::{Agent, AgentConfig, Settings};
//! use cofferdam_observe::Metrics;
//! use std::sync::Arc;
//!
//! let model = Arc::new(ScriptedModel::new([answer::text("Hello.")]));
//! let agent = Agent::new(AgentConfig::new(Settings::new(model)));
//! let metrics = Arc::new(Metrics::default());
//! agent.subscribe(metrics.observer()).detach();
//! block_on(agent.prompt("Say hello."))?;
//! assert!(metrics.text().contains("cofferdam_runs_total{end=\"finished\"} 1"));
//! # Ok::<(), cofferdam_agent::AgentError>(())
//! ```

mod bill;
mod contents;
mod logs;
mod metrics;
mod otlp;
mod scrape;
mod subject;
mod traces;

pub use contents::Contents;
pub use logs::{Logs, TARGET};
pub use metrics::Metrics;
pub use otlp::{Collector, Otlp, OtlpError};
pub use scrape::{Hosts, serve_metrics};
pub use subject::Subject;
