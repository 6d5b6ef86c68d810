//! `cofferdam mcp`: the plugins' tools for an MCP client, on standard input and output or on HTTP.

use super::open::open;
use crate::args::{FileArgs, McpArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::render::Output;
use anyhow::{Context as _, bail};
use cofferdam_agent::{AbortSignal, Agent};
use cofferdam_app::Options;
use cofferdam_mcp::{Access, NoModel, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

pub(crate) async fn run(args: McpArgs) -> anyhow::Result<Exit> {
    let listener = match args.http {
        Some(address) => Some(listen(address, args.allow_remote).await.refused()?),
        None => None,
    };
    let server = Server::new(tools(&args.file).await?);
    let stop = AbortSignal::new();
    let serving = async {
        match listener {
            None => {
                let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
                cofferdam_mcp::serve(server.clone(), input, output, stop.clone()).await?;
            }
            Some(listener) => {
                let address = listener.local_addr()?;
                Output::Err.line(&format!("listening on http://{address}/mcp"));
                let access =
                    Access { hosts: args.allow_host.clone(), origins: args.allow_origin.clone() };
                cofferdam_mcp::serve_http(server.clone(), listener, access, stop.clone()).await?;
            }
        }
        anyhow::Ok(())
    };
    tokio::select! {
        served = serving => served?,
        () = interrupted(&stop) => {}
        () = reload_for_ever(&server, &args.file) => {}
    }
    Ok(DONE)
}

/// The agent whose tools are offered. It has no model: the client is the one who asks.
async fn tools(file: &FileArgs) -> anyhow::Result<Agent> {
    let options = Options { model: Some(Arc::new(NoModel)), ..Options::default() };
    Ok(open(file, None, options).await?.agent)
}

async fn listen(address: SocketAddr, allow_remote: bool) -> anyhow::Result<TcpListener> {
    if !address.ip().is_loopback() && !allow_remote {
        bail!(
            "{address} can be reached from other machines, and there is no log-in: listen on \
             127.0.0.1:{}, or say --allow-remote",
            address.port()
        );
    }
    TcpListener::bind(address).await.with_context(|| format!("listen on {address}"))
}

/// The first interrupt stops the server, which ends its calls; a second one does not wait for that.
async fn interrupted(stop: &AbortSignal) {
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            return std::future::pending().await;
        }
        if stop.is_cancelled() {
            return;
        }
        stop.cancel();
    }
}

/// Reads the file anew on each SIGHUP. A file that cannot be used changes nothing.
#[cfg(unix)]
async fn reload_for_ever(server: &Server, file: &FileArgs) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    loop {
        hangups.recv().await;
        match tools(file).await {
            Ok(agent) => {
                server.replace(agent).await;
                Output::Err.line("note: the configuration was read anew");
            }
            Err(problem) => {
                Output::Err.line(&format!("error: the old configuration stays: {problem:#}"));
            }
        }
    }
}

#[cfg(not(unix))]
async fn reload_for_ever(_: &Server, _: &FileArgs) {
    std::future::pending().await
}
