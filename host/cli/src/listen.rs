//! Addresses that the operator names: those that other machines reach need a word.

use anyhow::{Context as _, bail};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Listens on an address; `flag` is what allows one that is not this machine's own.
pub(crate) async fn listen(
    address: SocketAddr,
    allow_remote: bool,
    flag: &str,
) -> anyhow::Result<TcpListener> {
    if !address.ip().is_loopback() && !allow_remote {
        bail!(
            "{address} can be reached from other machines, and there is no log-in: listen on \
             127.0.0.1:{}, or say {flag}",
            address.port()
        );
    }
    TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))
}
