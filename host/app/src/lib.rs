//! The composition root of Cofferdam, and what an embedder takes: an operator's file made into an
//! agent with sandboxed tools.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use cofferdam_app::{Config, Options, assemble};
//!
//! let config = Config::read("cofferdam.toml".as_ref())?;
//! let assembled = assemble(&config, Options::default()).await?;
//! let end = assembled.agent.prompt("What does this project do?").await?;
//! for message in &end.messages {
//!     println!("{}", cofferdam_app::json::message(message));
//! }
//! # Ok(())
//! # }
//! ```

pub mod allow;
pub mod approve;
pub mod assemble;
pub mod cases;
pub mod config;
pub mod direct;
pub mod doctor;
pub mod json;
pub mod manifest;
mod model;
pub mod oci;
pub mod offer;
pub mod patterns;
pub mod places;
pub mod receipt;
pub mod registry;
pub mod reload;
pub mod rpc;
pub mod scaffold;
pub mod session;

pub use assemble::{AssembleError, Assembled, Options, assemble};
pub use config::{Config, ConfigError};
pub use registry::{Pinning, Registry, RegistryError};
