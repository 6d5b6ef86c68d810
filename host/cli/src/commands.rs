//! The commands, one file each.

mod plugin_call;
mod plugin_inspect;
mod plugin_wit;
mod run;

use crate::args::{Args, Command, PluginCommand};
use crate::exit::Exit;

/// Carries out the command.
pub(crate) async fn run(args: Args) -> anyhow::Result<Exit> {
    match args.command {
        Command::Run(args) => run::run(args).await,
        Command::Plugin(PluginCommand::Inspect(args)) => plugin_inspect::run(&args),
        Command::Plugin(PluginCommand::Wit(args)) => plugin_wit::run(&args),
        Command::Plugin(PluginCommand::Call(args)) => plugin_call::run(args).await,
    }
}
