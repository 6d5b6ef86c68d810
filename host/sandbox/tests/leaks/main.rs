//! What is left when guests are gone: nothing. In a process of its own, one test at a time, because
//! threads, open files and memory are counted for the whole of it.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::print_stderr)]
// Each test has a thread and an executor of its own, so the lock blocks nobody who could give it back.
#![allow(clippy::await_holding_lock)]

mod census;
mod corpus;
#[path = "../wall/ending.rs"]
mod ending;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../guest/mod.rs"]
mod guest;
mod storm;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../wall/support.rs"]
mod support;
