//! What names a component in a registry.

use cofferdam_providers::client::is_loopback;
use reqwest::Url;
use std::fmt;
use std::str::FromStr;

/// The beginning of every reference, which tells it from the path of a file.
const SCHEME: &str = "oci://";

/// `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]`, with a tag or a digest or both; the digest
/// decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// A text that names nothing in a registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` names no component in a registry: {problem}, as in oci://registry.example.com/tools/fetch:1.0.0"
)]
pub struct ReferenceError {
    given: String,
    problem: &'static str,
}

impl Reference {
    /// Whether a text is meant as a reference, good or not.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The registry, with its port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The last part of the repository's name.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }

    /// Whether another one is of the same repository.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.host == other.host && self.repository == other.repository
    }

    /// The same with this digest.
    pub fn at(&self, digest: &str) -> Self {
        Self { digest: Some(digest.into()), ..self.clone() }
    }

    pub(super) fn repository(&self) -> &str {
        &self.repository
    }

    pub(super) fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    pub(super) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// What is asked for: the digest where there is one.
    pub(super) fn wanted(&self) -> &str {
        self.digest().or(self.tag()).unwrap_or_default()
    }

    /// The address of the repository, which ends in `/`. The protocol is spoken without TLS to this
    /// machine alone.
    pub(super) fn url(&self) -> Url {
        // Docker's own registry has another address than name.
        let host = match &*self.host {
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        let at = |scheme: &str| Url::parse(&format!("{scheme}://{host}/v2/{}/", self.repository));
        match at("http") {
            Ok(url) if is_loopback(&url) => url,
            _ => at("https").unwrap_or_else(|_| unreachable!("it was one when it was read")),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(given: &str) -> Result<Self, ReferenceError> {
        let error = |problem| ReferenceError { given: given.into(), problem };
        let text = given.strip_prefix(SCHEME).ok_or(error("it begins with oci://"))?;
        let (host, rest) = text.split_once('/').ok_or(error("it has a host and a repository"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag.to_owned())),
            None => (rest, None),
        };
        if !is_host(host) {
            return Err(error(
                "the host is a name or an address, in lower case and written in full",
            ));
        }
        if !is_repository(repository) {
            return Err(error(
                "a repository is words in lower case, joined by `/`, `-`, `_` or `.`",
            ));
        }
        if tag.as_deref().is_some_and(|tag| !is_tag(tag)) {
            return Err(error("a tag has up to 128 letters, digits, `.`, `_` and `-`"));
        }
        if digest.as_deref().is_some_and(|digest| !is_digest(digest)) {
            return Err(error("a digest is sha256: and 64 digits in lower case"));
        }
        if tag.is_none() && digest.is_none() {
            return Err(error("say which with a tag or a digest"));
        }
        Ok(Self { host: host.into(), repository: repository.into(), tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// A host as a URL has it: no user, and nothing that would be read as another host.
fn is_host(host: &str) -> bool {
    let Ok(url) = Url::parse(&format!("https://{host}/")) else { return false };
    let read = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    read == host && !host.is_empty()
}

/// By the OCI distribution specification, "Pulling manifests".
fn is_repository(text: &str) -> bool {
    let is_word_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_word_char)
            && part.ends_with(is_word_char)
            && part.chars().all(|c| is_word_char(c) || matches!(c, '.' | '_' | '-'))
            && !part.contains("..")
    };
    text.len() <= 255 && text.split('/').all(is_part)
}

fn is_tag(text: &str) -> bool {
    let is_word_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=128).contains(&text.len())
        && text.starts_with(is_word_char)
        && text.chars().all(|c| is_word_char(c) || matches!(c, '.' | '-'))
}

pub(super) fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_something_is_read_and_shown_as_it_is() {
        let digest = format!("@sha256:{}", "ab".repeat(32));
        for (text, url) in [
            ("oci://ghcr.io/me/fetch:1.0.0", "https://ghcr.io/v2/me/fetch/"),
            ("oci://127.0.0.1:5000/a:latest", "http://127.0.0.1:5000/v2/a/"),
            ("oci://[::1]:5000/a:latest", "http://[::1]:5000/v2/a/"),
            ("oci://localhost/a/b/c-d_e.f:V1", "http://localhost/v2/a/b/c-d_e.f/"),
            ("oci://docker.io/library/a:1", "https://registry-1.docker.io/v2/library/a/"),
            (&format!("oci://ghcr.io/a:1{digest}"), "https://ghcr.io/v2/a/"),
            (&format!("oci://ghcr.io/a{digest}"), "https://ghcr.io/v2/a/"),
        ] {
            let reference: Reference = text.parse().expect(text);
            assert_eq!((reference.to_string().as_str(), reference.url().as_str()), (text, url));
        }
    }

    #[test]
    fn what_could_be_read_as_something_else_is_refused() {
        for (text, part) in [
            ("ghcr.io/a:1", "begins with oci://"),
            ("oci://ghcr.io", "a host and a repository"),
            ("oci://ghcr.io/a", "a tag or a digest"),
            ("oci://ghcr.io/a:", "a tag has"),
            ("oci://ghcr.io/A:1", "lower case"),
            ("oci://ghcr.io/a/../b:1", "a repository is"),
            ("oci://ghcr.io/a?x=/b:1", "a repository is"),
            ("oci:///a:1", "the host is"),
            ("oci://user:pass@ghcr.io/a:1", "the host is"),
            ("oci://user@ghcr.io/a:1", "the host is"),
            ("oci://0x7f.1/a:1", "the host is"),
            ("oci://127.1/a:1", "the host is"),
            ("oci://GHCR.io/a:1", "the host is"),
            ("oci://ghcr.io:443/a:1", "the host is"),
            ("oci://ghcr.io/a@sha256:12", "a digest is"),
            ("oci://ghcr.io/a@sha512:12", "a digest is"),
        ] {
            let problem = text.parse::<Reference>().expect_err(text).to_string();
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }
}
