//! Models for the agent loop. Each knows one wire, or none, and all answer through
//! [`cofferdam_agent::model::Model`]: the loop never knows which it talks to.
//!
//! ```
//! use cofferdam_providers::{CredentialSource, Endpoint, Remote, Wire};
//!
//! let endpoint = Endpoint {
//!     credential: CredentialSource::File("/run/secrets/model-key".into()),
//!     max_output_tokens: Some(8_192),
//!     ..Endpoint::new(Wire::Anthropic, "claude-sonnet-5")
//! };
//! let model = Remote::new(endpoint).expect("an endpoint that can be talked to");
//! ```
//!
//! The walk of one call: `history` makes the conversation one that the provider takes, a wire's
//! `request` writes it, `http` sends it until it is answered, `events` frames the answer, `reader`
//! takes event after event to the wire's `decode`, which writes into a `draft`, and the draft makes
//! steps and the last message of it.

pub mod client;
pub mod record;
pub mod scripted;

mod anthropic;
mod chat;
mod credential;
mod draft;
mod endpoint;
mod events;
mod gemini;
mod history;
mod http;
mod ids;
mod mask;
mod reader;
mod remote;
mod responses;
mod tls;
mod utf8;
mod wire;

pub use chat::Dialect;
pub use credential::{CredentialError, CredentialSource};
pub use endpoint::{Endpoint, Header, Patience, Wire};
pub use http::EndpointError;
pub use reader::read_body;
pub use remote::Remote;
