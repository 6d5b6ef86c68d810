//! HTTP that is answered from a script in place of the network, for tests of plugins. What a plugin
//! may ask for is decided all the same, and counted.

use super::Sent;
use super::body::Metered;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wasmtime_wasi_http::{Error, WasiBody};

/// A request as it would have been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Such as `GET`.
    pub method: String,
    /// Scheme, host, port where it is not the scheme's own, path and query.
    pub url: String,
    /// Names in lower case with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What the script answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// 100 to 599.
    pub status: u16,
    /// Names with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A script that stands in for the network: none, for a request that it has no answer to, which
/// looks to the plugin as if nobody were there.
#[derive(Clone)]
pub struct HttpScript(Arc<dyn Fn(HttpRequest) -> Option<HttpAnswer> + Send + Sync>);

impl HttpScript {
    /// A script of this function, which must not block.
    pub fn new(script: impl Fn(HttpRequest) -> Option<HttpAnswer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(script))
    }

    /// Answers a request that the grants let through.
    pub(super) async fn send(
        &self,
        request: http::Request<WasiBody>,
        origin: &super::Origin,
        meter: Arc<super::Meter>,
        patience: Duration,
    ) -> Sent {
        let (parts, body) = request.into_parts();
        let body = Metered::new(body, meter.clone(), patience);
        let asked = HttpRequest {
            method: parts.method.to_string(),
            url: format!("{origin}{}", parts.uri),
            headers: parts
                .headers
                .iter()
                .map(|(name, value)| {
                    (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                })
                .collect(),
            body: body.collect().await?.to_bytes().to_vec(),
        };
        let answer = (self.0)(asked).ok_or(Error::ConnectionRefused)?;
        let mut response = http::Response::new(Full::new(Bytes::from(answer.body)));
        *response.status_mut() =
            http::StatusCode::from_u16(answer.status).map_err(|_| Error::HttpProtocolError)?;
        for (name, value) in answer.headers {
            let name = HeaderName::try_from(name).map_err(|_| Error::HttpProtocolError)?;
            let value = HeaderValue::try_from(value).map_err(|_| Error::HttpProtocolError)?;
            response.headers_mut().append(name, value);
        }
        let response = response.map(|body| {
            let body = body.map_err(|never| match never {});
            Metered::new(body, meter, patience).boxed_unsync()
        });
        Ok((response, Box::new(std::future::ready(Ok(())))))
    }
}

impl fmt::Debug for HttpScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpScript")
    }
}
