//! Secrets on the way out: what a server echoes back must not reach a model, a person, a file or
//! another server.
//!
//! A secret is found as it is, as JSON and as a URL write it. Masked is what a guest hands over, and
//! before that what servers answer, so that an honest guest never holds it. One that a server or a
//! guest has encoded otherwise, compressed or taken apart is not found; that is outside of what
//! masking can promise.

use crate::call::Reply;
use crate::services::secret::Secret;
use cofferdam_agent::hook::{Amendment, Question, Refusal, Verdict};
use cofferdam_agent::message::Content;
use cofferdam_agent::tool::ToolResult;
use memchr::memmem;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

const MASK: &str = "[secret]";
/// Where the length must stay, each byte becomes one of these; it is at home in URLs and headers.
const MASK_BYTE: u8 = b'*';

/// The spellings of all secrets.
fn forms(secrets: &[Secret]) -> impl Iterator<Item = &str> {
    secrets.iter().flat_map(|secret| &secret.forms).map(String::as_str)
}

/// Bytes of the longest spelling of a secret.
pub(crate) fn longest(secrets: &[Secret]) -> usize {
    forms(secrets).map(str::len).max().unwrap_or(0)
}

/// A text without the secrets.
pub(crate) fn text<'a>(text: &'a str, secrets: &[Secret]) -> Cow<'a, str> {
    let mut masked = String::new();
    let mut from = 0;
    for found in covered(text.as_bytes(), forms(secrets).map(str::as_bytes)) {
        masked.push_str(&text[from..found.start]);
        masked.push_str(MASK);
        from = found.end;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    masked.push_str(&text[from..]);
    Cow::Owned(masked)
}

/// The parts that belong to a secret. Secrets may overlap, one may hold another, and of none of them
/// shall a part be left.
fn covered<'f>(bytes: &[u8], forms: impl Iterator<Item = &'f [u8]>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for form in forms {
        let finder = memmem::Finder::new(form);
        let mut from = 0;
        while let Some(at) = finder.find(&bytes[from..]) {
            found.push(from + at..from + at + form.len());
            from += at + 1;
        }
    }
    found.sort_by_key(|range| range.start);
    found.into_iter().fold(Vec::new(), |mut merged: Vec<Range<usize>>, next| {
        match merged.last_mut() {
            Some(last) if next.start < last.end => last.end = last.end.max(next.end),
            _ => merged.push(next),
        }
        merged
    })
}

/// Whether a text that is not masked but refused holds a secret, in any case of letters.
pub(crate) fn betrays(text: &str, secrets: &[Secret]) -> bool {
    let text = text.to_ascii_lowercase();
    forms(secrets).any(|form| text.contains(&form.to_ascii_lowercase()))
}

/// An answer without the secrets.
pub(crate) fn reply(reply: Reply, secrets: &[Secret]) -> Reply {
    if secrets.is_empty() {
        return reply;
    }
    match reply {
        // Asked for without a grant, so that no server was either.
        Reply::Tools(tools) => Reply::Tools(tools),
        Reply::Tool(answer) => Reply::Tool(result(answer, secrets)),
        Reply::Prepared(value) => Reply::Prepared(json(value, secrets)),
        Reply::Verdict(said) => Reply::Verdict(verdict(said, secrets)),
        Reply::Amendment(amendment) => Reply::Amendment(Amendment {
            content: amendment.content.map(|content| contents(content, secrets)),
            details: amendment.details.map(|details| json(details, secrets)),
            ..amendment
        }),
    }
}

fn verdict(verdict: Verdict, secrets: &[Secret]) -> Verdict {
    let owned = |shown: &str| text(shown, secrets).into_owned();
    match verdict {
        Verdict::Proceed => Verdict::Proceed,
        Verdict::Rewrite(arguments) => {
            Verdict::Rewrite(Arc::new(object(Arc::unwrap_or_clone(arguments), secrets)))
        }
        Verdict::Block(refusal) => {
            Verdict::Block(Refusal { reason: owned(&refusal.reason), ..refusal })
        }
        Verdict::Ask(question) => Verdict::Ask(Question {
            title: owned(&question.title),
            message: owned(&question.message),
        }),
    }
}

/// A result without the secrets.
pub(crate) fn result(mut result: ToolResult, secrets: &[Secret]) -> ToolResult {
    if secrets.is_empty() {
        return result;
    }
    result.content = contents(result.content, secrets);
    result.details = result.details.map(|details| json(details, secrets));
    result
}

fn contents(contents: Vec<Content>, secrets: &[Secret]) -> Vec<Content> {
    contents
        .into_iter()
        .map(|content| match content {
            Content::Text(shown) => Content::Text(text(&shown, secrets).into_owned()),
            Content::Image(mut image) => {
                image.media_type = text(&image.media_type, secrets).into_owned();
                image.data = bytes(image.data.to_vec(), secrets).into();
                Content::Image(image)
            }
        })
        .collect()
}

/// A JSON value without the secrets. Its depth is bounded by the parser that made it.
pub(crate) fn json(value: Value, secrets: &[Secret]) -> Value {
    match value {
        Value::String(shown) => Value::String(text(&shown, secrets).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| json(item, secrets)).collect(),
        Value::Object(map) => Value::Object(object(map, secrets)),
        // A secret may be all digits.
        Value::Number(number) => match text(&number.to_string(), secrets) {
            Cow::Borrowed(_) => Value::Number(number),
            Cow::Owned(masked) => Value::String(masked),
        },
        other => other,
    }
}

