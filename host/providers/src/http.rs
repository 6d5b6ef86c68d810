//! One request, sent until it is answered: time-outs, retries, and what a refusal says.

use crate::client::{self, why};
use crate::endpoint::{Endpoint, Patience};
use crate::mask::Mask;
use crate::wire::Call;
use cofferdam_agent::model::Secret;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// Bytes of a refusal that are read.
pub(crate) const REFUSAL_BYTES_MAX: usize = 64 * 1024;
/// Characters of a refusal that are shown.
const REFUSAL_CHARS_MAX: usize = 2_000;

/// An endpoint that cannot be talked to as it is configured.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The server is no address.
    #[error("`base_url = \"{url}\"` is no address of a server: {problem}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no server.
    #[error("say where the server is, as in `base_url = \"http://127.0.0.1:11434/v1\"`")]
    NoUrl,
    /// A header cannot be sent. Its value is not shown.
    #[error(
        "the header `{0}` cannot be sent: its name or its value has characters that are not allowed there"
    )]
    Header(String),
    /// The client could not be made.
    #[error("set up the HTTP client: {0}")]
    Client(String),
}

/// A client for one endpoint.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    url: Url,
    own_headers: HeaderMap,
}

/// A request that was not answered.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What went wrong, for the user.
    pub(crate) problem: String,
    /// Whether to ask again may help, and after how long at the earliest.
    pub(crate) retry: Option<Option<Duration>>,
}

impl Http {
    /// Checks the endpoint and makes a client for it.
    pub(crate) fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        let url = url(endpoint)?;
        let own_headers = own_headers(endpoint)?;
        let client = client::for_server(&url, endpoint.patience.connect)
            .map_err(|problem| EndpointError::Client(why(&problem)))?;
        Ok(Self { client, url, own_headers })
    }

    /// Sends a request once. The answer's body has not been read.
    pub(crate) async fn send(
        &self,
        call: &Call,
        credential: Option<&Secret>,
        patience: &Patience,
    ) -> Result<Response, Failure> {
        let mut headers = call.headers.clone();
        if let Some((name, value)) = credential.and_then(|secret| call.authorization(secret)) {
            headers.insert(name, value);
        }
        for (name, value) in &self.own_headers {
            headers.insert(name, value.clone());
        }
        let sending =
            self.client.post(self.url.clone()).headers(headers).body(call.body.clone()).send();
        match tokio::time::timeout(patience.headers, sending).await {
            Err(_) => Err(Failure::last(format!(
                "{} did not answer within {} s, the limit (`timeouts.headers_s`)",
                shown(&self.url),
                patience.headers.as_secs_f64()
            ))),
            Ok(Err(problem)) => Err(self.unreachable(&problem, patience)),
            Ok(Ok(response)) => self.accepted(response, patience, &Mask::of(credential)).await,
        }
    }

    fn unreachable(&self, problem: &reqwest::Error, patience: &Patience) -> Failure {
        let place = shown(&self.url);
        if problem.is_connect() {
            let problem = match problem.is_timeout() {
                true => format!(
                    "no connection to {place} within {} s, the limit (`timeouts.connect_s`)",
                    patience.connect.as_secs_f64()
                ),
                false => format!("no connection to {place}: {}", why(problem)),
            };
            return Failure { problem, retry: Some(None) };
        }
        Failure::last(format!("the request to {place} failed: {}", why(problem)))
    }

    async fn accepted(
        &self,
        response: Response,
        patience: &Patience,
        mask: &Mask,
    ) -> Result<Response, Failure> {
        let status = response.status();
        let type_ = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let no_events = type_.is_some_and(|type_| type_.starts_with("application/json"));
        if status.is_success() && !no_events {
            return Ok(response);
        }
        let head = response.headers().clone();
        // Masked before it is cut: half a credential would not be found.
        let body = mask.apply(&refusal(response, patience.idle).await);
        let told = told(&body);
        if status.is_success() {
            return Err(Failure::last(format!(
                "{} answered with JSON instead of an event stream: {told}",
                shown(&self.url)
            )));
        }
        let place = shown(&self.url);
        let problem = match head.get("location").and_then(|value| value.to_str().ok()) {
            Some(to) if status.is_redirection() => format!(
                "{place} answered {status} and points to {to}; if that is right, make it the `base_url`"
            ),
            _ if told.is_empty() => format!("{place} answered {status}"),
            _ => format!("{place} answered {status}: {told}"),
        };
        let retry = retryable(status, &head, &body).then(|| wait(&head, SystemTime::now()));
        Err(Failure { problem, retry })
    }
}

impl Failure {
    fn last(problem: String) -> Self {
        Self { problem, retry: None }
    }
}

