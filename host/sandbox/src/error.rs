//! What can go wrong, in words. Failures of a call are values for a model; everything else is an
//! error of the host's caller.

use crate::cut;
use crate::inspect::Refused;
use crate::limits::{LimitError, Limits};
use crate::mask;
use crate::services::secret::Secret;
use crate::text::visible;
use serde_json::{Value, json};
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// The sandbox could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine refused its settings, or the machine has no room for them.
    #[error("set up the engine: {0}")]
    Engine(String),
    /// Threads could not be started.
    #[error("start the sandbox's threads: {0}")]
    Threads(#[from] std::io::Error),
    /// A setting is out of range.
    #[error("the sandbox setting `{key}` cannot be {value}: it takes {expected}")]
    Setting {
        /// Which.
        key: &'static str,
        /// What was asked for.
        value: u64,
        /// What it takes.
        expected: &'static str,
    },
    /// An interface of the embedder's cannot be offered.
    #[error("offer the interface `{interface}`: {problem}")]
    Import {
        /// Which.
        interface: String,
        /// Why.
        problem: String,
    },
}

/// A plugin was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not the one that was allowed.
    #[error(
        "the plugin's SHA-256 is {found} and {pinned} was allowed; if the change is meant, allow it again"
    )]
    Digest {
        /// What was allowed.
        pinned: String,
        /// What is there.
        found: String,
    },
    /// It is no plugin of this contract.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is larger than the limits allow.
    #[error("the plugin has {found} {what} and the limit is {limit} (`limits.{key}`)")]
    TooLarge {
        /// What there is too much of, with its unit.
        what: &'static str,
        /// How much there is.
        found: u64,
        /// How much is allowed.
        limit: u64,
        /// The limit.
        key: &'static str,
    },
    /// A limit is out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A grant cannot be given.
    #[error("the grant {grant} cannot be given: {problem}")]
    Grant {
        /// Which.
        grant: String,
        /// Why.
        problem: String,
    },
    /// The component does not compile.
    #[error("compile the plugin: {0}")]
    Compile(String),
    /// Compiling took longer than the limits allow.
    #[error("compiling the plugin took longer than {0} s (`limits.compile_seconds`)")]
    CompileTime(u64),
    /// The component does not fit the contract.
    #[error("the plugin does not fit this host: {0}")]
    Link(String),
    /// It was asked for its tools and did not answer, or has functions of other types.
    #[error("the plugin was asked for its tools: {}", .0.message)]
    ListTools(Box<Failure>),
    /// The sandbox itself failed.
    #[error("{0}")]
    Sandbox(String),
}

/// Why a call was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// Somebody aborted it.
    #[error("aborted")]
    Aborted,
    /// Its wall time was over.
    #[error("out of wall time")]
    TimeLimit,
    /// It waited too long for its slot.
    #[error("no slot in time")]
    QueueTime,
}

impl Stop {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Aborted => 1,
            Self::TimeLimit => 2,
            Self::QueueTime => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Aborted),
            2 => Some(Self::TimeLimit),
            3 => Some(Self::QueueTime),
            _ => None,
        }
    }
}

/// A limit that a host function enforces by ending the call: it travels through the guest as an
/// error of this type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Exceeded {
    /// The kind of end, for machines.
    pub(crate) ended_by: &'static str,
    /// The limit.
    pub(crate) key: &'static str,
    /// For the model.
    pub(crate) what: String,
}

/// How a call failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What ended it, see [`cofferdam_agent::tool::ToolFailure`].
    pub ended_by: &'static str,
    /// For the model: what happened and what would work.
    pub message: String,
    /// For machines: `kind`, and where there is one `limit`, `limit_value`, `backtrace`, `stderr`.
    pub details: Value,
}

impl Failure {
    /// A failure without further details.
    pub(crate) fn new(ended_by: &'static str, message: impl Into<String>) -> Self {
        Self { ended_by, message: message.into(), details: json!({ "kind": ended_by }) }
    }

    /// A failure because of a limit.
    fn limit(ended_by: &'static str, key: &str, value: impl Into<Value>, message: String) -> Self {
        let details = json!({ "kind": ended_by, "limit": key, "limit_value": value.into() });
        Self { ended_by, message, details }
    }

    /// At most so many bytes for the model.
    pub(crate) fn cut(mut self, bytes_max: usize, cuts: &mut Vec<String>) -> Self {
        cut::text(&mut self.message, bytes_max, cuts);
        self
    }

    /// Adds what the host refused on the way: it is likely the cause, and says what to grant.
    pub(crate) fn with_refusals(mut self, refusals: &[String]) -> Self {
        for refusal in refusals {
            self.message.push_str("\nrefused by the host: ");
            self.message.push_str(refusal);
        }
        self
    }

