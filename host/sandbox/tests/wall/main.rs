//! The wall from the inside: guests that behave, guests that do not, and everything that they may not
//! reach. One binary, because linking the engine takes longer than most of these tests.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::print_stderr)]

mod calls;
mod corpus;
mod ending;
mod files;
#[path = "../guest/mod.rs"]
mod guest;
mod http;
mod imports;
mod limits;
mod neighbours;
mod receipts;
mod secrets;
mod seeds;
mod support;
