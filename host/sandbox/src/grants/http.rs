//! Which HTTP requests a plugin may make: method, scheme, host, port and path prefix, then the
//! address that the host resolves to.
//!
//! A redirect that a plugin follows is a request like any other, so it is decided anew.

mod origin;
mod path;

pub use origin::Origin;

use super::address::special;
use crate::text::visible;
use std::fmt;
use std::net::IpAddr;

/// Bytes of a path that a refusal shows.
const PATH_SHOWN_MAX: usize = 200;

/// One rule, such as `GET,HEAD https://api.example.com/v1/`.
///
/// Methods or `*`; `http` or `https`; a host, `*.example.com` for its subdomains, or an address in
/// brackets if it is IPv6; a port, else the one of the scheme; a path prefix that ends at a slash
/// of the request or at its end. With the word `private` at the end, the host may resolve to
/// addresses that are not on the public internet; a host that is itself such an address, or
/// `localhost`, needs no such word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRule {
    methods: Methods,
    origin: Origin,
    subdomains: bool,
    path: String,
    private: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Methods {
    Any,
    These(Vec<String>),
}

/// A request as the rules look at it. Made by [`Asked::new`] only, which refuses whatever could be
/// read in two ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Such as `GET`.
    pub method: String,
    /// Where it goes.
    pub origin: Origin,
    /// Without the query.
    pub path: String,
}

impl Asked {
    /// Normalises a request before anything is decided about it.
    pub fn new(method: &str, scheme: &str, authority: &str, path: &str) -> Result<Self, String> {
        let origin = Origin::parse(&format!("{scheme}://{authority}"))?;
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        if path::is_disguised(path) {
            return Err(format!(
                "the path `{}` climbs, or hides a slash or a control character; write it in full",
                visible(path, PATH_SHOWN_MAX)
            ));
        }
        Ok(Self { method: method.into(), origin, path: path.into() })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.origin, visible(&self.path, PATH_SHOWN_MAX))
    }
}

/// Finds the rule that allows a request. `Err` is the refusal, with the line that would allow it.
pub fn allow<'a>(rules: &'a [HttpRule], asked: &Asked) -> Result<&'a HttpRule, String> {
    // Of two that fit, the one that allows more addresses.
    let fits = rules.iter().filter(|rule| rule.mismatch(asked).is_none());
    if let Some(rule) = fits.max_by_key(|rule| rule.private) {
        return Ok(rule);
    }
    let near = rules
        .iter()
        .find(|rule| rule.covers_host(&asked.origin.host))
        .and_then(|rule| Some(format!("the rule `{rule}` does not fit: {}", rule.mismatch(asked)?)))
        .unwrap_or_else(|| match rules.len() {
            0 => "this plugin has no http grant".into(),
            _ => format!("no http grant names the host {}", asked.origin.host),
        });
    Err(format!(
        "the request {asked} is not granted: {near}; to allow it: grants.http = [\"{} {}/\"]",
        asked.method, asked.origin
    ))
}

