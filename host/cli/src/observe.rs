//! What the operator asked to see of an agent: a log, traces, figures. Set up before anything else,
//! and ended after everything else.

use crate::args::{LogFormat, LogLevel, MetricsArgs, ObserveArgs};
use crate::listen::listen;
use crate::render::{Output, pure_json};
use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;
use cofferdam_agent::Agent;
use cofferdam_observe::{Collector, Contents, Hosts, Logs, Metrics, Otlp, Subject, TARGET};
use cofferdam_sandbox::text::harmless;
use cofferdam_sandbox::{Level, LogLine, LogSink};
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tracing::{debug, error, info, warn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Dropping it sends what traces wait, and says what was lost.
pub(crate) struct Observing {
    log: Option<To>,
    log_plugins: bool,
    contents: Contents,
    otlp: Option<Otlp>,
    metrics: Option<Figures>,
}

struct Figures {
    metrics: Arc<Metrics>,
    server: JoinHandle<()>,
}

impl Observing {
    /// Begins as the flags and the environment say.
    pub(crate) async fn begin(
        args: &ObserveArgs,
        metrics: Option<&MetricsArgs>,
    ) -> anyhow::Result<Self> {
        let otlp = match args.otlp.as_deref() {
            None => None,
            Some("env") => Some(Otlp::new(&Collector::OfEnvironment)?),
            Some(base) => Some(Otlp::new(&Collector::At(base.into())).context("--otlp")?),
        };
        let metrics = match metrics {
            Some(args) => figures(args).await?,
            None => None,
        };
        Ok(Self {
            log: begin_log(args)?,
            log_plugins: args.log_plugins,
            contents: if args.observe_contents { Contents::Shown } else { Contents::Hidden },
            otlp,
            metrics,
        })
    }

    /// Refuses a log that would be written across the screen where somebody sits.
    pub(crate) fn keep_off_the_screen(&self) -> anyhow::Result<()> {
        match &self.log {
            Some(To::Err) if io::stderr().is_terminal() => {
                bail!("the log would be written across this screen: say --log-file FILE")
            }
            _ => Ok(()),
        }
    }

    /// Observes an agent for as long as it lives.
    pub(crate) fn watch(&self, agent: &Agent, subject: &Subject) {
        if self.log.is_some() {
            let logs = Logs::new(subject.clone(), self.contents);
            agent.subscribe(Arc::new(logs)).detach();
        }
        if let Some(otlp) = &self.otlp {
            agent.subscribe(otlp.observer(subject.clone(), self.contents)).detach();
        }
        if let Some(figures) = &self.metrics {
            agent.subscribe(figures.metrics.observer()).detach();
        }
    }

    /// Where the lines go that plugins log, if they are asked for.
    pub(crate) fn plugin_log(&self) -> Option<LogSink> {
        (self.log.is_some() && self.log_plugins).then(|| Arc::new(plugin_line) as LogSink)
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        if let Some(figures) = &self.metrics {
            figures.server.abort();
        }
        if let Some(problem) = self.otlp.as_ref().and_then(Otlp::finish) {
            Output::Err.line(&format!("note: {problem}"));
        }
    }
}

async fn figures(args: &MetricsArgs) -> anyhow::Result<Option<Figures>> {
    let Some(address) = args.metrics else { return Ok(None) };
    let remote = args.metrics_allow_remote;
    let listener = listen(address, remote, "--metrics-allow-remote").await?;
    Output::Err.line(&format!("metrics on http://{}/metrics", listener.local_addr()?));
    let metrics = Arc::new(Metrics::default());
    let hosts = if remote { Hosts::Any } else { Hosts::Addresses };
    let serving = cofferdam_observe::serve_metrics(metrics.clone(), listener, hosts);
    let server = tokio::spawn(async move {
        let never = serving.await;
        match never {}
    });
    Ok(Some(Figures { metrics, server }))
}

/// Begins the log, if there shall be one: where it goes.
fn begin_log(args: &ObserveArgs) -> anyhow::Result<Option<To>> {
    let file = match &args.log_file {
        Some(file) => Some(file.clone()),
        None => std::env::var_os("COFFERDAM_LOG_FILE")
            .filter(|file| !file.is_empty())
            .map(PathBuf::from),
    };
    let level = match (args.log, of_environment::<LogLevel>("COFFERDAM_LOG")?) {
        (Some(level), _) | (None, Some(level)) => level,
        // Whoever says where the log goes wants one.
        (None, None) if args.log_file.is_some() || args.log_format.is_some() => LogLevel::Info,
        (None, None) => LogLevel::Off,
    };
    let level = match level {
        LogLevel::Off => return Ok(None),
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let format = match args.log_format {
        Some(format) => Some(format),
        None => of_environment("COFFERDAM_LOG_FORMAT")?,
    };
    let format = format.unwrap_or(LogFormat::Text);
    let to = match file {
        None => To::Err,
        Some(path) => {
            let file = File::options().create(true).append(true).open(&path);
            To::File(Arc::new(file.with_context(|| format!("open the log {}", path.display()))?))
        }
    };
    let writer = move |to: &To| {
        let to = to.clone();
        move || Pure { to: to.clone(), format }
    };
    // Of this program alone: what libraries log may hold contents and credentials.
    let filter = Targets::new().with_target(TARGET, level);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false);
    let begun = match format {
        LogFormat::Text => {
            let lines = lines.with_writer(writer(&to));
            tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()
        }
        LogFormat::Json => {
            let lines = lines.json().with_writer(writer(&to));
            tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()
        }
    };
    begun.context("begin the log")?;
    Ok(Some(to))
}

/// A value of the environment; an empty one is none.
fn of_environment<T: ValueEnum>(variable: &str) -> anyhow::Result<Option<T>> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let word = value.to_string_lossy();
    T::from_str(&word, true).map(Some).map_err(|_| {
        let words = T::value_variants().iter().filter_map(T::to_possible_value);
        let words: Vec<String> = words.map(|word| word.get_name().to_owned()).collect();
        anyhow!("{variable} is {word:?}: it takes {}", words.join(", "))
    })
}

fn plugin_line(line: LogLine<'_>) {
    let LogLine { plugin, level, message } = line;
    match level {
        Level::Debug => debug!(target: TARGET, plugin, said = message, "plugin"),
        Level::Info => info!(target: TARGET, plugin, said = message, "plugin"),
        Level::Warn => warn!(target: TARGET, plugin, said = message, "plugin"),
        Level::Error => error!(target: TARGET, plugin, said = message, "plugin"),
    }
}

/// Where lines of the log go.
#[derive(Clone)]
enum To {
    Err,
    File(Arc<File>),
}

/// Writes lines that drive no terminal, whatever is in them.
struct Pure {
    to: To,
    format: LogFormat,
}

impl Write for Pure {
    /// Gets whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut line = match self.format {
            LogFormat::Text => harmless(line),
            LogFormat::Json => pure_json(line),
        };
        line.push('\n');
        match &self.to {
            To::Err => io::stderr().lock().write_all(line.as_bytes())?,
            To::File(file) => (&**file).write_all(line.as_bytes())?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
