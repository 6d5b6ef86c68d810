//! What a client may ask for.

use serde::{Deserialize, Serialize};

/// The client's mark on a request, which its answer carries too.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(i64),
    Text(String),
}

/// A request with its mark.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: Option<Id>,
    pub(super) what: What,
}

#[derive(Debug, PartialEq)]
pub(super) enum What {
    Prompt { text: String },
    Steer { text: String },
    FollowUp { text: String },
    Abort,
    Continue,
    State,
    Messages { from: usize },
    Answer { question: String, approved: bool, reason: Option<String> },
    Reload { approved: bool },
}

/// A line that is no request.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed {
    /// The mark, if the line has one that can be told.
    pub(super) id: Option<Id>,
    pub(super) problem: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Prompt,
    Steer,
    FollowUp,
    Abort,
    Continue,
    State,
    Messages,
    Answer,
    Reload,
}

/// Every field that some request has. Read straight from the text, so that a field that is unknown
/// or there twice is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    id: Option<Id>,
    #[serde(rename = "type")]
    kind: Kind,
    text: Option<String>,
    from: Option<usize>,
    question: Option<String>,
    approved: Option<bool>,
    reason: Option<String>,
}

/// The mark alone, of a line that may be wrong elsewhere.
#[derive(Deserialize)]
struct Mark {
    id: Option<Id>,
}

impl Request {
    pub(super) fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let fields: Fields = serde_json::from_slice(line).map_err(|problem| Malformed {
            id: serde_json::from_slice(line).ok().and_then(|mark: Mark| mark.id),
            problem: problem.to_string(),
        })?;
        let id = fields.id.clone();
        match fields.what() {
            Ok(what) => Ok(Self { id, what }),
            Err(problem) => Err(Malformed { id, problem }),
        }
    }
}

impl Fields {
    fn what(mut self) -> Result<What, String> {
        let what = match self.kind {
            Kind::Prompt => What::Prompt { text: self.text()? },
            Kind::Steer => What::Steer { text: self.text()? },
            Kind::FollowUp => What::FollowUp { text: self.text()? },
            Kind::Abort => What::Abort,
            Kind::Continue => What::Continue,
            Kind::State => What::State,
            Kind::Messages => What::Messages { from: self.from.take().unwrap_or(0) },
            Kind::Answer => What::Answer {
                question: self.question.take().ok_or("`question` is missing")?,
                approved: self.approved.take().ok_or("`approved` is missing")?,
                reason: self.reason.take(),
            },
            Kind::Reload => What::Reload { approved: self.approved.take().unwrap_or(false) },
        };
        match self.left() {
            None => Ok(what),
            Some(field) => {
                Err(format!("`{field}` does not belong to a request of type `{}`", self.word()))
            }
        }
    }

    fn text(&mut self) -> Result<String, String> {
        let text = self.text.take().ok_or("`text` is missing")?;
        if text.trim().is_empty() {
            return Err("`text` is empty".into());
        }
        Ok(text)
    }

    /// A field that is there and that no step took.
    fn left(&self) -> Option<&'static str> {
        let left = [
            ("text", self.text.is_some()),
            ("from", self.from.is_some()),
            ("question", self.question.is_some()),
            ("approved", self.approved.is_some()),
            ("reason", self.reason.is_some()),
        ];
        left.into_iter().find_map(|(field, is_there)| is_there.then_some(field))
    }

    fn word(&self) -> String {
        match serde_json::to_value(self.kind) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_anything_else_says_why_not() {
        let read = |line: &str| Request::parse(line.as_bytes());
        let what = |line: &str| read(line).unwrap().what;
        assert_eq!(what(r#"{"type":"steer","text":"so"}"#), What::Steer { text: "so".into() });
        assert_eq!(what(r#"{"type":"messages"}"#), What::Messages { from: 0 });
        assert_eq!(what(r#"{"type":"reload"}"#), What::Reload { approved: false });
        assert_eq!(read(r#"{"id":"a","type":"state"}"#).unwrap().id, Some(Id::Text("a".into())));
        for (line, id, says) in [
            ("", None, "EOF"),
            ("[]", None, "invalid"),
            ("\u{1}", None, "expected value"),
            (r#"{"type":"prompt""#, None, "EOF"),
            (r#"{"id":7,"type":"fly"}"#, Some(Id::Number(7)), "unknown variant `fly`"),
            (r#"{"id":7,"type":"prompt"}"#, Some(Id::Number(7)), "`text` is missing"),
            (r#"{"type":"prompt","text":" "}"#, None, "`text` is empty"),
            (r#"{"type":"abort","text":"x"}"#, None, "`text` does not belong"),
            (r#"{"type":"abort","type":"abort"}"#, None, "duplicate field `type`"),
            (r#"{"type":"abort","why":1}"#, None, "unknown field `why`"),
            (r#"{"type":"answer","question":"q1"}"#, None, "`approved` is missing"),
            (r#"{"type":"steer","text":"\ud800"}"#, None, "hex escape"),
        ] {
            let malformed = read(line).unwrap_err();
            assert_eq!(malformed.id, id, "{line}");
            assert!(malformed.problem.contains(says), "{line}: {}", malformed.problem);
        }
    }
}
