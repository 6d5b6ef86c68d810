//! Redirects: each hop is a request of its own, so that the host decides on it anew.

use cofferdam_plugin::{Failure, Result, call};

use crate::address::Address;

const HOPS_MAX: usize = 5;

/// What a server answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The body went on.
    pub(crate) cut: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|(header, _)| header == name);
        header.map(|(_, value)| value.as_str())
    }
}

/// The answer at the end of all redirects, and where it was found.
pub(crate) fn get(
    mut address: Address,
    request: impl Fn(&Address) -> Result<Response>,
) -> Result<(Address, Response)> {
    for _ in 0..=HOPS_MAX {
        call::progress(format!("GET {address}"));
        let response = request(&address)?;
        let location = match response.status {
            301 | 302 | 303 | 307 | 308 => response.header("location"),
            _ => None,
        };
        let Some(location) = location else { return Ok((address, response)) };
        let next = address.join(location);
        address = next.ok_or_else(|| {
            Failure::unavailable(format!(
                "{address} redirects to `{location}`, which is not on the web"
            ))
        })?;
    }
    Err(Failure::unavailable(format!("more than {HOPS_MAX} redirects, last to {address}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(location: &str) -> Response {
        let headers = vec![("location".to_owned(), location.to_owned())];
        Response { status: 302, headers, ..Response::default() }
    }

    fn check(server: impl Fn(&str) -> Response, expected: &str) {
        let start = Address::parse("https://a.org/start").unwrap();
        let end = get(start, |address| Ok(server(&address.to_string())));
        let text = end.map_or_else(|failure| failure.message, |(address, _)| address.to_string());
        assert_eq!(text, expected);
    }

    #[test]
    fn redirects_are_followed_and_counted() {
        let two = |url: &str| match url {
            "https://a.org/start" => redirect("/next"),
            "https://a.org/next" => redirect("https://b.org/"),
            _ => Response { status: 200, ..Response::default() },
        };
        check(two, "https://b.org/");
        check(|_| redirect("/again"), "more than 5 redirects, last to https://a.org/again");
        check(
            |_| redirect("file:///x"),
            "https://a.org/start redirects to `file:///x`, which is not on the web",
        );
    }
}
