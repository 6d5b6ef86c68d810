//! Anthropic Messages.

pub(crate) mod decode;
pub(crate) mod request;
