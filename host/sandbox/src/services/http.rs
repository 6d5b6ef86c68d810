//! Outgoing HTTP: every request is decided by the grants, sent to an address that was decided too,
//! and counted.
//!
//! A plugin follows redirects itself, so each hop comes through here. Its own time-outs are
//! clamped to what remains of the call, and dropping the call drops its connections. Secrets are
//! masked in what it sends, then added where they are granted, and masked in what comes back.

mod body;
mod connect;
mod scripted;

pub use scripted::{HttpAnswer, HttpRequest, HttpScript};

use super::secret::Secret;
use crate::brake::Brake;
use crate::grants::http::{Asked, HttpRule, Origin, allow};
use crate::limits::kib;
use crate::mask;
use crate::receipt::Tally;
use crate::state::Terms;
use body::{Masked, Metered};
use http::header::{HOST, HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// HTTP of one call.
pub(crate) struct Http {
    terms: Arc<Terms>,
    brake: Arc<Brake>,
    granted: bool,
    /// Made with the first request.
    meter: Option<Arc<Meter>>,
}

/// What the requests of one call add up to. Shared with their tasks.
#[derive(Default)]
pub(crate) struct Meter {
    requests: AtomicU64,
    bytes: AtomicU64,
    bytes_max: u64,
    refusals: Mutex<Vec<String>>,
}

type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sent = Result<(http::Response<WasiBody>, Io), Error>;

impl Http {
    pub(crate) fn new(terms: Arc<Terms>, brake: Arc<Brake>, granted: bool) -> Self {
        Self { terms, brake, granted, meter: None }
    }

    /// Requests sent and bytes of their bodies, and what was refused.
    pub(crate) fn bill(&self) -> (Tally, Vec<String>) {
        self.meter.as_ref().map_or_else(Default::default, |meter| {
            let tally = Tally {
                calls: meter.requests.load(Ordering::Relaxed),
                bytes: meter.bytes.load(Ordering::Relaxed),
            };
            (tally, meter.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone())
        })
    }

    fn meter(&mut self) -> Arc<Meter> {
        let bytes_max = kib(self.terms.limits.http_body_kib) as u64;
        self.meter.get_or_insert_with(|| Arc::new(Meter { bytes_max, ..Meter::default() })).clone()
    }

    /// Decides on a request and prepares it. `Err` is the refusal.
    fn decide(
        &self,
        request: http::Request<WasiBody>,
        meter: &Meter,
    ) -> Result<(http::Request<WasiBody>, HttpRule, Origin), String> {
        let uri = request.uri();
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let asked = Asked::new(
            request.method().as_str(),
            uri.scheme_str().unwrap_or("https"),
            &authority,
            uri.path(),
        )?;
        let secrets = &self.terms.secrets;
        if mask::betrays(&asked.method, secrets) || mask::betrays(&asked.origin.host, secrets) {
            return Err("a request may not carry a secret in its method or its host".into());
        }
        let rules = if self.granted { self.terms.grants.http.as_slice() } else { &[] };
        let rule = allow(rules, &asked)?.clone();
        let requests_max = self.terms.limits.http_requests;
        if meter.requests.fetch_add(1, Ordering::Relaxed) >= requests_max {
            meter.requests.fetch_sub(1, Ordering::Relaxed);
            return Err(format!(
                "a call may make {requests_max} http requests (limit http_requests)"
            ));
        }
        Ok((self.ready(request, &asked.origin), rule, asked.origin))
    }

    /// The request as it is sent: for the host that was decided on, with its credentials in place of
    /// whatever the plugin set, and without a secret that the plugin may have got hold of.
    fn ready(&self, request: http::Request<WasiBody>, origin: &Origin) -> http::Request<WasiBody> {
        let (mut parts, body) = request.into_parts();
        let secrets = &self.terms.secrets;
        parts.uri = origin_form(&parts.uri, secrets);
        parts.headers = masked_headers(parts.headers, secrets);
        // As it is compared, not as the plugin wrote it: the same host to everybody on the way.
        if let Ok(host) = HeaderValue::from_str(&origin.authority()) {
            parts.headers.insert(HOST, host);
        }
        for secret in secrets.iter().filter(|secret| secret.origin == *origin) {
            parts.headers.insert(secret.header.clone(), secret.value.clone());
        }
        http::Request::from_parts(parts, masked_body(body, self.terms.clone()))
    }
}

impl Meter {
    fn refuse(&self, refusal: String) {
        const REFUSALS_MAX: usize = 20;
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() < REFUSALS_MAX && !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }

    /// Counts bytes of a body. False if they are too many.
    fn take(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let fits =
            self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.bytes_max;
        if !fits {
            self.refuse(format!(
                "a call may send and receive {} KiB of http bodies (limit http_body_kib)",
                self.bytes_max >> 10
            ));
        }
        fits
    }
}

impl WasiHttpHooks for Http {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _done: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let meter = self.meter();
        let (request, rule, origin) = match self.decide(request, &meter) {
            Ok(decided) => decided,
            Err(refusal) => {
                meter.refuse(refusal);
                return Box::new(async { Err(Error::HttpRequestDenied) });
            }
        };
        let timeouts = Timeouts::clamped(options.unwrap_or_default(), self.brake.remaining());
        let terms = self.terms.clone();
        Box::new(async move {
            let (response, io) = match &terms.http_script {
                Some(script) => script.send(request, &origin, meter, timeouts.first_byte).await?,
                None => send(request, &rule, &origin, timeouts, meter).await?,
            };
            Ok((masked_response(response, terms), io))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        64 << 10
    }
}

/// By how much the call's own deadline comes before a time-out that was clamped to it, so that it is
/// the one that is reported.
const AFTER_THE_CALL: Duration = Duration::from_millis(100);

/// The guest's time-outs, none of them to speak of longer than the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timeouts {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Timeouts {
    fn clamped(options: RequestOptions, remaining: Duration) -> Self {
        let longest = remaining.saturating_add(AFTER_THE_CALL);
        let clamp = |asked: Option<Duration>| asked.unwrap_or(longest).min(longest);
        Self {
            connect: clamp(options.connect_timeout),
            first_byte: clamp(options.first_byte_timeout),
            between_bytes: clamp(options.between_bytes_timeout),
        }
    }
}

async fn send(
    request: http::Request<WasiBody>,
    rule: &HttpRule,
    origin: &Origin,
    timeouts: Timeouts,
    meter: Arc<Meter>,
) -> Sent {
    let patience = Instant::now() + timeouts.connect;
    let stream = connect::connect(rule, origin, patience, &meter).await?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(wasmtime_wasi_http::io::TokioIo::new(stream))
        .await?;
    let driver = wasmtime_wasi::runtime::spawn(connection);
    let request = request.map(|body| Metered::new(body, meter.clone(), timeouts.between_bytes));
    let response = tokio::time::timeout(timeouts.first_byte, sender.send_request(request))
        .await
        .map_err(|_| Error::ConnectionReadTimeout)??;
    let response = response.map(|body| {
        Metered::new(body.map_err(Error::from), meter, timeouts.between_bytes).boxed_unsync()
    });
    Ok((response, Box::new(async move { Ok(driver.await?) })))
}

/// The head of a response, and what is read ahead of its body.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Path and query alone, as servers expect them.
fn origin_form(uri: &http::Uri, secrets: &[Secret]) -> http::Uri {
    let target = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let masked = mask::bytes(target.into(), secrets);
    http::Uri::try_from(masked).unwrap_or_default()
}

/// Headers without the secrets. One whose name holds a secret is dropped.
fn masked_headers(headers: HeaderMap, secrets: &[Secret]) -> HeaderMap {
    if secrets.is_empty() {
        return headers;
    }
    headers
        .iter()
        .filter(|(name, _)| !mask::betrays(name.as_str(), secrets))
        .filter_map(|(name, value)| {
            let masked = mask::bytes(value.as_bytes().to_vec(), secrets);
            Some((name.clone(), HeaderValue::from_bytes(&masked).ok()?))
        })
        .collect()
}

fn masked_body(body: WasiBody, terms: Arc<Terms>) -> WasiBody {
    if terms.secrets.is_empty() { body } else { Masked::new(body, terms).boxed_unsync() }
}

fn masked_response(
    response: http::Response<WasiBody>,
    terms: Arc<Terms>,
) -> http::Response<WasiBody> {
    let (mut parts, body) = response.into_parts();
    parts.headers = masked_headers(parts.headers, &terms.secrets);
    http::Response::from_parts(parts, masked_body(body, terms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Grants;
    use crate::limits::Limits;

    #[test]
    fn a_guest_cannot_wait_longer_than_its_call() {
        let options = RequestOptions {
            connect_timeout: Some(Duration::from_secs(600)),
            first_byte_timeout: None,
            between_bytes_timeout: Some(Duration::from_millis(5)),
        };
        let longest = Duration::from_millis(3_100);
        assert_eq!(
            Timeouts::clamped(options, Duration::from_secs(3)),
            Timeouts {
                connect: longest,
                first_byte: longest,
                between_bytes: Duration::from_millis(5)
            }
        );
    }

    /// A server that answers one request with these bytes and tells what it got.
    fn serve(answer: Vec<u8>) -> (u16, std::thread::JoinHandle<String>) {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = vec![0; 4_096];
            let read = stream.read(&mut request).expect("a request");
            let _ = stream.write_all(&answer);
            // Held open, so that only the client can end the exchange.
            std::thread::sleep(Duration::from_millis(300));
            String::from_utf8_lossy(&request[..read]).into_owned()
        });
        (port, server)
    }

    fn http(grants: Grants, limits: Limits, secrets: Vec<Secret>) -> Http {
        let terms = Terms {
            plugin: "test".into(),
            limits,
            grants,
            log_sink: None,
            http_script: None,
            key_value: None,
            files: Default::default(),
            blocking: crate::blocking::Blocking::unlimited(),
            memory_total: Arc::default(),
            memory_total_max: 0,
            env: Vec::new(),
            secrets,
        };
        let long = Duration::from_secs(100);
        let brake = Brake::new(wasmtime::Engine::default().weak(), Default::default(), long, long);
        Http::new(Arc::new(terms), Arc::new(brake), true)
    }

    fn get(url: &str) -> http::Request<WasiBody> {
        let empty = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request =
            http::Request::get(url).header("host", "x").header("x-key", "the plugin's own");
        request.body(empty).expect("a request")
    }

    async fn fetch(http: &mut Http, url: &str, options: RequestOptions) -> Result<Vec<u8>, Error> {
        let sent = http.send_request(get(url), Some(options), Box::new(async { Ok(()) }));
        let (response, _io) = Box::into_pin(sent).await?;
        Ok(response.into_body().collect().await?.to_bytes().to_vec())
    }

    fn granted(rule: String) -> Grants {
        Grants { http: vec![HttpRule::parse(&rule).expect("a rule")], ..Grants::default() }
    }

    #[tokio::test]
    async fn a_granted_request_is_sent_and_counted_with_its_secret() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_vec();
        let (port, server) = serve(answer);
        let secret = Secret::sample(&format!("http://127.0.0.1:{port}"), "x-key", "s3cret");
        let mut http =
            http(granted(format!("GET http://127.0.0.1:{port}")), Limits::default(), vec![secret]);
        let url = format!("http://127.0.0.1:{port}/a?b=c");
        let body = fetch(&mut http, &url, RequestOptions::default()).await.expect("an answer");
        assert_eq!(body, b"hello");
        let seen = server.join().expect("a request");
        assert!(seen.starts_with("GET /a?b=c HTTP/1.1"), "{seen}");
        assert!(seen.contains("x-key: s3cret") && !seen.contains("the plugin's own"), "{seen}");
        assert_eq!(http.bill(), (Tally { calls: 1, bytes: 5 }, vec![]));
    }

    #[tokio::test]
    async fn what_is_not_granted_is_not_sent() {
        let mut none = http(Grants::default(), Limits::default(), vec![]);
        let refused = fetch(&mut none, "http://127.0.0.1:1/", RequestOptions::default()).await;
        assert!(matches!(refused, Err(Error::HttpRequestDenied)));
        assert!(none.bill().1[0].contains("grants.http = [\"GET http://127.0.0.1:1/\"]"));

        let limits = Limits { http_requests: 0, ..Limits::default() };
        let mut few = http(granted("GET http://127.0.0.1:1".into()), limits, vec![]);
        let refused = fetch(&mut few, "http://127.0.0.1:1/", RequestOptions::default()).await;
        assert!(matches!(refused, Err(Error::HttpRequestDenied)));
        assert!(few.bill().1[0].contains("limit http_requests"));
    }

    #[tokio::test]
    async fn a_long_body_is_cut_off_and_a_stalled_one_given_up() {
        let mut long = b"HTTP/1.1 200 OK\r\ncontent-length: 3000\r\n\r\n".to_vec();
        long.resize(long.len() + 3_000, b'x');
        let (port, _server) = serve(long);
        let limits = Limits { http_body_kib: 1, ..Limits::default() };
        let rule = granted(format!("GET http://127.0.0.1:{port}"));
        let mut http_long = http(rule, limits, vec![]);
        let url = format!("http://127.0.0.1:{port}/");
        let cut = fetch(&mut http_long, &url, RequestOptions::default()).await;
        assert!(matches!(cut, Err(Error::HttpResponseBodySize(_))), "{cut:?}");

        let (port, _server) = serve(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec());
        let mut stalled =
            http(granted(format!("GET http://127.0.0.1:{port}")), Limits::default(), vec![]);
        let options = RequestOptions {
            between_bytes_timeout: Some(Duration::from_millis(50)),
            ..RequestOptions::default()
        };
        let given_up = fetch(&mut stalled, &format!("http://127.0.0.1:{port}/"), options).await;
        assert!(matches!(given_up, Err(Error::ConnectionReadTimeout)), "{given_up:?}");
    }

    #[test]
    fn bodies_are_counted() {
        let meter = Meter { bytes_max: 10, ..Meter::default() };
        assert!(meter.take(10));
        assert!(!meter.take(1));
    }
}