impl HttpRule {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "it takes `METHODS SCHEME://HOST[:PORT]/PATH [private]`, such as \
                            `GET,HEAD https://api.example.com/v1/`";
        let mut words = text.split_whitespace();
        let (Some(methods), Some(url)) = (words.next(), words.next()) else {
            return Err(FORM.into());
        };
        let private = match (words.next(), words.next()) {
            (None, _) => false,
            (Some("private"), None) => true,
            (Some("private"), Some(word)) | (Some(word), _) => {
                return Err(format!("`{word}` is not a word of a rule; {FORM}"));
            }
        };
        let (scheme, rest) = url.split_once("://").ok_or(FORM)?;
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        if path.contains(['?', '#']) || path::is_disguised(path) {
            return Err("its path is a plain prefix, without `..`, `?` or `#`".into());
        }
        let bare = authority.strip_prefix("*.");
        let origin = Origin::parse(&format!("{scheme}://{}", bare.unwrap_or(authority)))?;
        if bare.is_some() && (origin.address().is_some() || !origin.host.contains('.')) {
            return Err("`*.` goes before a name with a dot, such as `*.example.com`".into());
        }
        Ok(Self {
            methods: Methods::parse(methods)?,
            origin,
            subdomains: bare.is_some(),
            path: path.into(),
            private,
        })
    }

    /// The one host that the rule is about, and the port; none if it is an address, or many hosts.
    pub fn plain_host(&self) -> Option<(&str, u16)> {
        let one = !self.subdomains && self.origin.address().is_none();
        one.then_some((self.origin.host.as_str(), self.origin.port))
    }

    /// Whether requests to this origin, such as `https://api.example.com`, can be within the rule.
    pub fn covers_origin(&self, origin: &str) -> bool {
        Origin::parse(origin).is_ok_and(|origin| {
            self.covers_host(&origin.host)
                && (self.origin.https, self.origin.port) == (origin.https, origin.port)
        })
    }

    /// Whether a connection to this address is within the rule.
    pub fn allows_address(&self, address: IpAddr) -> Result<(), String> {
        let Some(kind) = special(address) else { return Ok(()) };
        let named = self.origin.address() == Some(address)
            || (self.origin.is_loopback() && kind == "loopback");
        if self.private || named {
            return Ok(());
        }
        Err(format!(
            "{} is at {address}, a {kind} address; to allow it: grants.http = [\"{self} private\"]",
            self.origin.host
        ))
    }

    /// What keeps the rule from allowing this request, if anything does.
    fn mismatch(&self, asked: &Asked) -> Option<String> {
        if !self.covers_host(&asked.origin.host) {
            return Some(format!("the host is {}", asked.origin.host));
        }
        if self.origin.https != asked.origin.https {
            return Some(format!("the scheme is {}", asked.origin.scheme()));
        }
        if self.origin.port != asked.origin.port {
            return Some(format!("the port is {}", asked.origin.port));
        }
        if !self.methods.contain(&asked.method) {
            return Some(format!("the method is {}", asked.method));
        }
        if !path::is_prefix(&self.path, &asked.path) {
            return Some(format!("the path is {}", visible(&asked.path, PATH_SHOWN_MAX)));
        }
        None
    }

    /// Whether every request that the other rule allows is within this one. For the same host, or
    /// the same subdomains: wider patterns are compared by nobody but the operator.
    pub fn covers(&self, other: &Self) -> bool {
        let methods = match (&self.methods, &other.methods) {
            (Methods::Any, _) => true,
            (Methods::These(_), Methods::Any) => false,
            (Methods::These(own), Methods::These(others)) => {
                others.iter().all(|method| own.contains(method))
            }
        };
        methods
            && self.origin == other.origin
            && self.subdomains == other.subdomains
            && path::is_prefix(&self.path, &other.path)
            && (self.private || !other.private)
    }

    fn covers_host(&self, host: &str) -> bool {
        match self.subdomains {
            false => host == self.origin.host,
            true => host
                .strip_suffix(self.origin.host.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        }
    }
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods = match &self.methods {
            Methods::Any => "*".into(),
            Methods::These(these) => these.join(","),
        };
        let star = if self.subdomains { "*." } else { "" };
        let origin = self.origin.to_string();
        let (scheme, authority) = origin.split_once("://").unwrap_or_default();
        write!(f, "{methods} {scheme}://{star}{authority}{}", self.path)?;
        if self.private { f.write_str(" private") } else { Ok(()) }
    }
}

