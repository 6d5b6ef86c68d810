//! OpenAI Chat Completions, and what servers that call themselves compatible make of it.

mod calls;
pub(crate) mod decode;
mod dialect;
pub(crate) mod request;

pub use dialect::Dialect;
