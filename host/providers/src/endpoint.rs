//! Where a model is and how to talk to it: what an operator may set, in one value.

use crate::chat::Dialect;
use crate::credential::CredentialSource;
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// The wires that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and what servers that call themselves compatible make of it.
    Chat(Dialect),
    /// OpenAI Responses.
    Responses,
    /// Google Gemini, `streamGenerateContent`.
    Gemini,
}

/// Where a model is and how to talk to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What is spoken there.
    pub wire: Wire,
    /// The name that answers carry as their provider.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// The server, without what the wire itself adds.
    pub base_url: String,
    /// Where the credential of each call comes from.
    pub credential: CredentialSource,
    /// More headers, which win over those of the wire.
    pub headers: Vec<Header>,
    /// More fields of the request, merged into it object by object.
    pub extra: Map<String, Value>,
    /// Tokens of an answer. Without a number it is the provider's default.
    pub max_output_tokens: Option<u32>,
    /// Whether the model is shown images; else a text stands for each.
    pub images: bool,
    /// How long to wait, and how often to ask again.
    pub patience: Patience,
}

/// A header of the operator's own. Its `Debug` shows no value, since it may carry a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// How long to wait for a provider, and how often to ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection.
    pub connect: Duration,
    /// For the head of the response: a local server may read a long prompt first.
    pub headers: Duration,
    /// Between two pieces of the response.
    pub idle: Duration,
    /// How often a request is sent again that failed before anything was answered, if the provider
    /// says that this may help.
    pub retries_max: u32,
    /// The first wait before a retry; each further one is twice as long. A provider that names a
    /// wait is obeyed instead.
    pub retry_wait: Duration,
    /// The longest wait. A provider that wants a longer one ends the call.
    pub retry_wait_max: Duration,
}

/// Connect 15 s, headers 10 min, idle 5 min, 3 retries after 1, 2 and 4 s, no wait above 60 s.
impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            headers: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            retries_max: 3,
            retry_wait: Duration::from_secs(1),
            retry_wait_max: Duration::from_secs(60),
        }
    }
}

impl Endpoint {
    /// A model with the defaults: the provider's own server, no credential, no images unless the
    /// provider's models take them.
    pub fn new(wire: Wire, model: impl Into<String>) -> Self {
        Self {
            wire,
            provider: wire.provider().into(),
            model: model.into(),
            base_url: wire.default_url().unwrap_or_default().into(),
            credential: CredentialSource::None,
            headers: Vec::new(),
            extra: Map::new(),
            max_output_tokens: None,
            images: wire.takes_images(),
            patience: Patience::default(),
        }
    }
}

impl Wire {
    fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat(Dialect::OpenAi) => "openai",
            Self::Chat(_) => "openai-compatible",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }

    /// The provider's own server, where the wire has one.
    pub fn default_url(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Chat(dialect) => dialect.default_url(),
            Self::Responses => Some("https://api.openai.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
        }
    }

    /// The environment variable that usually holds the provider's key.
    pub fn default_env(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Chat(dialect) => dialect.default_env(),
            Self::Responses => Some("OPENAI_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
        }
    }

    /// Models behind a compatible server often take none, and the server then refuses the request.
    fn takes_images(self) -> bool {
        !matches!(self, Self::Chat(dialect) if dialect != Dialect::OpenAi)
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: …", self.name)
    }
}
