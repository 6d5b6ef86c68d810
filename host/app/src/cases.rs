//! `cases.toml`, the author's file: calls of a plugin with what they must come to. Each runs behind
//! the wall of a real call; HTTP is answered from the file, so nothing leaves the machine.

mod check;
mod read;
mod run;
mod script;

pub use read::{Case, Cases, CasesError};
pub use run::{Bench, COMPILE_SECONDS, Report};