fn object(map: Map<String, Value>, secrets: &[Secret]) -> Map<String, Value> {
    let entries = map.into_iter();
    entries.map(|(key, value)| (text(&key, secrets).into_owned(), json(value, secrets))).collect()
}

/// Bytes without the secrets, as many as before.
pub(crate) fn bytes(mut value: Vec<u8>, secrets: &[Secret]) -> Vec<u8> {
    for found in covered(&value, forms(secrets).map(str::as_bytes)) {
        value[found].fill(MASK_BYTE);
    }
    value
}

/// The masking of bytes that come in pieces: a secret may lie across two of them.
pub(crate) struct Stream {
    forms: Vec<Vec<u8>>,
    /// The end of what came, as long as it may be the beginning of a secret.
    held: Vec<u8>,
    /// The same as it will go on, should it be none: parts of it may belong to another secret.
    shown: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(secrets: &[Secret]) -> Self {
        Self {
            forms: forms(secrets).map(|form| form.as_bytes().to_vec()).collect(),
            held: Vec::new(),
            shown: Vec::new(),
        }
    }

    /// What can go on of what was held and of this piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        let mut shown = std::mem::take(&mut self.shown);
        bytes.extend_from_slice(piece);
        shown.extend_from_slice(piece);
        for found in covered(&bytes, self.forms.iter().map(Vec::as_slice)) {
            shown[found].fill(MASK_BYTE);
        }
        let held = self.forms.iter().map(|form| beginning(&bytes, form)).max().unwrap_or(0);
        self.held = bytes.split_off(bytes.len() - held);
        self.shown = shown.split_off(shown.len() - held);
        shown
    }

    /// Bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// What was held, once nothing more comes.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.held.clear();
        std::mem::take(&mut self.shown)
    }
}

/// How many bytes at the end are the beginning of a form, and not the whole.
fn beginning(bytes: &[u8], form: &[u8]) -> usize {
    (1..form.len().min(bytes.len() + 1)).rev().find(|&n| bytes.ends_with(&form[..n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> [Secret; 1] {
        [Secret::sample("https://api.example.com", "authorization", "s3cret\"token")]
    }

    #[test]
    fn secrets_are_masked_in_texts_and_json() {
        let shown = ToolResult {
            details: Some(serde_json::json!({ "s3cret\"token": ["x s3cret\"token y", 1] })),
            ..ToolResult::text("echo: s3cret\"token s3cret\\\"token s3cret%22token")
        };
        let masked = result(shown, &secrets());
        assert_eq!(masked.content, [Content::Text("echo: [secret] [secret] [secret]".into())]);
        assert_eq!(masked.details, Some(serde_json::json!({ "[secret]": ["x [secret] y", 1] })));
        let digits = [Secret::sample("https://api.example.com", "pin", "31415926")];
        assert_eq!(
            json(serde_json::json!([131415926, 5]), &digits),
            serde_json::json!(["1[secret]", 5])
        );
        assert!(betrays("S3CRET\"token.example.com", &secrets()));
    }

    /// Masked one after the other, the shorter of two secrets would give away the rest of the longer.
    #[test]
    fn secrets_that_overlap() {
        let sample = |value| Secret::sample("https://api.example.com", "authorization", value);
        let secrets = [sample("token"), sample("token-of-mine"), sample("minetoo")];
        assert_eq!(text("a token-of-minetoo b token", &secrets), "a [secret] b [secret]");
        assert_eq!(bytes(b"token-of-minetoo.".to_vec(), &secrets), b"****************.");
        for size in 1..18 {
            let mut stream = Stream::new(&secrets);
            let whole = b"x token-of-minetoken-o";
            let mut out: Vec<u8> = whole.chunks(size).flat_map(|p| stream.push(p)).collect();
            out.extend(stream.finish());
            assert_eq!(
                String::from_utf8_lossy(&out),
                "x *************token-o".replace("token", "*****"),
                "{size}"
            );
        }
    }

    #[test]
    fn answers_of_every_kind() {
        let refusal = Refusal { reason: "s3cret\"token".into(), terminate: None };
        let Reply::Verdict(Verdict::Block(refusal)) =
            reply(Reply::Verdict(Verdict::Block(refusal)), &secrets())
        else {
            panic!("another answer")
        };
        assert_eq!(refusal.reason, "[secret]");
        let arguments = serde_json::json!({ "a": "s3cret\"token" }).as_object().cloned();
        let rewrite = Verdict::Rewrite(Arc::new(arguments.expect("an object")));
        let Reply::Verdict(Verdict::Rewrite(arguments)) =
            reply(Reply::Verdict(rewrite), &secrets())
        else {
            panic!("another answer")
        };
        assert_eq!(arguments["a"], "[secret]");
    }

    #[test]
    fn bytes_keep_their_length() {
        let masked = bytes(b"\xff s3cret\"token.".to_vec(), &secrets());
        assert_eq!(masked, b"\xff ************.");
    }

    /// Whatever the pieces, the whole comes out masked and as long as it was.
    #[test]
    fn pieces() {
        let whole = b"a s3cret\"token, s3cret\"s3cret\"token s3cret%22token s3c";
        for size in 1..whole.len() {
            let mut stream = Stream::new(&secrets());
            let mut out: Vec<u8> =
                whole.chunks(size).flat_map(|piece| stream.push(piece)).collect();
            out.extend(stream.finish());
            let out = String::from_utf8(out).expect("text");
            assert_eq!(out, "a ************, s3cret\"************ ************** s3c", "{size}");
        }
    }
}
