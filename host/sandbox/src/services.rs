//! What the host does for a guest, one file per interface, free of any version of the contract.
//! Each looks at the grants first and writes what it did to the call's receipt.

pub(crate) mod cancellation;
pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod fs;
pub(crate) mod http;
pub(crate) mod kv;
pub(crate) mod log;
pub(crate) mod progress;
pub(crate) mod random;
pub(crate) mod secret;
pub(crate) mod stdio;