    /// Without the secrets that a server may have echoed.
    pub(crate) fn masked(mut self, secrets: &[Secret]) -> Self {
        if !secrets.is_empty() {
            self.message = mask::text(&self.message, secrets).into_owned();
            self.details = mask::json(self.details, secrets);
        }
        self
    }

    pub(crate) fn stopped(stop: Stop, limits: &Limits) -> Self {
        match stop {
            Stop::Aborted => Self::new("aborted", "the call was aborted"),
            Stop::TimeLimit => Self::limit(
                "time-limit",
                "wall_ms",
                limits.wall_ms,
                format!("stopped after {} (limit wall_ms)", seconds(limits.wall_ms)),
            ),
            Stop::QueueTime => Self::limit(
                "queue-limit",
                "queue_ms",
                limits.queue_ms,
                format!(
                    "not run: no slot became free within {} (limit queue_ms); fewer calls at a time would help",
                    seconds(limits.queue_ms)
                ),
            ),
        }
    }

    pub(crate) fn queue_full(limits: &Limits) -> Self {
        Self::limit(
            "queue-limit",
            "queue",
            limits.queue,
            format!(
                "not run: {} calls of this plugin are already waiting (limit queue)",
                limits.queue
            ),
        )
    }

    /// What the engine's error means, from most to least certain.
    pub(crate) fn from_engine(error: &wasmtime::Error, scene: &Scene<'_>) -> Self {
        let mut failure = Self::classify(error, scene);
        if let Some(details) = failure.details.as_object_mut() {
            let frames = backtrace(error);
            if !frames.is_empty() {
                details.insert("backtrace".into(), frames.into());
            }
            if !scene.stderr.is_empty() {
                details.insert("stderr".into(), scene.stderr.into());
            }
        }
        failure
    }

    fn classify(error: &wasmtime::Error, scene: &Scene<'_>) -> Self {
        let limits = scene.limits;
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return Self::stopped(*stop, limits);
        }
        if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
            return Self::limit(
                exceeded.ended_by,
                exceeded.key,
                Value::Null,
                exceeded.what.clone(),
            );
        }
        if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
            let said =
                last_words(scene.stderr).map(|words| format!(": {words}")).unwrap_or_default();
            let mut failure = Self::new(
                "exit",
                format!("the plugin exited with status {status} instead of answering{said}"),
            );
            failure.details = json!({ "kind": "exit", "status": status });
            return failure;
        }
        if let Some(denied) = scene.memory_denied {
            return denied.failure(limits);
        }
        if let Some(trap) = error.downcast_ref::<Trap>() {
            return Self::trap(*trap, scene);
        }
        if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
            return Self::new(
                "queue-limit",
                "not run: the sandbox has no room for the call now; try it again",
            );
        }
        Self::from_text(&error.root_cause().to_string(), limits)
    }

    fn trap(trap: Trap, scene: &Scene<'_>) -> Self {
        match trap {
            Trap::OutOfFuel => {
                let fuel = scene.limits.fuel.unwrap_or_default();
                Self::limit(
                    "fuel-limit",
                    "fuel",
                    fuel,
                    format!("used up its fuel of {fuel} (limit fuel)"),
                )
            }
            Trap::StackOverflow => Self::new(
                "trap",
                "the plugin ran out of stack: it calls itself too deep for this input",
            ),
            _ => {
                let said = match last_words(scene.stderr) {
                    Some(words) => format!("the plugin failed: {words}"),
                    None => format!(
                        "the plugin crashed: {}",
                        trap.to_string().trim_start_matches("wasm trap: ")
                    ),
                };
                let mut failure = Self::new("trap", said);
                failure.details = json!({ "kind": "trap", "trap": format!("{trap:?}") });
                failure
            }
        }
    }

    /// Errors for which the engine has no type. Its words are stable enough to recognise a limit,
    /// and what is not recognised is shown as it is.
    fn from_text(text: &str, limits: &Limits) -> Self {
        if text.contains("too much data is being copied") {
            return Self::limit(
                "output-limit",
                "host_alloc_mib",
                limits.host_alloc_mib,
                format!(
                    "what the plugin handed over is larger than {} MiB (limit host_alloc_mib); ask for less at a time",
                    limits.host_alloc_mib
                ),
            );
        }
        if text.contains("resource limit exceeded: table") {
            return Self::limit(
                "memory-limit",
                "tables",
                limits.tables,
                "the plugin has too many tables (limit tables)".into(),
            );
        }
        if text.contains("resource limit exceeded: instance") {
            return Self::limit(
                "memory-limit",
                "instances",
                limits.instances,
                "the plugin has too many instances (limit instances)".into(),
            );
        }
        if text.contains("handle limit exceeded") || text.contains("table has no free keys") {
            return Self::limit(
                "memory-limit",
                "resources",
                limits.resources,
                format!(
                    "the plugin opened more than {} resources (limit resources)",
                    limits.resources
                ),
            );
        }
        Self::new("trap", format!("the plugin broke its contract: {}", visible(text, 300)))
    }
}

