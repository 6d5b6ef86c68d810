//! Paths of requests: what hides where it leads is refused, not understood.

/// Times that a path is decoded. Servers behind proxies decode it more than once.
const ROUNDS_MAX: usize = 4;

/// Whether a path has `.` or `..` segments, a slash in disguise or a control character, in any
/// spelling.
pub(super) fn is_disguised(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    for round in 0..=ROUNDS_MAX {
        // A slash that was not there before it was decoded is one in disguise.
        let slashes = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'/').count();
        if slashes(&bytes) != slashes(path.as_bytes())
            || bytes.iter().any(|b| b.is_ascii_control() || *b == b'\\')
            // Never in a text: the overlong spelling of a dot or a slash.
            || (round > 0 && bytes.iter().any(|b| matches!(b, 0xc0 | 0xc1)))
            || bytes.split(|b| *b == b'/').any(is_dots)
        {
            return true;
        }
        match decoded(&bytes) {
            Some(next) => bytes = next,
            None => return false,
        }
    }
    // Nobody has a reason to encode a path so often.
    true
}

/// Whether a segment is `.` or `..`, also with parameters or the dots and spaces that some servers
/// take off its end.
fn is_dots(segment: &[u8]) -> bool {
    let name = segment.split(|b| *b == b';').next().unwrap_or_default();
    !name.is_empty() && name.iter().all(|b| matches!(b, b'.' | b' ')) && name.contains(&b'.')
}

/// The path with one layer of percent-encoding taken off; none if it has none.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let code = after.split_first_chunk::<2>().filter(|_| first == b'%');
        match code.and_then(|(digits, after)| Some((hex(digits)?, after))) {
            Some((byte, after)) => {
                plain.push(byte);
                rest = after;
            }
            None => {
                plain.push(first);
                rest = after;
            }
        }
    }
    (plain.len() < path.len()).then_some(plain)
}

fn hex(digits: &[u8; 2]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// Whether `path` is at or below `prefix`.
pub(super) fn is_prefix(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || prefix.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disguises() {
        for path in [
            "/v1/..",
            "/v1/../x",
            "/v1/./x",
            "/v1/%2e%2E/x",
            "/v1/.%2e/x",
            "/v1/..%2fx",
            "/v1/%2fx",
            "/v1\\x",
            "/v1/%5cx",
            "/v1/..;a=b/x",
            "/v1/%252e%252e/x",
            "/v1/%25252e%25252e/x",
            "/v1/..%00/x",
            "/v1/a%0d%0ab",
            "/v1/%c0%ae%c0%ae/x",
            "/v1/%c0%af",
            "/v1/...",
            "/v1/..%20/x",
            "/v1/%2525252525252e",
            "/v1/..%3bx/y",
        ] {
            assert!(is_disguised(path), "{path}");
        }
        for path in [
            "/",
            "/v1/",
            "/v1//x",
            "/v1/a..b",
            "/v1/.well-known",
            "/v1/100%",
            "/v1/%zz",
            "/v1/a%20b",
            "/v1/%c3%a9",
            "/v1/é",
            "/v1/a%25b",
            "/v1/x;y=z",
            "/v1/a.b/c",
            "/v1/%",
            "/v1/%2",
        ] {
            assert!(!is_disguised(path), "{path}");
        }
    }

    #[test]
    fn prefixes() {
        for (prefix, path, fits) in [
            ("/v1", "/v1", true),
            ("/v1", "/v1/x", true),
            ("/v1", "/v12", false),
            ("/v1/", "/v1/x", true),
            ("/v1/", "/v1", false),
            ("/v1/", "//v1/x", false),
            ("/v1/", "/V1/x", false),
            ("/", "/anything", true),
        ] {
            assert_eq!(is_prefix(prefix, path), fits, "{prefix} {path}");
        }
    }
}
