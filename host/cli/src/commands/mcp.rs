//! `cofferdam mcp`: the plugins' tools for an MCP client, on standard input and output or on HTTP.

use super::open::open;
use crate::args::{FileArgs, McpArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::listen::listen;
use crate::observe::Observing;
use crate::render::Output;
use cofferdam_agent::{AbortSignal, Agent};
use cofferdam_app::Options;
use cofferdam_mcp::{Access, NoModel, Server};
use std::sync::Arc;

pub(crate) async fn run(args: McpArgs) -> anyhow::Result<Exit> {
    let listener = match args.http {
        Some(address) => {
            Some(listen(address, args.allow_remote, "--allow-remote").await.refused()?)
        }
        None => None,
    };
    let observing = Observing::begin(&args.observe, Some(&args.metrics)).await.refused()?;
    let server = Server::new(tools(&args.file, &observing).await?);
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
        () = reload_for_ever(&server, &args.file, &observing) => {}
    }
    Ok(DONE)
}

/// The agent whose tools are offered. It has no model: the client is the one who asks.
async fn tools(file: &FileArgs, observing: &Observing) -> anyhow::Result<Agent> {
    let options = Options { model: Some(Arc::new(NoModel)), ..Options::default() };
    Ok(open(file, None, observing, options).await?.agent)
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
async fn reload_for_ever(server: &Server, file: &FileArgs, observing: &Observing) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    loop {
        hangups.recv().await;
        match tools(file, observing).await {
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
async fn reload_for_ever(_: &Server, _: &FileArgs, _: &Observing) {
    std::future::pending().await
}
