//! The commands, one file each.

mod compile;
mod config;
mod doctor;
mod mcp;
mod open;
mod plugin_allow;
mod plugin_call;
mod plugin_inspect;
mod plugin_new;
mod plugin_pack;
mod plugin_test;
mod plugin_wit;
mod rpc;
mod run;
mod session;
mod session_export;
mod session_list;
mod session_replay;
mod session_show;

use crate::args::{Args, Command, ConfigCommand, OPERATORS_FILE, PluginCommand, SessionCommand};
use crate::exit::Exit;
use cofferdam_app::config::{Layers, Origin, effective};
use cofferdam_app::{Config, ConfigError, places};
use cofferdam_sandbox::{CompilerCommand, SandboxConfig};
use std::path::Path;

/// Carries out the command.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Run(args) => run::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Rpc(args) => rpc::run(args).await,
        Command::Mcp(args) => mcp::run(args).await,
        Command::Compile => compile::run(),
        Command::Config(ConfigCommand::Show(args)) => config::show(&args),
        Command::Config(ConfigCommand::Keys(args)) => config::keys(&args),
        Command::Plugin(PluginCommand::New(args)) => plugin_new::run(&args),
        Command::Plugin(PluginCommand::Inspect(args)) => plugin_inspect::run(&args).await,
        Command::Plugin(PluginCommand::Allow(args)) => plugin_allow::run(&args).await,
        Command::Plugin(PluginCommand::Pack(args)) => plugin_pack::run(&args),
        Command::Plugin(PluginCommand::Test(args)) => plugin_test::run(&args).await,
        Command::Plugin(PluginCommand::Wit(args)) => plugin_wit::run(&args),
        Command::Plugin(PluginCommand::Call(args)) => plugin_call::run(args).await,
        Command::Session(SessionCommand::List(args)) => session_list::run(&args),
        Command::Session(SessionCommand::Show(args)) => session_show::run(&args),
        Command::Session(SessionCommand::Export(args)) => session_export::run(&args),
        Command::Session(SessionCommand::Replay(args)) => session_replay::run(&args).await,
    }
}

/// The operator's file that was named, or the usual one if it is there. What is set above a file holds
/// without one too.
fn operators_file(named: Option<&Path>, layers: &Layers) -> Result<Option<Config>, ConfigError> {
    let usual = Path::new(OPERATORS_FILE);
    if let Some(path) = named.or_else(|| usual.exists().then_some(usual)) {
        return Config::load(path, layers).map(Some);
    }
    let bare = Config::layered("", Path::new(""), layers)?;
    let is_set = effective(Some(&bare)).iter().any(|row| row.origin != Origin::Default);
    Ok(is_set.then_some(bare))
}

/// The sandbox of a command: compiled code is kept, and compiled in a process of its own.
fn sandbox_config() -> SandboxConfig {
    SandboxConfig {
        cache: places::cache(),
        compiler: Some(CompilerCommand::this_program(["compile"])),
        ..SandboxConfig::default()
    }
}