impl Methods {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        text.split(',')
            .map(|method| match method {
                // A tunnel would leave the rule behind.
                "CONNECT" => {
                    Err("CONNECT cannot be granted: what goes through a tunnel is not seen".into())
                }
                // Methods are case-sensitive; `get` in a rule would match nothing.
                _ if !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase()) => {
                    Ok(method.into())
                }
                _ => Err(format!("`{method}` is not a method in capitals")),
            })
            .collect::<Result<_, _>>()
            .map(Self::These)
    }

    fn contain(&self, method: &str) -> bool {
        match self {
            Self::Any => method != "CONNECT",
            Self::These(these) => these.iter().any(|this| this == method),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        rules: &[&str],
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
    ) -> Result<(), String> {
        let rules: Vec<_> = rules.iter().map(|rule| HttpRule::parse(rule).expect(rule)).collect();
        let asked = Asked::new(method, scheme, authority, path)?;
        allow(&rules, &asked).map(drop)
    }

    #[test]
    fn what_a_rule_allows() {
        let rules = [
            "GET,HEAD https://api.example.com/v1/",
            "* http://localhost:8080",
            "GET https://*.example.org/",
        ];
        for (method, scheme, authority, path) in [
            ("GET", "https", "api.example.com", "/v1/"),
            ("HEAD", "https", "API.Example.COM.", "/v1/a?b=../c"),
            ("GET", "HTTPS", "api.example.com:443", "/v1/x/y"),
            ("DELETE", "http", "localhost:8080", ""),
            ("GET", "https", "a.b.example.org", "/"),
        ] {
            decide(&rules, method, scheme, authority, path).expect(path);
        }
    }

    #[test]
    fn what_a_rule_refuses() {
        let rules =
            ["GET https://api.example.com/v1/", "GET https://*.example.org/", "* http://127.0.0.1"];
        for (method, scheme, authority, path, part) in [
            ("POST", "https", "api.example.com", "/v1/", "the method is POST"),
            ("GET", "http", "api.example.com", "/v1/", "the scheme is http"),
            ("GET", "https", "api.example.com:8443", "/v1/", "the port is 8443"),
            ("GET", "https", "api.example.com", "/v2/", "the path is /v2/"),
            ("GET", "https", "api.example.com", "/v1", "the path is /v1"),
            ("GET", "https", "api.example.com", "/v1/../v2/", "climbs"),
            ("GET", "https", "api.example.com", "/v1/%2E%2e/v2/", "climbs"),
            ("GET", "https", "api.example.com", "/v1/..%2fv2/", "climbs"),
            ("GET", "https", "api.example.com", "/v1/..;x/v2/", "climbs"),
            ("GET", "https", "evil.com", "/v1/", "no http grant names the host evil.com"),
            ("GET", "https", "api.example.com.evil.com", "/v1/", "no http grant names"),
            ("GET", "https", "api.example.com@evil.com", "/v1/", "not a plain host and port"),
            ("GET", "https", "example.org", "/", "no http grant names"),
            ("GET", "https", ".example.org", "/", "not a host name"),
            ("GET", "https", "evilexample.org", "/", "no http grant names"),
            ("GET", "http", "2130706433", "/", "unusual notation"),
            ("GET", "http", "0x7f.0.0.1", "/", "unusual notation"),
            ("GET", "http", "127.1", "/", "unusual notation"),
            ("GET", "http", "0177.0.0.1", "/", "unusual notation"),
            ("GET", "http", "[::ffff:127.0.0.1]", "/", "no http grant names"),
            ("GET", "http", "127.0.0.1:x", "/", "not a plain host and port"),
            ("GET", "ftp", "127.0.0.1", "/", "neither http nor https"),
            ("CONNECT", "http", "127.0.0.1", "/", "the method is CONNECT"),
            ("GET", "https", "exämple.com", "/", "xn--"),
        ] {
            let refusal = decide(&rules, method, scheme, authority, path).expect_err(authority);
            assert!(refusal.contains(part), "{authority}{path}: {refusal}");
        }
    }

    #[test]
    fn a_refusal_has_the_line_that_would_allow_it() {
        let refusal = decide(&[], "GET", "https", "api.example.com", "/x").expect_err("no grant");
        assert_eq!(
            refusal,
            "the request GET https://api.example.com/x is not granted: this plugin has no http grant; \
             to allow it: grants.http = [\"GET https://api.example.com/\"]"
        );
    }

    #[test]
    fn rules_read_as_they_are_written() {
        for rule in [
            "GET,HEAD https://api.example.com/v1/",
            "* http://*.example.com:8080/ private",
            "GET http://[::1]/",
        ] {
            assert_eq!(HttpRule::parse(rule).expect(rule).to_string(), rule);
        }
        for rule in [
            "https://a.com",
            "get https://a.com",
            "GET a.com",
            "GET https://*.com/",
            "GET https://a.com/../b",
            "GET https://a.com/ public",
            "GET https://a.com/ private https://b.com/",
            "GET https://u@a.com/",
            "GET https://*/",
        ] {
            assert!(HttpRule::parse(rule).is_err(), "{rule}");
        }
    }

    #[test]
    fn addresses_off_the_public_internet_must_be_named() {
        for (rule, address, fine) in [
            ("GET https://a.com", "1.1.1.1", true),
            ("GET https://a.com", "10.0.0.1", false),
            ("GET https://a.com", "::ffff:169.254.169.254", false),
            ("GET https://a.com/ private", "10.0.0.1", true),
            ("GET http://10.0.0.1", "10.0.0.1", true),
            ("GET http://10.0.0.1", "10.0.0.2", false),
            ("GET http://localhost", "127.0.0.1", true),
            ("GET http://localhost", "::1", true),
            ("GET http://localhost", "10.0.0.1", false),
        ] {
            let rule = HttpRule::parse(rule).expect(rule);
            assert_eq!(
                rule.allows_address(address.parse().expect(address)).is_ok(),
                fine,
                "{rule} {address}"
            );
        }
    }
}
