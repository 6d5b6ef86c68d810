//! Proof that a compiler works: not that its files are there, but that they make programs.
//!
//! Besides linking for each target it builds and runs a program of this machine that uses a
//! procedural macro: guests' dependencies have them, and the compiler must load what this
//! machine's linker makes.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{TARGETS, clear};
use crate::process;

const GUEST: &str = "fn main() { println!(\"{:?}\", std::fs::metadata(\"x\").is_ok()); }\n";

const MACRO: &str = "extern crate proc_macro;
#[proc_macro]
pub fn one(_: proc_macro::TokenStream) -> proc_macro::TokenStream {
    proc_macro::Literal::u8_suffixed(1).to_string().parse().unwrap()
}
";

const USES_MACRO: &str = "fn main() { assert_eq!(one::one!(), 1); }\n";

/// Builds the small programs in a directory of their own, which goes if all is well.
pub(super) fn test(bin: &Path, dir: &Path) -> Result<()> {
    clear(dir)?;
    fs::create_dir_all(dir)?;
    fs::write(dir.join("guest.rs"), GUEST)?;
    fs::write(dir.join("one.rs"), MACRO)?;
    fs::write(dir.join("uses.rs"), USES_MACRO)?;
    build(bin, dir).context("the compiler does not work")?;
    clear(dir)
}

fn build(bin: &Path, dir: &Path) -> Result<()> {
    let rustc = |args: &[&str]| {
        let mut rustc = Command::new(bin.join("rustc"));
        rustc.current_dir(dir).args(["--edition", "2021"]).args(args);
        process::read(&mut rustc)
    };
    for target in TARGETS {
        rustc(&["guest.rs", "--target", target, "-o", target])?;
    }
    rustc(&["one.rs", "--crate-type", "proc-macro", "-C", "prefer-dynamic"])?;
    let program = dir.join(format!("uses{EXE_SUFFIX}"));
    rustc(&["uses.rs", "--extern", "one", "-L", "."])?;
    process::read(&mut Command::new(program))?;
    Ok(())
}
