//! What every HTTP client of the host has in common: whom it trusts, that it follows nobody elsewhere by
//! itself, and what it says when nothing comes.

use crate::tls;
use reqwest::{Client, Url};
use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

/// A client for one server. Redirects are not followed: a credential would go along to whoever is
/// named.
pub fn for_server(url: &Url, connect: Duration) -> reqwest::Result<Client> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls::config(url.scheme() == "https"))
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")));
    match is_loopback(url) {
        // What the environment says of proxies is meant for other machines.
        true => client.no_proxy().build(),
        false => client.build(),
    }
}

/// Whether a server is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The innermost causes of an error, without the address.
pub fn why(problem: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut source = problem.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    match causes.as_slice() {
        [] => "unknown cause".into(),
        [.., outer, inner] if !outer.contains(inner.as_str()) => format!("{outer}: {inner}"),
        [.., inner] => inner.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_this_machine_is_known() {
        for (url, want) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://[::1]:1/v1", true),
            ("http://LocalHost/v1", true),
            ("http://10.0.0.1/v1", false),
            ("http://localhost.example.com/v1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), want, "{url}");
        }
    }
}
