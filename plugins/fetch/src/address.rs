//! What a URL means: its parts as a request needs them, and where a link on its page leads.

use std::fmt;

/// An http or https URL without its fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) secure: bool,
    /// Host and port, lower case.
    pub(crate) authority: String,
    /// Path and query; begins with `/`.
    pub(crate) path: String,
}

impl Address {
    /// The error says what is wrong, for the model.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| format!("`{text}` is no URL; begin with https://"))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(format!("`{scheme}` URLs cannot be fetched; only http and https")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // A name before the host looks like a host to people; and credentials are the host's to add.
        if authority.contains('@') {
            return Err("a URL with a user name is not fetched".to_owned());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if authority.is_empty() || !authority.chars().all(plain) {
            return Err(format!(
                "`{authority}` is no host name; write international names as xn--"
            ));
        }
        Ok(Self { secure, authority: authority.to_ascii_lowercase(), path: encoded(path) })
    }

    /// Where a link or a `Location` leads; none if that is not the web.
    pub(crate) fn join(&self, link: &str) -> Option<Self> {
        let link = link.trim();
        let scheme = if self.secure { "https" } else { "http" };
        let start = |end: char| self.path.split(end).next().unwrap_or_default();
        let has_scheme = link.split(['/', '?', '#']).next().is_some_and(|head| head.contains(':'));
        let path = match link {
            _ if has_scheme => return Self::parse(link).ok(),
            link if link.starts_with("//") => return Self::parse(&format!("{scheme}:{link}")).ok(),
            link if link.starts_with('/') => link.to_owned(),
            link if link.is_empty() || link.starts_with('#') => self.path.clone(),
            link if link.starts_with('?') => format!("{}{link}", start('?')),
            link => {
                let directory = start('?').rsplit_once('/').map_or("", |(directory, _)| directory);
                format!("{directory}/{link}")
            }
        };
        let path = path.split('#').next().unwrap_or_default();
        Some(Self { path: without_dots(&encoded(path)), ..self.clone() })
    }

    /// The host without its port, for grants and messages.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.secure { "https" } else { "http" }, self.authority)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

/// What may not stand in a request line, as `%` and two digits.
fn encoded(path: &str) -> String {
    let mut text = if path.starts_with('/') { String::new() } else { "/".to_owned() };
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~' if !b"\"<>\\^`{|}".contains(&byte) => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

fn without_dots(path: &str) -> String {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    // `a/.` and `a/..` name a directory.
    let slash = path.ends_with("/.") || path.ends_with("/..");
    let end = if slash && !parts.is_empty() { "/" } else { "" };
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{}{end}{query}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, expected: &str) {
        let text = Address::parse(text).map_or_else(|error| error, |address| address.to_string());
        assert_eq!(text, expected);
    }

    #[test]
    fn urls() {
        parse("https://Example.COM", "https://example.com/");
        parse(" http://localhost:8080/a b?q=ü#top ", "http://localhost:8080/a%20b?q=%C3%BC");
        parse("https://example.com?q=1", "https://example.com/?q=1");
        parse("example.com", "`example.com` is no URL; begin with https://");
        parse("file:///etc/passwd", "`file` URLs cannot be fetched; only http and https");
        parse("https://good.com@evil.com/", "a URL with a user name is not fetched");
        parse(
            "https://ex\u{430}mple.com/",
            "`ex\u{430}mple.com` is no host name; write international names as xn--",
        );
        parse("https://example.com\\@evil.com", "https://example.com/%5C@evil.com");
    }

    #[test]
    fn links() {
        let page = Address::parse("https://example.com/docs/intro?x=1").unwrap();
        let check = |link: &str, expected: Option<&str>| {
            assert_eq!(page.join(link).map(|address| address.to_string()).as_deref(), expected);
        };
        check("next", Some("https://example.com/docs/next"));
        check("../a/./b", Some("https://example.com/a/b"));
        check("../../../..", Some("https://example.com/"));
        check("/root", Some("https://example.com/root"));
        check("?y=2", Some("https://example.com/docs/intro?y=2"));
        check("#part", Some("https://example.com/docs/intro?x=1"));
        check("//other.org/z", Some("https://other.org/z"));
        check("http://other.org", Some("http://other.org/"));
        check("javascript:alert(1)", None);
        check("mailto:a@b.c", None);
    }
}
