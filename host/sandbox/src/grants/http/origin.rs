//! Where a request goes, in the one form that is compared.

use crate::grants::address::special;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whether the connection is encrypted.
    pub https: bool,
    /// In lower case, without a trailing dot or brackets.
    pub host: String,
    /// The port, the scheme's own if none was given.
    pub port: u16,
}

impl Origin {
    /// Reads `http://HOST[:PORT]`, refusing what could be read in two ways.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, authority) = text.split_once("://").ok_or("it has no scheme")?;
        let https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            other => return Err(format!("the scheme `{other}` is neither http nor https")),
        };
        if authority.contains(['@', '/', '\\', '?', '#', '%']) {
            return Err(format!("`{authority}` is not a plain host and port"));
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(if https { 443 } else { 80 });
        Ok(Self { https, host: plain_host(host)?, port })
    }

    /// The host as an address, if it is one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Whether the host is this machine by name or address.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.address().is_some_and(|address| special(address) == Some("loopback"))
    }

    /// Host and port as a `Host` header has them: without the port of the scheme.
    pub fn authority(&self) -> String {
        let host = match self.address() {
            Some(IpAddr::V6(v6)) => format!("[{v6}]"),
            _ => self.host.clone(),
        };
        match (self.https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The scheme's name.
    pub(super) fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority())
    }
}

/// Splits `HOST:PORT`, with brackets round an IPv6 host.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let wrong = || format!("`{authority}` is not a plain host and port");
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(wrong()),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port {
        None => Ok((host, None)),
        Some(port) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            Ok((host, Some(port.parse().map_err(|_| wrong())?)))
        }
        Some(_) => Err(wrong()),
    }
}

/// The host in the one form that is compared: lower case, no trailing dot, addresses as the
/// standard library writes them.
fn plain_host(host: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("the host `{host}` {why}"));
    let lower = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if lower.contains(':') {
        return match lower.parse::<IpAddr>() {
            Ok(address) => Ok(address.to_string()),
            Err(_) => wrong("is not an address"),
        };
    }
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if lower.is_empty()
        || lower.len() > 253
        || !lower.bytes().all(good)
        || lower.split('.').any(str::is_empty)
    {
        return wrong("is not a host name; international names are written in their xn-- form");
    }
    // 127.1, 0x7f.0.0.1 and 2130706433 are addresses to some resolvers and names to others.
    let last = lower.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    match lower.parse::<Ipv4Addr>() {
        Ok(address) => Ok(address.to_string()),
        Err(_) if numeric => {
            wrong("is an address in an unusual notation; write it with four decimal numbers")
        }
        Err(_) => Ok(lower),
    }
}
