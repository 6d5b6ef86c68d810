//! The built binary and the built plugins, from the outside: text in, text out.

mod calls;
mod refusals;
mod runs;
mod unruly;
