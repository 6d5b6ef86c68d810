//! Grants, and the requests that they allow.

use arbitrary::{Arbitrary, Result, Unstructured};
use cofferdam_sandbox::Grants;
use cofferdam_sandbox::grants::HttpRule;
use cofferdam_sandbox::grants::address::special;
use cofferdam_sandbox::grants::http::{Asked, allow};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// A grant is given or refused in words, and a rule reads as it is written.
pub fn grants(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut grants = Grants::default();
    for pair in text.lines() {
        if let Err(problem) = grants.add_pair(pair) {
            assert!(!problem.to_string().is_empty());
        }
    }
    for rule in &grants.http {
        let written = rule.to_string();
        assert_eq!(HttpRule::parse(&written).as_ref(), Ok(rule), "{written}");
    }
    for files in &grants.files {
        assert!(files.guest.starts_with('/') && files.guest.split('/').all(|part| part != ".."));
    }
    for name in &grants.env {
        assert!(!name.to_ascii_uppercase().contains("TOKEN"), "{name}");
    }
    let _ = serde_json::from_str::<Grants>(&text);
}

/// Addresses that the standard library knows to be private are special to us.
pub fn address(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<16>() else { return };
    let v6 = Ipv6Addr::from(*bytes);
    let [a, b, c, d, ..] = *bytes;
    let v4 = Ipv4Addr::new(a, b, c, d);
    if is_private_v4(v4) {
        for stands_for_it in [
            IpAddr::V4(v4),
            IpAddr::V6(v4.to_ipv6_mapped()),
            IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high(a, b), high(c, d))),
            IpAddr::V6(Ipv6Addr::new(0x2002, high(a, b), high(c, d), 0, 0, 0, 0, 1)),
        ] {
            assert!(special(stands_for_it).is_some(), "{stands_for_it}");
        }
    }
    if is_private_v6(v6) {
        assert!(special(IpAddr::V6(v6)).is_some(), "{v6}");
    }
}

fn high(a: u8, b: u8) -> u16 {
    u16::from_be_bytes([a, b])
}

fn is_private_v4(v4: Ipv4Addr) -> bool {
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation()
        || v4.is_unspecified()
}

fn is_private_v6(v6: Ipv6Addr) -> bool {
    v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        || v6.is_unique_local()
        || v6.is_unicast_link_local()
        || v6.to_ipv4_mapped().is_some_and(is_private_v4)
}

/// The first line is a rule, the next ones are method, scheme, authority and path of a request.
pub fn http(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let Ok(rule) = HttpRule::parse(next()) else { return };
    let (method, scheme, authority, path) = (next(), next(), next(), next());
    decided(&rule, method, scheme, authority, path);
}

/// The same with requests that are made of what has fooled such rules elsewhere.
pub fn http_grammar(bytes: &[u8]) {
    let Ok(Request { rule, method, scheme, authority, path }) =
        Request::arbitrary(&mut Unstructured::new(bytes))
    else {
        return;
    };
    let Ok(rule) = HttpRule::parse(&rule) else { return };
    decided(&rule, method, scheme, &authority, &path);
}

/// A request that a rule allows is within it, as a browser reads the same request.
fn decided(rule: &HttpRule, method: &str, scheme: &str, authority: &str, path: &str) {
    let Ok(asked) = Asked::new(method, scheme, authority, path) else { return };
    if allow(std::slice::from_ref(rule), &asked).is_err() {
        return;
    }
    let granted = Granted::of(rule);
    assert!(granted.methods == "*" || granted.methods.split(',').any(|one| one == method));
    assert_ne!(method, "CONNECT");
    // What the engine's own parser does not take never gets this far.
    if !path.starts_with('/') || path.parse::<http::uri::PathAndQuery>().is_err() {
        return;
    }
    let written = format!("{scheme}://{authority}{path}");
    let read = Url::parse(&written).unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(read.scheme(), granted.url.scheme(), "{written:?} by {rule}");
    assert_eq!(
        read.port_or_known_default(),
        granted.url.port_or_known_default(),
        "{written:?} by {rule}"
    );
    assert!(read.username().is_empty() && read.password().is_none(), "{written:?} by {rule}");
    let host = read.host_str().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    let granted_host = granted.url.host_str().unwrap_or_default();
    match granted.subdomains {
        false => assert_eq!(host, granted_host, "{written:?} by {rule}"),
        true => assert!(host.ends_with(&format!(".{granted_host}")), "{written:?} by {rule}"),
    }
    let prefix = granted.url.path();
    assert!(
        read.path() == prefix
            || read.path().starts_with(&format!("{}/", prefix.trim_end_matches('/')))
            || prefix.ends_with('/') && read.path().starts_with(prefix),
        "{written:?} is {:?} by {rule}",
        read.path()
    );
    let address = match read.host() {
        Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
        Some(Host::Ipv6(v6)) => IpAddr::V6(v6),
        _ => return,
    };
    if special(address).is_some() {
        let named =
            granted.url.host() == read.host().map(|host| host.to_owned()).as_ref().map(borrowed);
        assert!(named || granted.private, "{written:?} by {rule}");
        assert!(rule.allows_address(address).is_ok(), "{written:?} by {rule}");
    }
}

