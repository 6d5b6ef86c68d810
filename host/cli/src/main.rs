//! The binary `cofferdam`.
fn main() {}
