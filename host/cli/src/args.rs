//! The command line.

use clap::{Parser, Subcommand};
use cofferdam_app::config::Layers;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The operator's file where none is named.
pub(crate) const OPERATORS_FILE: &str = "cofferdam.toml";

/// The heading of the flags that are about being observed.
const OBSERVING: &str = "Observing";

/// Runs agents whose tools and hooks are sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam",
    version,
    after_help = "Exit codes: 0 done, 1 failed, 2 refused before anything ran, 3 a mistake in the operator's \
        file, 4 the model failed, 5 a limit of the run was reached, 130 aborted.\n\n\
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
    /// Run an agent on a prompt, or sit at the terminal with it.
    Run(RunArgs),
    /// Drive an agent with lines of JSON on standard input and output.
    Rpc(RpcArgs),
    /// Offer the plugins' tools to an MCP client.
    Mcp(McpArgs),
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
    /// Show what is configured, and what can be.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Compile a component for the host that started this process.
    #[command(hide = true)]
    Compile,
}

/// Which operator's file.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// The operator's file.
    #[arg(long, value_name = "FILE", default_value = OPERATORS_FILE)]
    pub(crate) config: PathBuf,
    /// Load plugins whose entry has no sha256.
    #[arg(long)]
    pub(crate) allow_unpinned: bool,
    #[command(flatten)]
    pub(crate) over: OverArgs,
}

/// What stands above the operator's file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OverArgs {
    /// Set a key of the operator's file, such as agent.max_turns=20; may be repeated. Above it stands
    /// nothing, below it the environment (COFFERDAM_AGENT_MAX_TURNS) and the file.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Which session is written.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Go on with the latest session of the operator's file.
    #[arg(long = "continue", conflicts_with = "session")]
    pub(crate) continue_latest: bool,
    /// Go on with this session: its id or the beginning of it, its file, or `latest`.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Keep no session file.
    #[arg(long, conflicts_with_all = ["continue_latest", "session"])]
    pub(crate) no_session: bool,
    /// Put into the session what each sandboxed call had of chance and time, so that it can be made
    /// again exactly. Whoever reads the session can then compute the keys that a plugin made.
    #[arg(long, conflicts_with = "no_session")]
    pub(crate) record_seeds: bool,
}

/// What is told to those who operate it: host/docs/observing.md.
#[derive(Debug, clap::Args)]
pub(crate) struct ObserveArgs {
    /// Log what happens: error, warn, info, debug or off. COFFERDAM_LOG if absent.
    #[arg(long, help_heading = OBSERVING, value_name = "LEVEL")]
    pub(crate) log: Option<LogLevel>,
    /// How lines of the log look. COFFERDAM_LOG_FORMAT if absent, else text.
    #[arg(long, help_heading = OBSERVING, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Append the log to this file instead of standard error. COFFERDAM_LOG_FILE if absent.
    #[arg(long, help_heading = OBSERVING, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Put the lines that plugins log into the log. What they say is theirs to choose.
    #[arg(long, help_heading = OBSERVING)]
    pub(crate) log_plugins: bool,
    /// Send traces to this collector of OpenTelemetry, such as http://127.0.0.1:4318, or with `env`
    /// to where OTEL_EXPORTER_OTLP_ENDPOINT says.
    #[arg(long, help_heading = OBSERVING, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Put prompts, answers, arguments and results into the log and the traces.
    #[arg(long, help_heading = OBSERVING)]
    pub(crate) observe_contents: bool,
}

/// Where figures can be read.
#[derive(Debug, clap::Args)]
pub(crate) struct MetricsArgs {
    /// Serve figures for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9464.
    #[arg(long, help_heading = OBSERVING, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Allow an address for --metrics that other machines reach.
    #[arg(long, help_heading = OBSERVING, requires = "metrics")]
    pub(crate) metrics_allow_remote: bool,
}

