//! From a granted origin to a connection with an address that was looked at.
//!
//! The name is resolved once and the connection goes to the address that was decided on, so that
//! a second answer of the name server cannot lead elsewhere.

use super::Meter;
use crate::grants::http::{HttpRule, Origin};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use wasmtime_wasi_http::Error;

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The first address of the origin's host that the rule allows.
pub(super) async fn resolve(
    rule: &HttpRule,
    origin: &Origin,
    patience: Duration,
    meter: &Meter,
) -> Result<SocketAddr, Error> {
    let addresses = match origin.address() {
        Some(address) => vec![address],
        None => look_up(&origin.host, patience).await?,
    };
    let mut refusal = None;
    for address in addresses {
        match rule.allows_address(address) {
            Ok(()) => return Ok(SocketAddr::new(address, origin.port)),
            Err(why) => refusal = refusal.or(Some(why)),
        }
    }
    match refusal {
        Some(refusal) => {
            meter.refuse(refusal);
            Err(Error::DestinationIpProhibited)
        }
        None => Err(Error::DestinationNotFound),
    }
}

async fn look_up(host: &str, patience: Duration) -> Result<Vec<IpAddr>, Error> {
    let addresses = tokio::time::timeout(patience, tokio::net::lookup_host((host, 0)))
        .await
        .map_err(|_| Error::DnsTimeout)?
        .map_err(|_| Error::DnsError { rcode: None, info_code: None })?;
    Ok(addresses.map(|address| address.ip()).collect())
}

/// Connects to exactly this address.
pub(super) async fn connect(
    origin: &Origin,
    address: SocketAddr,
    patience: Duration,
) -> Result<Box<dyn Stream>, Error> {
    let secure = async {
        let stream = TcpStream::connect(address).await.map_err(Error::Connect)?;
        // Small requests should not wait for company.
        let _ = stream.set_nodelay(true);
        if !origin.https {
            return Ok(Box::new(stream) as Box<dyn Stream>);
        }
        let name =
            ServerName::try_from(origin.host.clone()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let tls = TLS.clone().ok_or(Error::ConfigurationError)?;
        let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(Error::Tls)?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    };
    tokio::time::timeout(patience, secure).await.map_err(|_| Error::ConnectionTimeout)?
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
