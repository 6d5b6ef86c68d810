//! What is told of an agent's run, in each of the three ways, and what is never told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod logs;
mod metrics;
mod otlp;
mod support;
