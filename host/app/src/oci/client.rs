//! One registry, asked for parts of one repository: log in if it wants that, go where it sends us if
//! that is a place to go to, read what may be read.

use super::credentials::{CredentialFile, Kept};
use super::manifest::Descriptor;
use super::reference::Reference;
use super::{Bounds, OciError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_providers::client::{for_server, is_loopback, why};
use cofferdam_sandbox::sha256_hex;
use cofferdam_sandbox::text::visible;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// One repository of one registry.
pub(super) struct Client<'a> {
    http: reqwest::Client,
    reference: &'a Reference,
    bounds: &'a Bounds,
    /// The repository; ends in `/`.
    url: Url,
    kept: Kept,
    /// What the registry gave or took, once it has asked who we are.
    authorization: Option<HeaderValue>,
}

/// A token, under either of the names that registries give it.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        reference: &'a Reference,
        credentials: &CredentialFile,
        bounds: &'a Bounds,
    ) -> Result<Self, OciError> {
        let url = reference.url();
        let kept = credentials.find(reference.host()).map_err(OciError::Credentials)?;
        let http = for_server(&url, bounds.connect).map_err(|problem| OciError::Unreachable {
            place: reference.host().into(),
            problem: why(&problem),
        })?;
        Ok(Self { http, reference, bounds, url, kept, authorization: None })
    }

    /// A manifest by its tag or digest. It is what `digest` says; without one, what the registry says
    /// of itself.
    pub(super) async fn manifest(
        &mut self,
        wanted: &str,
        digest: Option<&str>,
    ) -> Result<Vec<u8>, OciError> {
        let response = self.get(&format!("manifests/{wanted}"), MANIFEST_TYPES).await?;
        let header = response.headers().get("docker-content-digest");
        let told = header.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let bytes = self.body(response, "the manifest", self.bounds.manifest_bytes).await?;
        let told = told.filter(|told| told.starts_with("sha256:"));
        if let Some(expected) = digest.map(str::to_owned).or(told) {
            same("the manifest", &expected, &bytes)?;
        }
        Ok(bytes)
    }

    /// The component that a manifest names.
    pub(super) async fn component(&mut self, layer: &Descriptor) -> Result<Vec<u8>, OciError> {
        const WHAT: &str = "the component";
        if layer.size > self.bounds.component_bytes {
            return Err(OciError::Large { what: WHAT, bytes_max: self.bounds.component_bytes });
        }
        let response = self.get(&format!("blobs/{}", layer.digest), "*/*").await?;
        let bytes = self.body(response, WHAT, layer.size).await?;
        same(WHAT, &layer.digest, &bytes)?;
        Ok(bytes)
    }

    /// An answer with what is at a path of the repository.
    async fn get(&mut self, path: &str, accept: &str) -> Result<Response, OciError> {
        let url = self.url.join(path).map_err(|problem| OciError::Unreachable {
            place: self.reference.host().into(),
            problem: problem.to_string(),
        })?;
        let mut response = self.follow(&url, accept).await?;
        if response.status() == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            self.log_in(response.headers()).await?;
            response = self.follow(&url, accept).await?;
        }
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.denied()),
            StatusCode::NOT_FOUND => Err(OciError::Missing {
                reference: self.reference.to_string(),
                tags: self.tags().await,
            }),
            _ => Err(self.refused(response).await),
        }
    }

    /// The answer of the place that a request is sent on to, or of the first. Only the registry itself
    /// hears who we are.
    async fn follow(&self, url: &Url, accept: &str) -> Result<Response, OciError> {
        let mut at = url.clone();
        for _ in 0..=self.bounds.redirects {
            let mut request = self.http.get(at.clone()).header(ACCEPT, accept);
            if let (Some(value), true) = (&self.authorization, at.origin() == self.url.origin()) {
                request = request.header(AUTHORIZATION, value.clone());
            }
            let response = self.send(request, &at).await?;
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let Some(location) = location.filter(|_| response.status().is_redirection()) else {
                return Ok(response);
            };
            at = self.next(&at, location)?;
        }
        Err(OciError::Redirect {
            place: place(url),
            to: place(&at),
            problem: format!("more than {} times, the limit", self.bounds.redirects),
        })
    }

    /// Where a redirect leads, if that is a place to go to.
    fn next(&self, from: &Url, location: &str) -> Result<Url, OciError> {
        let error = |to: String, problem: &str| OciError::Redirect {
            place: place(from),
            to,
            problem: problem.into(),
        };
        let to = from
            .join(location)
            .map_err(|problem| error(visible(location, 200), &problem.to_string()))?;
        self.check(&to).map_err(|problem| error(place(&to), problem))?;
        Ok(to)
    }

    /// Another machine is asked over TLS only, and only a registry of this machine sends us to this
    /// machine: what else listens here is none of its business.
    fn check(&self, to: &Url) -> Result<(), &'static str> {
        match (is_loopback(to), is_loopback(&self.url)) {
            (true, false) => Err("a registry elsewhere has nothing to ask of this machine"),
            (false, _) if to.scheme() != "https" => Err("it is not https"),
            _ => Ok(()),
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder, to: &Url) -> Result<Response, OciError> {
        match tokio::time::timeout(self.bounds.idle, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(problem)) if problem.is_timeout() => Err(self.slow(to)),
            Ok(Err(problem)) => {
                Err(OciError::Unreachable { place: place(to), problem: why(&problem) })
            }
            Err(_) => Err(self.slow(to)),
        }
    }

    /// Gets a token, or makes ready to send name and password, as the registry asks.
    async fn log_in(&mut self, headers: &HeaderMap) -> Result<(), OciError> {
        let asked = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let (scheme, parameters) =
            asked.and_then(|asked| asked.split_once(' ')).unwrap_or_default();
        let basic = match &self.kept {
            Kept::Here(kept) => {
                let pair = format!("{}:{}", kept.user, kept.password.expose());
                Some(header(&format!("Basic {}", STANDARD.encode(pair)))?)
            }
            Kept::Nothing | Kept::Elsewhere(_) => None,
        };
        if scheme.eq_ignore_ascii_case("basic") {
            self.authorization = Some(basic.ok_or_else(|| self.denied())?);
            return Ok(());
        }
        let realm = parameter(parameters, "realm").and_then(|realm| Url::parse(&realm).ok());
        let Some(mut realm) = realm.filter(|_| scheme.eq_ignore_ascii_case("bearer")) else {
            return Err(self.denied());
        };
        self.check(&realm).map_err(|problem| OciError::Redirect {
            place: place(&self.url),
            to: place(&realm),
            problem: problem.into(),
        })?;
        let scope = format!("repository:{}:pull", self.reference.repository());
        realm.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = parameter(parameters, "service") {
            realm.query_pairs_mut().append_pair("service", &service);
        }
        let mut request = self.http.get(realm.clone());
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }
        let response = self.send(request, &realm).await?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(self.denied()),
            status if !status.is_success() => return Err(self.refused(response).await),
            _ => {}
        }
        let bytes = self.body(response, "the registry's token", self.bounds.answer_bytes).await?;
        let token: Option<Token> = serde_json::from_slice(&bytes).ok();
        let token = token.and_then(|token| token.token.or(token.access_token));
        let token = token.ok_or_else(|| OciError::Unreachable {
            place: place(&realm),
            problem: "it gave no token".into(),
        })?;
        self.authorization = Some(header(&format!("Bearer {token}"))?);
        Ok(())
    }

    /// The tags that there are, for who named one that is not; as far as they can be had.
    async fn tags(&self) -> String {
        const SHOWN_MAX: usize = 10;
        let Ok(url) = self.url.join("tags/list?n=50") else { return String::new() };
        let tags = async {
            let response = self.follow(&url, "application/json").await?;
            self.body(response, "the list of tags", self.bounds.answer_bytes).await
        };
        let value: Value =
            tags.await.ok().and_then(|tags| serde_json::from_slice(&tags).ok()).unwrap_or_default();
        let tags: Vec<String> = value["tags"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .take(SHOWN_MAX)
            .map(|tag| visible(tag, 128))
            .collect();
        match tags.is_empty() {
            true => String::new(),
            false => format!("; it has the tags {}", tags.join(", ")),
        }
    }

    /// The whole body, if it is not larger than it may be.
    async fn body(
        &self,
        mut response: Response,
        what: &'static str,
        bytes_max: u64,
    ) -> Result<Vec<u8>, OciError> {
        let url = response.url().clone();
        let large = OciError::Large { what, bytes_max };
        if response.content_length().is_some_and(|length| length > bytes_max) {
            return Err(large);
        }
        let mut bytes = Vec::new();
        loop {
            match tokio::time::timeout(self.bounds.idle, response.chunk()).await {
                Ok(Ok(Some(piece))) => bytes.extend_from_slice(&piece),
                Ok(Ok(None)) => return Ok(bytes),
                Ok(Err(problem)) => {
                    let problem = why(&problem);
                    return Err(OciError::Unreachable { place: place(&url), problem });
                }
                Err(_) => return Err(self.slow(&url)),
            }
            if bytes.len() as u64 > bytes_max {
                return Err(large);
            }
        }
    }

    fn slow(&self, at: &Url) -> OciError {
        OciError::Slow {
            place: place(at),
            what: format!("nothing came for {} s", self.bounds.idle.as_secs_f64()),
        }
    }

    fn denied(&self) -> OciError {
        let host = self.reference.host();
        let (whom, advice) = match &self.kept {
            Kept::Here(kept) => (
                format!("`{}`", visible(&kept.user, 80)),
                "the name or the password is wrong, or it may not read this".to_owned(),
            ),
            Kept::Nothing => (
                "whom it does not know".into(),
                format!("log in with `docker login {host}` or `oras login {host}`"),
            ),
            Kept::Elsewhere(helper) => (
                "whom it does not know".into(),
                format!(
                    "the credentials are kept by `docker-credential-{}`, which is not run; put them into a file \
                     of docker's form and name it in REGISTRY_AUTH_FILE",
                    visible(helper, 80)
                ),
            ),
        };
        OciError::Denied { reference: self.reference.to_string(), whom, advice }
    }

    /// An answer that is none, with what the registry says about it.
    async fn refused(&self, response: Response) -> OciError {
        let (place, status) = (place(response.url()), response.status().as_u16());
        let body = self.body(response, "the refusal", self.bounds.answer_bytes).await;
        let value: Value =
            body.ok().and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
        let said = value.pointer("/errors/0/message").and_then(Value::as_str);
        let said = said.map(|said| format!(": {}", visible(said, 300))).unwrap_or_default();
        OciError::Status { place, status, said }
    }
}

