//! The binary `cofferdam`. Only this crate prints, and only this file exits.

mod approver;
mod args;
mod commands;
mod exit;
mod interrupts;
mod keyboard;
mod listen;
mod observe;
mod render;
mod terminal;

use clap::Parser;
use render::Output;
use std::process::ExitCode;

/// See `Cargo.toml`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(problem) => {
            Output::Err.line(&format!("error: start the runtime: {problem}"));
            return exit::FAILED.into();
        }
    };
    let exit = runtime.block_on(commands::run(args)).unwrap_or_else(|problem| {
        Output::Err.line(&format!("error: {problem:#}"));
        exit::of(&problem)
    });
    // A blocking read of standard input must not keep the process alive.
    runtime.shutdown_background();
    exit.into()
}
