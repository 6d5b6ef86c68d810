//! The contract as the engine sees it: one file for each version, bindings and conversions only.

pub(crate) mod v0_1;