fn same(what: &'static str, expected: &str, bytes: &[u8]) -> Result<(), OciError> {
    let actual = format!("sha256:{}", sha256_hex(bytes));
    match actual == expected {
        true => Ok(()),
        false => Err(OciError::Differs { what, expected: visible(expected, 100), actual }),
    }
}

/// A header that is not shown anywhere.
fn header(text: &str) -> Result<HeaderValue, OciError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        OciError::Credentials("the credentials have characters that no header can carry".into())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Where a request goes, without what may be secret in it: signed addresses carry their key behind
/// the `?`.
fn place(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// A parameter of a challenge: `name="value"`, separated by commas (RFC 9110, section 11.2).
fn parameter(parameters: &str, name: &str) -> Option<String> {
    let mut rest = parameters;
    while let Some((key, value)) = rest.split_once('=') {
        let key = key.trim_matches([' ', ',']);
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once(',').unwrap_or((value, "")),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.trim().to_owned());
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn challenges_are_read_in_every_order() {
        for asked in [
            r#"realm="https://auth.example.com/token",service="r, s",scope="repository:a:pull""#,
            r#"scope="a=b,c", service="r, s", Realm="https://auth.example.com/token""#,
            r#"realm=https://auth.example.com/token,service="r, s""#,
        ] {
            assert_eq!(
                parameter(asked, "realm").as_deref(),
                Some("https://auth.example.com/token")
            );
            assert_eq!(parameter(asked, "service").as_deref(), Some("r, s"));
        }
        for asked in ["", "realm", "=", "realm=\"open", ",,,"] {
            assert_eq!(parameter(asked, "realm"), None, "{asked}");
        }
    }
}
