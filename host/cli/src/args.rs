//! The command line.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs agents whose tools and hooks are sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 refused before anything ran, 130 aborted.\n\n\
        Examples:\n  \
        cofferdam run --config cofferdam.toml \"What does this project do?\"\n  \
        cofferdam run --continue \"And who wrote it?\"\n  \
        cofferdam session list\n  \
        cofferdam plugin inspect calc.wasm\n  \
        cofferdam plugin call calc.wasm calc '{\"expressions\": [\"1/3 + 1/6\"]}'"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent on a prompt.
    Run(RunArgs),
    /// Look at plugins and try them, without an agent.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at the sessions that runs left, export them and play them again.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Prove on this machine that every limit and every kind of grant bites, and check a configuration.
    #[command(after_help = "Exit codes: 0 everything holds, 1 something does not.\n\n\
            Examples:\n  \
            cofferdam doctor\n  \
            cofferdam doctor --config cofferdam.toml --json")]
    Doctor(DoctorArgs),
    /// Compile a component for the host that started this process.
    #[command(hide = true)]
    Compile,
}

/// Run an agent on a prompt.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Events go to standard output as they happen; with --print only the answer does, and \
        the events go to standard error. Ctrl-C aborts the run, a second one leaves at once.\n\n\
        What happens is kept in a session file as it happens. --continue goes on with the latest \
        session of the operator's file; without a prompt, from where it stopped.\n\n\
        Exit codes: 0 answered, 1 the model failed, 2 refused before it ran, 130 aborted.\n\n\
        Examples:\n  \
        cofferdam run --print --config cofferdam.toml \"What does this project do?\"\n  \
        cofferdam run --continue \"And who wrote it?\""
)]
pub(crate) struct RunArgs {
    /// What to do; read from standard input if it is `-`, or absent in a new session.
    pub(crate) prompt: Option<String>,
    /// The operator's file.
    #[arg(long, value_name = "FILE", default_value = "cofferdam.toml")]
    pub(crate) config: PathBuf,
    /// Print the answer alone on standard output, for scripts.
    #[arg(long)]
    pub(crate) print: bool,
    /// Print every event as one line of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Load plugins whose entry has no sha256.
    #[arg(long)]
    pub(crate) allow_unpinned: bool,
    /// Go on with the latest session of the operator's file.
    #[arg(long = "continue", conflicts_with = "session")]
    pub(crate) continue_latest: bool,
    /// Go on with this session: its id or the beginning of it, its file, or `latest`.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Keep no session file.
    #[arg(long, conflicts_with_all = ["continue_latest", "session"])]
    pub(crate) no_session: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions, the latest last.
    #[command(after_help = "Example: cofferdam session list --json")]
    List(SessionListArgs),
    /// Show what happened in a session, as `run` shows it.
    #[command(after_help = "Example: cofferdam session show latest")]
    Show(SessionArgs),
}

/// List the sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionListArgs {
    #[command(flatten)]
    pub(crate) folder: SessionFolder,
    /// Print one line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    /// Its id or the beginning of it, its file, or `latest`.
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) folder: SessionFolder,
}

/// Where sessions are.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionFolder {
    /// The folder of the session files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The operator's file that names the folder; cofferdam.toml if there is one here.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Show what a file is, exports and imports, without running any of it.
    #[command(after_help = "Example: cofferdam plugin inspect calc.wasm --json")]
    Inspect(InspectArgs),
    /// Write the contract's WIT files into a folder, to build a plugin against.
    #[command(after_help = "Example: cofferdam plugin wit wit/deps/cofferdam")]
    Wit(WitArgs),
    /// Run one call of one tool in the sandbox, and show its receipt.
    #[command(
        after_help = "Exit codes: 0 a result, 1 an error result, 2 refused before it ran.\n\n\
            Examples:\n  \
            cofferdam plugin call calc.wasm calc '{\"expressions\": [\"2^64\"]}'\n  \
            cofferdam plugin call files.wasm read_file '{\"path\": \"/docs/README.md\"}' \\\n    \
            --grant files=.:/docs:read-only --limit wall_ms=2000\n  \
            cofferdam plugin call fetch.wasm fetch '{\"url\": \"https://example.com/\"}' \\\n    \
            --grant 'http=GET https://example.com/'"
    )]
    Call(CallArgs),
}

/// Prove that limits and grants bite.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The operator's file; cofferdam.toml if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration and its plugins alone, without the trials.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Load plugins whose entry has no sha256.
    #[arg(long)]
    pub(crate) allow_unpinned: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what a file is, exports and imports.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// A component, as .wasm or .wat.
    pub(crate) file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write the contract's WIT files.
#[derive(Debug, clap::Args)]
pub(crate) struct WitArgs {
    /// The folder; made if it is not there. Files of the same names in it are replaced.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Run one call of one tool.
#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// A component, as .wasm or .wat.
    pub(crate) file: PathBuf,
    /// The tool's name.
    pub(crate) tool: String,
    /// The arguments as a JSON object; `-` reads them from standard input.
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// Take limits and grants from the entry of this file in an operator's file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Set a limit, such as wall_ms=2000; may be repeated.
    #[arg(long = "limit", value_name = "KEY=VALUE")]
    pub(crate) limits: Vec<String>,
    /// Grant something, such as files=./data:/data:read-only; may be repeated.
    #[arg(long = "grant", value_name = "KEY=VALUE")]
    pub(crate) grants: Vec<String>,
    /// Print one line of JSON, also on a terminal.
    #[arg(long)]
    pub(crate) json: bool,
}