/// From which level on lines are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// A run that could not be recorded.
    Error,
    /// Calls, answers and hooks that failed too.
    Warn,
    /// Runs, answers and calls as they end.
    Info,
    /// All that begins as well.
    Debug,
}

/// How lines of the log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Run an agent on a prompt, or sit at the terminal with it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With somebody at the terminal it stays there until they leave: Enter sends, or steers the run \
        that is active; Tab sends a follow-up for when it is done; Ctrl-J begins a new line; Up and Down lead \
        through what was typed before; Ctrl-C aborts the run, a second one leaves; Ctrl-D leaves. NO_COLOR is \
        honoured.\n\n\
        Elsewhere, or with TERM=dumb, events go to standard output as lines; with --print only the answer \
        does, and the events go to standard error. An interrupt aborts the run, a second one leaves at once.\n\n\
        What happens is kept in a session file as it happens. --continue goes on with the latest \
        session of the operator's file; without a prompt, from where it stopped.\n\n\
        Exit codes, at the terminal of the last run: 0 answered, 1 failed otherwise, 2 refused before it ran, 3 a mistake in the operator's file, \
        4 the model failed, 5 a limit of the run was reached ([agent] max_turns, max_truncated_answers), 130 aborted.\n\n\
        Examples:\n  \
        cofferdam run\n  \
        cofferdam run --print --config cofferdam.toml \"What does this project do?\"\n  \
        cofferdam run --continue \"And who wrote it?\""
)]
pub(crate) struct RunArgs {
    /// What to do first. Read from standard input if it is `-`, or if it is absent, the session new and
    /// nobody at the terminal.
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    /// Print the answer alone on standard output, for scripts.
    #[arg(long)]
    pub(crate) print: bool,
    /// Print every event as one line of JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the model's answers to a new file: a script for `provider = "scripted"`, which plays
    /// the run again offline.
    #[arg(long = "record", value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,
}

/// Drive an agent with lines of JSON.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Requests come in on standard input, answers, events and questions go out on standard output, one \
        JSON object a line: host/docs/rpc.md has the protocol. The end of input aborts a run that is active and \
        ends the process.\n\n\
        Exit codes: 0 the input ended, 1 it could not be read, 2 refused before it ran, 3 a mistake in the \
        operator's file, 130 interrupted.\n\n\
        Example: cofferdam rpc --config cofferdam.toml"
)]
pub(crate) struct RpcArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
}

/// Offer the plugins' tools to an MCP client.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The client's calls pass the same hooks, limits and grants as an agent's. Nobody is asked: a \
        call that needs an approval is refused. The bill of each call is in the result's _meta, under \
        cofferdam/call. On SIGHUP the file is read anew and clients are told that the list of tools \
        changed.\n\n\
        Exit codes: 0 the client went away or the server was interrupted, 1 failed, 2 refused before it ran, \
        3 a mistake in the operator's file.\n\n\
        Examples:\n  \
        cofferdam mcp --config cofferdam.toml\n  \
        cofferdam mcp --config cofferdam.toml --http 127.0.0.1:8080"
)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Serve streamable HTTP at http://ADDRESS/mcp instead of standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Allow an address that other machines reach. There is no log-in: whoever reaches it may call.
    #[arg(long, requires = "http")]
    pub(crate) allow_remote: bool,
    /// Answer requests for this host name, such as tools.example.com; may be repeated.
    #[arg(long, value_name = "HOST", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    /// Answer web pages of this origin, such as http://localhost:6274; may be repeated. Without it
    /// no web page is answered.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub(crate) allow_origin: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value in force and where it came from: the file, the environment, the command line.
    #[command(after_help = "What may be a credential is not shown.\n\n\
            Examples:\n  \
            cofferdam config show --changed\n  \
            COFFERDAM_AGENT_MAX_TURNS=20 cofferdam config show --json")]
    Show(ConfigShowArgs),
    /// List every key: what it takes, what holds without it, the variable that sets it.
    #[command(after_help = "Example: cofferdam config keys | grep limits")]
    Keys(ConfigKeysArgs),
}

