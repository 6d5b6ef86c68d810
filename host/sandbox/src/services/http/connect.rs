//! From a granted origin to a connection with an address that was looked at.
//!
//! The name is resolved once and the connection goes to the address that was decided on, so that
//! a second answer of the name server cannot lead elsewhere.

use super::Meter;
use crate::grants::http::{HttpRule, Origin};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use wasmtime_wasi_http::Error;

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to the origin's host, at the first of the addresses that the rule allows and that
/// answers.
pub(super) async fn connect(
    rule: &HttpRule,
    origin: &Origin,
    patience: Instant,
    meter: &Meter,
) -> Result<Box<dyn Stream>, Error> {
    let addresses = resolve(rule, origin, patience, meter).await?;
    let secure = async {
        let stream = connect_first(&addresses).await?;
        // Small requests should not wait for company.
        let _ = stream.set_nodelay(true);
        if !origin.https {
            return Ok(Box::new(stream) as Box<dyn Stream>);
        }
        let name =
            ServerName::try_from(origin.host.clone()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let tls = TLS.clone().ok_or(Error::ConfigurationError)?;
        let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| {
            meter.refuse(format!("no secure connection to {origin}: {error}"));
            Error::Tls(error)
        })?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    };
    timeout_at(patience, secure).await.map_err(|_| Error::ConnectionTimeout)?
}

/// A name may have an address that nobody listens at, such as `localhost` at `::1`.
async fn connect_first(addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut failed = Error::DestinationNotFound;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = Error::Connect(error),
        }
    }
    Err(failed)
}

/// The addresses of the origin's host that the rule allows.
async fn resolve(
    rule: &HttpRule,
    origin: &Origin,
    patience: Instant,
    meter: &Meter,
) -> Result<Vec<SocketAddr>, Error> {
    let found = match origin.address() {
        Some(address) => vec![address],
        None => look_up(&origin.host, patience).await?,
    };
    let mut allowed = Vec::new();
    let mut refusal = None;
    for address in found {
        match rule.allows_address(address) {
            Ok(()) => allowed.push(SocketAddr::new(address, origin.port)),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    match refusal {
        Some(refusal) if allowed.is_empty() => {
            meter.refuse(refusal);
            Err(Error::DestinationIpProhibited)
        }
        _ if allowed.is_empty() => Err(Error::DestinationNotFound),
        _ => Ok(allowed),
    }
}

/// Lookups at a time, of all calls. The system's resolver keeps a thread for as long as its name
/// server is silent, whether or not somebody still waits.
static LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(16)));

async fn look_up(host: &str, patience: Instant) -> Result<Vec<IpAddr>, Error> {
    let host = host.to_owned();
    let looked_up = async {
        let place = LOOKUPS.clone().acquire_owned().await.map_err(|_| Error::ConfigurationError)?;
        let found = tokio::task::spawn_blocking(move || {
            let _place = place;
            (host, 0)
                .to_socket_addrs()
                .map(|addresses| addresses.map(|address| address.ip()).collect())
        });
        let found: std::io::Result<_> = found.await.map_err(|_| Error::ConfigurationError)?;
        found.map_err(|_| Error::DnsError { rcode: None, info_code: None })
    };
    timeout_at(patience, looked_up).await.map_err(|_| Error::DnsTimeout)?
}

/// The web's certificate authorities and nothing else; made once because parsing them takes time.
static TLS: LazyLock<Option<Arc<ClientConfig>>> = LazyLock::new(|| {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(Arc::new(config))
});
