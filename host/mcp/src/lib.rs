//! The tools of an agent as a server of the Model Context Protocol: the client's model asks, and its
//! calls pass the same preparation, validation, hooks, limits and receipts as those of a run.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use cofferdam_app::{Config, Options, assemble};
//! use cofferdam_mcp::{NoModel, Server, serve};
//! use std::sync::Arc;
//!
//! let config = Config::read("cofferdam.toml".as_ref())?;
//! let options = Options { model: Some(Arc::new(NoModel)), ..Options::default() };
//! let server = Server::new(assemble(&config, options).await?.agent);
//! serve(server, tokio::io::stdin(), tokio::io::stdout(), Default::default()).await?;
//! # Ok(())
//! # }
//! ```

mod http;
mod model;
mod progress;
mod server;
mod streams;
mod wire;

pub use http::{Access, serve_http};
pub use model::NoModel;
pub use server::Server;
pub use streams::{ServeError, serve};