/// What is known about a call besides the engine's error.
pub(crate) struct Scene<'a> {
    pub(crate) limits: &'a Limits,
    /// The tail of standard error, fit to show.
    pub(crate) stderr: &'a str,
    pub(crate) memory_denied: Option<Denied>,
}

/// A refused growth: the guest sees an ordinary failure of its allocator and then traps as it
/// likes, so the refusal is what there is to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The memories of the call would exceed its limit.
    Memory,
    /// The memories of all calls would exceed theirs.
    AllMemory,
    /// A table would exceed its limit.
    Table,
}

impl Denied {
    fn failure(self, limits: &Limits) -> Failure {
        match self {
            Self::Memory => Failure::limit(
                "memory-limit",
                "memory_mib",
                limits.memory_mib,
                format!("memory limit of {} MiB reached (limit memory_mib); a smaller input may work", limits.memory_mib),
            ),
            Self::AllMemory => Failure::limit(
                "memory-limit",
                "memory_total_mib",
                Value::Null,
                "the memory of all calls together is used up (setting memory_total_mib); fewer calls at a time would help".into(),
            ),
            Self::Table => Failure::limit(
                "memory-limit",
                "table_elements",
                limits.table_elements,
                format!("table limit of {} elements reached (limit table_elements)", limits.table_elements),
            ),
        }
    }
}

/// Names of the guest's functions, innermost first, for the log.
fn backtrace(error: &wasmtime::Error) -> Vec<String> {
    const FRAMES_MAX: usize = 20;
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    backtrace
        .frames()
        .iter()
        .take(FRAMES_MAX)
        .map(|frame| match frame.func_name() {
            Some(name) => visible(name, 200),
            None => format!("function {}", frame.func_index()),
        })
        .collect()
}

/// The message in the tail of standard error: what a panic said, else its last line.
fn last_words(stderr: &str) -> Option<String> {
    const WORDS_MAX: usize = 500;
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let panic = lines.iter().rposition(|line| line.contains("panicked at"));
    let words = match panic {
        // Rust puts the message on the line after the place.
        Some(at) => match lines.get(at + 1).filter(|next| !next.starts_with("note:")) {
            Some(message) => format!("{message} ({})", lines[at]),
            None => lines[at].into(),
        },
        None => (*lines.last()?).into(),
    };
    Some(visible(&words, WORDS_MAX))
}

fn seconds(ms: u64) -> String {
    match ms % 1_000 {
        0 => format!("{} s", ms / 1_000),
        _ => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(error: wasmtime::Error, stderr: &str, memory_denied: Option<Denied>) -> Failure {
        let limits = Limits::default();
        Failure::from_engine(&error, &Scene { limits: &limits, stderr, memory_denied })
    }

    #[test]
    fn words_for_the_model() {
        let panic = "thread 'main' panicked at src/lib.rs:3:5:\nno such row\nnote: run with RUST_BACKTRACE=1\n";
        for (error, stderr, denied, ended_by, words) in [
            (Stop::TimeLimit.into(), "", None, "time-limit", "stopped after 30 s (limit wall_ms)"),
            (Stop::Aborted.into(), "", None, "aborted", "the call was aborted"),
            (
                I32Exit(3).into(),
                "",
                None,
                "exit",
                "the plugin exited with status 3 instead of answering",
            ),
            (
                I32Exit(1).into(),
                "no config\n",
                None,
                "exit",
                "the plugin exited with status 1 instead of answering: no config",
            ),
            (
                Trap::OutOfFuel.into(),
                "",
                None,
                "fuel-limit",
                "used up its fuel of 50000000000 (limit fuel)",
            ),
            (
                Trap::UnreachableCodeReached.into(),
                panic,
                None,
                "trap",
                "the plugin failed: no such row (thread 'main' panicked at src/lib.rs:3:5:)",
            ),
            (
                Trap::IntegerDivisionByZero.into(),
                "",
                None,
                "trap",
                "the plugin crashed: integer divide by zero",
            ),
            (
                Trap::UnreachableCodeReached.into(),
                panic,
                Some(Denied::Memory),
                "memory-limit",
                "memory limit of 64 MiB reached (limit memory_mib); a smaller input may work",
            ),
        ] {
            let failure = failure(error, stderr, denied);
            assert_eq!((failure.ended_by, failure.message.as_str()), (ended_by, words));
            assert_eq!(failure.details["kind"], ended_by);
        }
    }

    #[test]
    fn stderr_is_in_the_details() {
        let failure = failure(Trap::UnreachableCodeReached.into(), "a\nb", None);
        assert_eq!(failure.details["stderr"], "a\nb");
        assert_eq!(failure.message, "the plugin failed: b");
    }
}