/// Show every value in force.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigShowArgs {
    /// The operator's file; cofferdam.toml if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) over: OverArgs,
    /// Only what somebody set.
    #[arg(long)]
    pub(crate) changed: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List every key.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigKeysArgs {
    /// Print the page of the documentation.
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions, the latest last.
    #[command(after_help = "Example: cofferdam session list --json")]
    List(SessionListArgs),
    /// Show what happened in a session, as `run` shows it.
    #[command(after_help = "Example: cofferdam session show latest")]
    Show(SessionArgs),
    /// Export a session: one HTML page with the time line of its calls, Markdown, or JSON.
    #[command(after_help = "The HTML page needs nothing else: no network and no other file.\n\n\
            Examples:\n  \
            cofferdam session export latest -o session.html\n  \
            cofferdam session export latest --format json | jq '.messages[-1]'")]
    Export(SessionExportArgs),
    /// Play a session again, without network and without plugins, and see whether the loop still
    /// does the same; or make one call of it again in the sandbox.
    #[command(
        after_help = "With --call, the plugin must be the file of the session, by its digest. What it may \
            touch comes from the operator's file, not from the session; what the call did outside, \
            it does again.\n\n\
            Exit codes: 0 the same, 1 something differs, 2 refused.\n\n\
            Examples:\n  \
            cofferdam session replay latest\n  \
            cofferdam session replay latest --call c1 --config cofferdam.toml"
    )]
    Replay(SessionReplayArgs),
}

/// Play a session again.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionReplayArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Make this call again in the sandbox, with its arguments, and compare.
    #[arg(long, value_name = "CALL")]
    pub(crate) call: Option<String>,
}

/// Export a session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionExportArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Where to write it; standard output if absent.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What to write; by default what the ending of FILE says, else Markdown.
    #[arg(long)]
    pub(crate) format: Option<ExportFormat>,
}

/// What a session is exported as.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// One page for a browser.
    Html,
    /// Text for people.
    Markdown,
    /// One document for programs.
    Json,
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
    /// Write a project of your own, with a test, that builds as it is.
    #[command(after_help = "Prints the commands that build it, test it and let it in.\n\n\
            Examples:\n  \
            cofferdam plugin new greet --lang rust\n  \
            cofferdam plugin new no-secrets --lang python --hook")]
    New(NewArgs),
    /// Show what a file is, exports, imports and wants, and which tools it offers.
    #[command(
        after_help = "Its tools are asked for in the sandbox, without any grant; with --no-run nothing of it \
            runs.\n\nExit codes: 0 shown, 1 shown, and it does not tell its tools, 2 it is no plugin.\n\n\
            Example: cofferdam plugin inspect calc.wasm --json"
    )]
    Inspect(InspectArgs),
    /// Write the contract's WIT files into a folder, to build a plugin against.
    #[command(after_help = "Example: cofferdam plugin wit wit/deps/cofferdam")]
    Wit(WitArgs),
    /// Put a component on the operator's list, with its digest.
    #[command(
        after_help = "Shows what it exports, imports and asks for, and on an update what grew. Nothing that it \
            asks for is granted unless you say so.\n\n\
            A component of a registry is pinned by its digest and kept in .cofferdam/plugins beside the \
            operator's file.\n\n\
            Exit codes: 0 allowed, 2 not allowed.\n\n\
            Examples:\n  \
            cofferdam plugin allow fetch.wasm\n  \
            cofferdam plugin allow fetch.wasm --yes --grant 'http=GET https://example.com/'\n  \
            cofferdam plugin allow oci://registry.example.com/tools/fetch:1.0.0"
    )]
    Allow(AllowArgs),
    /// Write name, version and wanted grants into a component.
    #[command(after_help = "The manifest is a file such as\n\n  \
            name = \"fetch\"\n  version = \"1.0.0\"\n  description = \"Gets pages as text.\"\n\n  \
            [[wants]]\n  grant = \"http\"\n  value = \"GET https://example.com/\"\n  \
            reason = \"the pages that it gets\"\n\n\
            Example: cofferdam plugin pack fetch.wasm --manifest plugin.toml")]
    Pack(PackArgs),
    /// Run scripted cases of a plugin in the sandbox, HTTP answered from the script.
    #[command(after_help = "A case is\n\n  \
            [[case]]\n  name = \"adds\"\n  tool = \"calc\"\n  arguments = { expressions = [\"1 + 1\"] }\n  \
            expect.contains = [\"2\"]\n  expect.at_most = { fuel = 10_000_000 }\n\n\
            host/docs/authors.md has all that it may say.\n\n\
            Exit codes: 0 all pass, 1 some fail, 2 refused before any ran.\n\n\
            Example: cofferdam plugin test greet.wasm cases.toml --watch")]
    Test(TestArgs),
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

