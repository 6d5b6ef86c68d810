//! A server on streamable HTTP, at `/mcp`. What a page of the web may reach is decided by the headers
//! `Host` and `Origin`: a page that tricks the browser with a name of its own for this machine is
//! turned away.

use crate::Server;
use bytes::Bytes;
use cofferdam_agent::AbortSignal;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at the same time; others wait.
const CONNECTIONS_MAX: usize = 512;
/// How long the system gets after it could not accept a connection, for example because the process
/// has no file handle left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Who is answered. By default: whoever reaches the listener by its own address or as this machine,
/// and no page of the web.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// More host names, with or without a port, that `Host` may have.
    pub hosts: Vec<String>,
    /// The origins, such as `http://localhost:6274`, that `Origin` may have where there is one.
    pub origins: Vec<String>,
}

type Mcp = StreamableHttpService<Server, LocalSessionManager>;
type Body = BoxBody<Bytes, Infallible>;

/// Serves until `stop` is set, which ends every session.
pub async fn serve_http(
    server: Server,
    listener: TcpListener,
    access: Access,
    stop: AbortSignal,
) -> io::Result<()> {
    let config = config(access, listener.local_addr()?, stop.clone());
    let mcp = Mcp::new(move || Ok(server.clone()), Arc::default(), config);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let Some((place, accepted)) = stop.run_until_cancelled(accepted).await else {
            return Ok(());
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let connection = connection(mcp.clone(), stream);
        let stop = stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(connection).await;
            drop(place);
        });
    }
}

fn config(access: Access, address: SocketAddr, stop: AbortSignal) -> StreamableHttpServerConfig {
    let config = StreamableHttpServerConfig::default();
    let own = [address.ip().to_string()];
    let hosts = [config.allowed_hosts.clone(), own.into(), access.hosts].concat();
    config
        .with_allowed_hosts(hosts)
        .with_allowed_origins(access.origins)
        .enforce_origin_validation()
        .with_cancellation_token(stop)
}

async fn connection(mcp: Mcp, stream: TcpStream) {
    let service = service_fn(move |request| {
        let mcp = mcp.clone();
        async move { Ok::<_, Infallible>(answer(&mcp, request).await) }
    });
    // A connection that breaks is the client's affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(mcp: &Mcp, request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        "/mcp" => mcp.handle(request).await,
        _ => text(StatusCode::NOT_FOUND, "There is nothing here: MCP is at /mcp.\n"),
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed());
    *response.status_mut() = status;
    response
}