fn url(endpoint: &Endpoint) -> Result<Url, EndpointError> {
    let given = endpoint.base_url.trim();
    if given.is_empty() {
        return Err(EndpointError::NoUrl);
    }
    let refuse = |problem: String| EndpointError::Url { url: without_secrets(given), problem };
    let mut url = Url::parse(given).map_err(|problem| refuse(problem.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refuse("it must begin with http:// or https:// and name a host".into()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(
            "it may not carry a credential; use `api_key_env`, or `headers`".into(),
        ));
    }
    let (path, query) = endpoint.wire.path(url.path().trim_end_matches('/'), &endpoint.model);
    url.set_path(&path);
    if let Some((name, value)) = query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(url)
}

fn own_headers(endpoint: &Endpoint) -> Result<HeaderMap, EndpointError> {
    let mut headers = HeaderMap::new();
    for header in &endpoint.headers {
        let refuse = || EndpointError::Header(header.name.clone());
        let name = HeaderName::try_from(&header.name).map_err(|_| refuse())?;
        let mut value = HeaderValue::try_from(&header.value).map_err(|_| refuse())?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// An address as it was given, without a user's name and password and without its query. It may be
/// no address at all.
fn without_secrets(given: &str) -> String {
    let (scheme, rest) = given.split_once("://").map_or(("", given), |(s, rest)| (s, rest));
    let separator = if scheme.is_empty() { "" } else { "://" };
    let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("…@", rest));
    let (place, query) = rest.split_once(['?', '#']).map_or((rest, ""), |(place, _)| (place, "?…"));
    format!("{scheme}{separator}{user}{place}{query}")
}

/// Where a request goes, without what may be secret.
fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// The body of a refusal, as far as it is of interest.
async fn refusal(mut response: Response, idle: Duration) -> String {
    let mut body = Vec::new();
    while let Ok(Ok(Some(piece))) = tokio::time::timeout(idle, response.chunk()).await {
        body.extend_from_slice(&piece);
        if body.len() > REFUSAL_BYTES_MAX {
            body.truncate(REFUSAL_BYTES_MAX);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// What a refusal says, out of the shapes that providers give it.
pub(crate) fn told(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let told = message_of(&value).unwrap_or_else(|| body.trim().to_owned());
    match told.char_indices().nth(REFUSAL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told,
    }
}

/// The text of an error object: `{"error": {"message"}}`, `{"error": "…"}`, `{"message"}`,
/// `{"detail"}`, or the first of a list of such.
pub(crate) fn message_of(value: &Value) -> Option<String> {
    let value = value.get(0).unwrap_or(value);
    let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
    let text = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Object(_) | Value::Array(_) => Some(value.to_string()),
        _ => None,
    };
    let named = ["message", "detail", "error"].iter().find_map(|key| error.get(key).and_then(text));
    named.or_else(|| error.as_str().map(str::to_owned))
}

/// Whether asking again may help: by the provider's own mark, else by the status.
fn retryable(status: StatusCode, headers: &HeaderMap, body: &str) -> bool {
    match headers.get("x-should-retry").and_then(|value| value.to_str().ok()) {
        Some("true") => return true,
        Some("false") => return false,
        _ => {}
    }
    // A quota that is used up answers like a busy server, and stays so.
    let spent = status == StatusCode::TOO_MANY_REQUESTS && body.contains("insufficient_quota");
    !spent && matches!(status.as_u16(), 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// How long the provider wants us to wait.
fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let after = text(RETRY_AFTER.as_str())?;
    match after.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let at = httpdate::parse_http_date(after).ok()?;
            Some(at.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_in_the_providers_words() {
        for (body, want) in [
            (r#"{"error":{"message":"no such model","type":"x"}}"#, "no such model"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded",
            ),
            (r#"[{"error":{"code":400,"message":"bad key","status":"X"}}]"#, "bad key"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"detail":[{"loc":["body"]}]}"#, r#"[{"loc":["body"]}]"#),
            (r#"{"object":"error","message":"too long"}"#, "too long"),
            ("<html>nope</html>\n", "<html>nope</html>"),
            ("", ""),
        ] {
            assert_eq!(told(body), want);
        }
    }

    #[test]
    fn what_the_provider_says_of_retries_counts() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect()
        };
        let none = headers(&[]);
        for (status, headers, body, want) in [
            (429, &none, "", true),
            (529, &none, "", true),
            (400, &none, "", false),
            (401, &none, "", false),
            (429, &none, r#"{"error":{"code":"insufficient_quota"}}"#, false),
            (503, &headers(&[("x-should-retry", "false")]), "", false),
            (400, &headers(&[("x-should-retry", "true")]), "", true),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(retryable(status, headers, body), want, "{status}");
        }
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (name, value, want) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "1.5", Some(1_500)),
            ("retry-after-ms", "20", Some(20)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT", Some(3_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
        ] {
            let asked = wait(&headers(&[(name, value)]), now);
            assert_eq!(asked, want.map(Duration::from_millis), "{value}");
        }
    }
}