/// Write a project of your own.
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The plugin's name: lower-case words, joined by `-`. Its folder is made here.
    pub(crate) name: String,
    /// What it is written in.
    #[arg(long)]
    pub(crate) lang: Lang,
    /// Make a hook before calls instead of a tool.
    #[arg(long)]
    pub(crate) hook: bool,
}

/// What a plugin is written in.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Lang {
    /// With the SDK, whose source comes along.
    Rust,
    /// JavaScript, with componentize-js.
    #[value(alias = "javascript")]
    Js,
    /// Python, with componentize-py.
    #[value(alias = "py")]
    Python,
}

/// Put a component on the operator's list.
#[derive(Debug, clap::Args)]
pub(crate) struct AllowArgs {
    /// The component: a file, or oci://HOST/REPOSITORY:TAG where a registry has it.
    pub(crate) component: PathBuf,
    /// The operator's file; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = OPERATORS_FILE)]
    pub(crate) config: PathBuf,
    /// Its name on the list; that of the entry with this path, or the plugin's own, if absent.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Grant something, such as files=./data:/data:read-only; may be repeated.
    #[arg(long = "grant", value_name = "KEY=VALUE")]
    pub(crate) grants: Vec<String>,
    /// Grant all that it asks for.
    #[arg(long)]
    pub(crate) grant_wanted: bool,
    /// Ask nothing: allow the component, with the grants that are there and those given here.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Write name, version and wanted grants into a component.
#[derive(Debug, clap::Args)]
pub(crate) struct PackArgs {
    /// The component.
    pub(crate) file: PathBuf,
    /// What it says of itself.
    #[arg(long, value_name = "FILE", default_value = "plugin.toml")]
    pub(crate) manifest: PathBuf,
    /// Where the packed component goes; into the same file if absent.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Run scripted cases.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// A component, as .wasm or .wat.
    pub(crate) file: PathBuf,
    /// The cases.
    #[arg(default_value = "cases.toml")]
    pub(crate) cases: PathBuf,
    /// Run only cases whose names hold this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Write golden files that are missing or differ.
    #[arg(long)]
    pub(crate) bless: bool,
    /// Run again whenever the component or the cases change, until interrupted.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print one line of JSON for each case.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prove that limits and grants bite.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The operator's file; cofferdam.toml if it is there.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) over: OverArgs,
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

/// Show what a file is, exports, imports and wants.
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// A component, as .wasm or .wat.
    pub(crate) file: PathBuf,
    /// Run nothing of it: its tools stay unknown.
    #[arg(long)]
    pub(crate) no_run: bool,
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
    #[command(flatten)]
    pub(crate) over: OverArgs,
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

impl OverArgs {
    /// The layers above the operator's file.
    pub(crate) fn layers(&self) -> Layers {
        Layers::of_process(self.set.clone())
    }
}
