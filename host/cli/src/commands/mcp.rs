//! `cofferdam mcp`: the plugins' tools for an MCP client, on standard input and output or on HTTP.

use super::open::{note, open};
use crate::args::{FileArgs, McpArgs};
use crate::exit::{DONE, Exit, Refused as _};
use crate::listen::listen;
use crate::observe::Observing;
use crate::render::Output;
use cofferdam_agent::tool::Declaration;
use cofferdam_agent::{AbortSignal, Agent};
use cofferdam_app::Options;
use cofferdam_app::reload::{Reload, Rights};
use cofferdam_mcp::{Access, NoModel, Server};
use std::sync::Arc;
use std::time::Duration;

pub(crate) async fn run(args: McpArgs) -> anyhow::Result<Exit> {
    let listener = match args.http {
        Some(address) => {
            Some(listen(address, args.allow_remote, "--allow-remote").await.refused()?)
        }
        None => None,
    };
    let observing = Observing::begin(&args.observe, Some(&args.metrics)).await.refused()?;
    let watched = Watched::open(&args.file, &observing).await?;
    let server = Server::new(watched.agent.clone());
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
        () = reload_for_ever(&server, &args.file, &observing, watched) => {}
    }
    Ok(DONE)
}

/// The agent whose tools are offered, and whoever watches over its files. It has no model: the client is
/// the one who asks.
struct Watched {
    agent: Agent,
    reload: Arc<Reload>,
}

impl Watched {
    async fn open(file: &FileArgs, observing: &Observing) -> anyhow::Result<Self> {
        let reload = Reload::new(note);
        let (model, watched) = (Some(Arc::new(NoModel) as _), Some(reload.clone()));
        let options = Options { model, reload: watched, ..Options::default() };
        Ok(Self { agent: open(file, None, observing, options).await?.agent, reload })
    }

    /// What the tools are as clients know them.
    fn tools(&self) -> Arc<Vec<Arc<Declaration>>> {
        self.agent.settings().toolset.declarations().clone()
    }
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

/// How often the files are looked at while nobody calls. A call looks by itself.
const LOOK: Duration = Duration::from_secs(1);

/// Tells clients when a changed file changed the tools, and reads everything anew on SIGHUP. A file that
/// cannot be used changes nothing.
async fn reload_for_ever(
    server: &Server,
    file: &FileArgs,
    observing: &Observing,
    mut watched: Watched,
) {
    let mut known = watched.tools();
    let mut hangups = Hangups::listen();
    loop {
        tokio::select! {
            () = hangups.next() => match Watched::open(file, observing).await {
                Ok(anew) => {
                    watched = anew;
                    note("the configuration was read anew");
                    known = watched.tools();
                    server.replace(watched.agent.clone()).await;
                }
                Err(problem) => {
                    Output::Err.line(&format!("error: the old configuration stays: {problem:#}"));
                }
            },
            () = tokio::time::sleep(LOOK) => {
                if let Some(settings) = watched.reload.look(Rights::Wait).await {
                    watched.agent.set_settings(settings);
                }
                let tools = watched.tools();
                if tools != known {
                    known = tools;
                    server.replace(watched.agent.clone()).await;
                }
            }
        }
    }
}

/// Each SIGHUP, where there is such a thing.
struct Hangups(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

impl Hangups {
    #[cfg(unix)]
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self(signal(SignalKind::hangup()).ok())
    }

    #[cfg(not(unix))]
    fn listen() -> Self {
        Self()
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(hangups) = &mut self.0
            && hangups.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
