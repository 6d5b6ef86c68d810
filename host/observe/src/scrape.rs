//! A small server for whoever reads the figures: `GET /metrics`, and nothing else.

use crate::metrics::Metrics;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at the same time; others wait.
const CONNECTIONS_MAX: usize = 16;
/// How long a client may take for the head of a request, also between two requests.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// How long the system gets after it could not accept a connection, for example because the process
/// has no file handle left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// By which names a server may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hosts {
    /// By address or as `localhost`. A page of the web that tricks a browser with a name of its own
    /// for this machine is turned away.
    #[default]
    Addresses,
    /// By any name, for a server that other machines shall reach.
    Any,
}

/// Serves the figures until the future is dropped.
pub async fn serve_metrics(
    metrics: Arc<Metrics>,
    listener: TcpListener,
    hosts: Hosts,
) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Dropped with the future, and all connections with it.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let metrics = metrics.clone();
        connections.spawn(async move {
            connection(metrics, hosts, stream).await;
            drop(place);
        });
    }
}

async fn connection(metrics: Arc<Metrics>, hosts: Hosts, stream: TcpStream) {
    let service = service_fn(move |request| {
        let answer = answer(&metrics, hosts, &request);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    // A connection that breaks is the client's affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(metrics: &Metrics, hosts: Hosts, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if hosts == Hosts::Addresses && !is_address(host) {
        return say(StatusCode::FORBIDDEN, "Ask for this machine by its address.\n");
    }
    if request.uri().path() != "/metrics" {
        return say(StatusCode::NOT_FOUND, "There is nothing here: the figures are at /metrics.\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = say(StatusCode::METHOD_NOT_ALLOWED, "Only GET is answered.\n");
        response.headers_mut().insert(ALLOW, http::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let mut response = say(StatusCode::OK, metrics.text());
    let kind = http::HeaderValue::from_static(prometheus_text::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn say(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response
}

/// Whether a name in `Host` cannot have been chosen by somebody else's page.
fn is_address(host: &str) -> bool {
    let Some(host) = format!("http://{host}/").parse::<Uri>().ok() else { return false };
    let host = host.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn only_addresses_and_this_machine_are_hosts() {
        for host in ["127.0.0.1", "127.0.0.1:9464", "[::1]:9464", "localhost:9464", "LOCALHOST"] {
            assert!(is_address(host), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example:9464", "localhost.evil"] {
            assert!(!is_address(host), "{host}");
        }
    }
}
