//! A server on a pair of streams, such as standard input and output: one message a line, one client.

use crate::Server;
use cofferdam_agent::AbortSignal;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};

/// The server could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client did not greet as the protocol asks.
    #[error("greet the client: {0}")]
    Greeting(#[source] Box<ServerInitializeError>),
    /// The host's own task failed.
    #[error("serve the client: {0}")]
    Task(#[from] tokio::task::JoinError),
}

/// Serves until the input ends or `stop` is set. Calls that run then are given a few seconds, and
/// are aborted after them.
pub async fn serve<R, W>(
    server: Server,
    input: R,
    output: W,
    stop: AbortSignal,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    match serve_server_with_ct(server, (input, output), stop).await {
        Ok(running) => {
            running.waiting().await?;
            Ok(())
        }
        // Nobody ever spoke, or the process was told to stop before somebody did.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(problem) => Err(ServeError::Greeting(Box::new(problem))),
    }
}