fn borrowed(host: &Host<String>) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(v4) => Host::Ipv4(*v4),
        Host::Ipv6(v6) => Host::Ipv6(*v6),
    }
}

/// A rule taken apart once more, from its text.
struct Granted {
    methods: String,
    url: Url,
    subdomains: bool,
    private: bool,
}

impl Granted {
    fn of(rule: &HttpRule) -> Self {
        let text = rule.to_string();
        let mut words = text.split(' ');
        let methods = words.next().unwrap_or_default().to_owned();
        let url = words.next().unwrap_or_default();
        let subdomains = url.contains("://*.");
        let url = Url::parse(&url.replace("://*.", "://"));
        let url = url.unwrap_or_else(|error| panic!("{text}: {error}"));
        Self { methods, url, subdomains, private: words.next() == Some("private") }
    }
}

struct Request {
    rule: String,
    method: &'static str,
    scheme: &'static str,
    authority: String,
    path: String,
}

const RULES: [&str; 10] = [
    "GET https://api.example.com/v1/",
    "* https://*.example.com",
    "GET,POST http://127.0.0.1:8080/",
    "GET http://localhost",
    "GET http://[::1]/x",
    "GET https://a.b.c/v1",
    "* http://10.0.0.1/",
    "GET https://example.com:8443/a/b/ private",
    "* http://[::ffff:10.0.0.1]/",
    "GET https://xn--bcher-kva.example/",
];
const HOSTS: [&str; 22] = [
    "api.example.com",
    "example.com",
    "API.EXAMPLE.COM",
    "api.example.com.",
    "evil.com",
    "127.0.0.1",
    "0x7f.1",
    "2130706433",
    "0177.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:0:0:1]",
    "localhost",
    "a.b.c",
    "10.0.0.1",
    "①②⑦.0.0.1",
    "bücher.example",
    "xn--bcher-kva.example",
    "api。example。com",
    "[::ffff:10.0.0.1]",
    "169.254.169.254",
    "127.0.0.1.",
];
const AROUND: [&str; 16] = [
    "",
    "",
    "",
    "",
    "@",
    ":",
    ":80",
    ":443",
    ":8080",
    ":08080",
    "%",
    "\\",
    "/",
    "#",
    "?",
    "user:pass@",
];
const SEGMENTS: [&str; 24] = [
    "v1", "a", "b", "x", "..", ".", "%2e", "%2E%2e", "%2f", "%5c", "\\", ";", "..;x", "%252e", "?",
    "#", "//", "%00", "%c0%ae", " ", "...", "é", "%", "..%20",
];

impl<'a> Arbitrary<'a> for Request {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let rule = (*u.choose(&RULES)?).to_owned();
        let method = *u.choose(&["GET", "POST", "CONNECT", "get"])?;
        let scheme = *u.choose(&["http", "https", "HTTPS", "ftp"])?;
        let mut authority = String::new();
        for _ in 0..u.int_in_range(1..=2)? {
            authority.push_str(u.choose(&AROUND)?);
            authority.push_str(u.choose(&HOSTS)?);
        }
        authority.push_str(u.choose(&AROUND)?);
        let mut path = String::new();
        for _ in 0..u.int_in_range(0..=5)? {
            path.push_str(if u.ratio(4, 5)? { "/" } else { "" });
            path.push_str(u.choose(&SEGMENTS)?);
        }
        Ok(Self { rule, method, scheme, authority, path })
    }
}
