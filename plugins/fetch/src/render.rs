//! From a response to a reply: by its type, within the limit.

use cofferdam_plugin::{Content, Failure, Reply, Result, Value, json};

use crate::address::Address;
use crate::follow::Response;
use crate::html;

pub(crate) fn reply(
    address: &Address,
    response: &Response,
    raw: bool,
    from: usize,
    limit: usize,
) -> Result {
    let media_type = media_type(response);
    let details = details(address, response);
    if media_type.starts_with("image/") && response.status == 200 && !response.cut {
        let image = Content::Image { media_type, data: response.body.clone() };
        return Ok(Reply::text(format!("image at {address}")).and(image).details(details));
    }
    let body = text(response);
    let body = match media_type.as_str() {
        _ if raw && is_text(&media_type, &response.body) => body,
        "text/html" | "application/xhtml+xml" => html::text(&body, address),
        kind if kind == "application/json" || kind.ends_with("+json") => pretty(&body),
        kind if is_text(kind, &response.body) => body,
        kind => {
            let size = response.body.len();
            return Err(Failure::rejected(format!(
                "{address} is `{kind}` ({size} bytes), not text"
            ))
            .code("not-text"));
        }
    };
    let mut text = window(&body, from, limit);
    if response.cut {
        text.push_str("\n[the body was longer than this tool reads]");
    }
    if response.status < 400 {
        return Ok(Reply::text(text).details(details));
    }
    Ok(Reply::text(format!("{address} answered with status {}\n\n{text}", response.status))
        .details(details)
        .error())
}

fn details(address: &Address, response: &Response) -> Value {
    let headers: serde_json::Map<_, _> =
        response.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({ "url": address.to_string(), "status": response.status, "headers": headers, "bytes": response.body.len() })
}

fn media_type(response: &Response) -> String {
    let header = response.header("content-type").unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Without a type, what holds no NUL and is UTF-8 is text.
fn is_text(media_type: &str, body: &[u8]) -> bool {
    match media_type {
        "" => !body.contains(&0) && std::str::from_utf8(body).is_ok(),
        kind => {
            let parts = ["json", "xml", "javascript", "yaml", "toml", "csv"];
            kind.starts_with("text/") || parts.iter().any(|part| kind.contains(part))
        }
    }
}

/// UTF-8 unless the server says Latin-1, whose bytes are the first characters of Unicode.
fn text(response: &Response) -> String {
    let header = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    if ["iso-8859-1", "latin1", "windows-1252"].iter().any(|charset| header.contains(charset)) {
        return response.body.iter().copied().map(char::from).collect();
    }
    String::from_utf8_lossy(&response.body).into_owned()
}

/// Indented; as it came if it does not parse.
fn pretty(text: &str) -> String {
    let value = serde_json::from_str::<Value>(text).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| text.to_owned())
}

/// A part of a text, and a note on how to get the rest.
fn window(text: &str, from: usize, limit: usize) -> String {
    let place = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (start, end) = (place(from), place(from.saturating_add(limit)));
    let mut part = text[start..end].to_owned();
    if end < text.len() {
        let left = text[end..].chars().count();
        part.push_str(&format!(
            "\n[{left} characters left, go on with \"from\": {}]",
            from.saturating_add(limit)
        ));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, kind: &str, body: &[u8]) -> Response {
        let headers = vec![("content-type".to_owned(), kind.to_owned())];
        Response { status, headers, body: body.to_vec(), cut: false }
    }

    fn check(response: &Response, expected: &str) {
        let address = Address::parse("https://a.org/").unwrap();
        let text = reply(&address, response, false, 0, 40);
        assert_eq!(text.map_or_else(|failure| failure.message, |reply| reply.to_text()), expected);
    }

    #[test]
    fn by_type() {
        check(&response(200, "application/json", b"{\"a\":[1]}"), "{\n  \"a\": [\n    1\n  ]\n}");
        check(&response(200, "text/html; charset=utf-8", b"<p>Hi&amp;bye"), "Hi&bye");
        check(&response(200, "text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
        check(
            &response(200, "application/zip", b"PK"),
            "https://a.org/ is `application/zip` (2 bytes), not text",
        );
        check(&response(404, "text/plain", b"no"), "https://a.org/ answered with status 404\n\nno");
    }

    #[test]
    fn long_texts_come_in_parts() {
        assert_eq!(window("äbcdef", 0, 2), "äb\n[4 characters left, go on with \"from\": 2]");
        assert_eq!(window("äbcdef", 4, 2), "ef");
        assert_eq!(window("äbcdef", 40, 2), "");
    }
}
