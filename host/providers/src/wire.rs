//! What a wire is to the rest of the crate: a request to make and a decoder of its events.

use crate::draft::{Draft, Ending};
use crate::endpoint::{Endpoint, Wire};
use crate::history;
use crate::ids::IdRule;
use crate::{anthropic, chat, gemini, responses};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use cofferdam_agent::message::Image;
use cofferdam_agent::model::{Request, Secret};
use cofferdam_agent::tool::Declaration;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// Reads the events of one answer into a [`Draft`].
pub(crate) trait Decoder: Send {
    /// Takes the data of one event.
    fn event(&mut self, data: &Value, draft: &mut Draft) -> Flow;

    /// The ending, as far as it was stated. `None` means that the answer is not complete.
    fn ending(&mut self, draft: &mut Draft) -> Option<Ending>;
}

/// Whether there is more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on.
    More,
    /// The ending is known; what may still come adds to it.
    Stated,
    /// The answer is over; nothing that may still come is of interest.
    Over,
}

/// A request as it is sent, save for its credential.
#[derive(Debug)]
pub(crate) struct Call {
    wire: Wire,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    /// The request in the words of the endpoint's wire.
    pub(crate) fn new(endpoint: &Endpoint, request: &Request) -> Self {
        let messages = history::messages(endpoint, request);
        let mut body = match endpoint.wire {
            Wire::Anthropic => anthropic::request::body(endpoint, request, &messages),
            Wire::Chat(dialect) => chat::request::body(endpoint, dialect, request, &messages),
            Wire::Responses => responses::request::body(endpoint, request, &messages),
            Wire::Gemini => gemini::request::body(endpoint, request, &messages),
        };
        merge(&mut body, &endpoint.extra);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if endpoint.wire == Wire::Anthropic {
            let version = HeaderValue::from_static(anthropic::request::VERSION);
            headers.insert(HeaderName::from_static("anthropic-version"), version);
        }
        Self { wire: endpoint.wire, headers, body: Value::Object(body).to_string().into() }
    }

    /// The header that carries the credential. Never in the address, which is logged by many.
    pub(crate) fn authorization(&self, secret: &Secret) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self.wire {
            Wire::Anthropic => (HeaderName::from_static("x-api-key"), secret.expose().to_owned()),
            Wire::Gemini => (HeaderName::from_static("x-goog-api-key"), secret.expose().to_owned()),
            Wire::Chat(_) | Wire::Responses => {
                (AUTHORIZATION, format!("Bearer {}", secret.expose()))
            }
        };
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

impl Wire {
    /// The path of a request below the path of the base URL, and its query. A base URL without a
    /// path gets the version that the provider's own has. With one, each wire goes by the custom of
    /// its clients; `docs/models.md` has the table.
    pub(crate) fn path(
        self,
        base: &str,
        model: &str,
    ) -> (String, Option<(&'static str, &'static str)>) {
        match self {
            Self::Anthropic if base.ends_with("/v1") => (format!("{base}/messages"), None),
            Self::Anthropic => (format!("{base}/v1/messages"), None),
            Self::Chat(_) | Self::Responses => {
                let base = if base.is_empty() { "/v1" } else { base };
                let what = if self == Self::Responses { "responses" } else { "chat/completions" };
                (format!("{base}/{what}"), None)
            }
            Self::Gemini => {
                let base = if base.is_empty() { "/v1beta" } else { base };
                let model = model.strip_prefix("models/").unwrap_or(model);
                (format!("{base}/models/{model}:streamGenerateContent"), Some(("alt", "sse")))
            }
        }
    }

    pub(crate) fn decoder(self) -> Box<dyn Decoder> {
        match self {
            Self::Anthropic => Box::<anthropic::decode::Messages>::default(),
            Self::Chat(_) => Box::<chat::decode::Chunks>::default(),
            Self::Responses => Box::<responses::decode::Items>::default(),
            Self::Gemini => Box::<gemini::decode::Candidates>::default(),
        }
    }

    pub(crate) fn id_rule(self) -> IdRule {
        match self {
            Self::Anthropic | Self::Responses | Self::Gemini => {
                IdRule::Plain { max: 64, keep_own: false }
            }
            Self::Chat(dialect) => dialect.id_rule(),
        }
    }
}

/// The schema of a tool's arguments as every provider takes it.
pub(crate) fn parameters(tool: &Declaration) -> Value {
    let mut parameters = tool.parameters.clone();
    if let Value::Object(root) = &mut parameters {
        // Refused by some, of no use to any.
        root.shift_remove("$schema");
    }
    parameters
}

/// An image as base64.
pub(crate) fn base64(image: &Image) -> String {
    BASE64.encode(&image.data)
}

/// An image as a `data:` address.
pub(crate) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, base64(image))
}

/// A JSON object, where a macro made it.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Merges the operator's fields into a request, object by object; anything else is replaced.
fn merge(into: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (into.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Dialect;
    use serde_json::json;

    #[test]
    fn paths_add_what_the_base_url_lacks() {
        let chat = Wire::Chat(Dialect::Generic);
        for (wire, base, want) in [
            (Wire::Anthropic, "", "/v1/messages"),
            (Wire::Anthropic, "/v1", "/v1/messages"),
            (Wire::Anthropic, "/anthropic", "/anthropic/v1/messages"),
            (chat, "/v1", "/v1/chat/completions"),
            (chat, "", "/v1/chat/completions"),
            (chat, "/openai/v1", "/openai/v1/chat/completions"),
            (Wire::Responses, "/v1", "/v1/responses"),
            (Wire::Gemini, "", "/v1beta/models/m:streamGenerateContent"),
            (Wire::Gemini, "/v1beta", "/v1beta/models/m:streamGenerateContent"),
        ] {
            assert_eq!(wire.path(base, "m").0, want, "{wire:?} {base}");
        }
    }

    #[test]
    fn the_documented_paths_are_those_that_are_asked_for() {
        let page = include_str!("../../docs/models.md");
        let table = page.split("| asks |\n").nth(1).unwrap();
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        let mut count = 0;
        for row in rows {
            let cells: Vec<Vec<&str>> =
                row.split('|').map(|cell| cell.split('`').skip(1).step_by(2).collect()).collect();
            let [_, providers, bases, asks, _] = &cells[..] else { panic!("{row}") };
            for (provider, base) in providers.iter().flat_map(|p| bases.iter().map(move |b| (p, b)))
            {
                let (wire, end) = match *provider {
                    "anthropic" => (Wire::Anthropic, ""),
                    "openai" => (Wire::Chat(Dialect::OpenAi), "chat/completions"),
                    "openai-compatible" => (Wire::Chat(Dialect::Generic), "chat/completions"),
                    "openai-responses" => (Wire::Responses, "responses"),
                    "gemini" => (Wire::Gemini, ""),
                    other => panic!("{other}"),
                };
                let base = base.strip_prefix("http://host").unwrap();
                let want = asks[0].replace("NAME", "m").replace('…', end);
                assert_eq!(wire.path(base, "m").0, want, "{row}");
                count += 1;
            }
        }
        assert_eq!(count, 19);
    }

    #[test]
    fn extra_fields_are_merged_object_by_object() {
        let mut body = object(json!({"a": {"x": 1}, "b": [1], "c": 1}));
        let extra = object(json!({"a": {"y": 2}, "b": [2], "d": {"z": 3}}));
        merge(&mut body, &extra);
        let want = json!({"a": {"x": 1, "y": 2}, "b": [2], "c": 1, "d": {"z": 3}});
        assert_eq!(Value::Object(body), want);
    }
}
