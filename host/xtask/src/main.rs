//! `cargo xtask`: what this repository does besides building the host.
//!
//! One file per command; `toolchain` finds or installs the compiler for the guests. The
//! host's own code never depends on this package.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a command line tool: it talks on standard error, and a table is its output"
)]

mod bench;
mod contract;
mod demo;
mod docs;
mod guests;
mod lint;
mod lock;
mod metadata;
mod process;
mod registry;
mod repo;
mod scripted;
mod test;
mod toolchain;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use repo::Repo;

/// Set-up, demo, tests and lints of the Cofferdam repository.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the sample plugins into target/plugins, with a toolchain found or installed for it.
    ///
    /// Each in Rust is built twice: by plain cargo for wasm32-wasip2 (target/plugins/NAME.wasm) and by
    /// cargo-component (target/plugins/cargo-component/NAME.wasm). Those in JavaScript need Node 20
    /// and npm, those in Python need Python 3.9; without them they are left out, and it is said.
    #[command(after_help = "Examples: cargo xtask guests --only calc --plain\n\
            \x20         cargo xtask guests --lang javascript --lang python\n\n\
            COFFERDAM_GUEST_ROUTE=auto|rustup|debian chooses where the toolchain comes from.")]
    Guests(guests::Options),
    /// Do all the set-up, then run an agent with sandboxed tools over this repository.
    #[command(after_help = "Example: cargo xtask demo")]
    Demo,
    /// Do all the set-up, then run every test of the host and of the plugins.
    #[command(after_help = "Example: cargo xtask test -- --test scenarios\n\n\
            What follows `--` goes to the host's `cargo test`.")]
    Test(Forwarded),
    /// Write host/docs/contract.md, the reference of the contract, from the files in wit/.
    Contract,
    /// Write the pages of the documentation that come from the code: host/docs/config.md.
    #[command(after_help = "Example: cargo xtask docs")]
    Docs,
    /// Check format, clippy and documentation of the host and of the plugins.
    #[command(after_help = "Example: cargo xtask lint")]
    Lint,
    /// Measure what targets are set on, and print figure, target and baseline as one table.
    ///
    /// Questions: fresh, batch, languages, abort, neighbours, sleepers, kernels, processes,
    /// reference. host/docs/speed.md says what they mean. Let the machine do nothing else.
    #[command(after_help = "Examples: cargo xtask bench\n\
            \x20         cargo xtask bench fresh abort --quick\n\
            \x20         cargo xtask bench --criterion")]
    Bench(bench::Options),
}

/// Arguments for the cargo command behind ours.
#[derive(Args)]
struct Forwarded {
    /// Arguments for cargo.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = Repo::here().and_then(|repo| match cli.command {
        Command::Guests(options) => guests::run(&repo, &options).map(|()| ExitCode::SUCCESS),
        Command::Contract => contract::run(&repo).map(|()| ExitCode::SUCCESS),
        Command::Demo => demo::run(&repo),
        Command::Test(rest) => test::run(&repo, &rest.args).map(|()| ExitCode::SUCCESS),
        Command::Docs => docs::run(&repo).map(|()| ExitCode::SUCCESS),
        Command::Lint => lint::run(&repo).map(|()| ExitCode::SUCCESS),
        Command::Bench(options) => bench::run(&repo, &options).map(|()| ExitCode::SUCCESS),
    });
    done.unwrap_or_else(|error| {
        say(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Tells the person what is going on, apart from what the commands below print.
fn say(text: &str) {
    eprintln!("xtask: {text}");
}
