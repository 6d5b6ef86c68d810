//! `[model]`: which model answers, where it is, and where its credential comes from.

use cofferdam_providers::Dialect;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `[model]`: which model answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "provider", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelEntry {
    /// Answers from a file: offline, the same every time.
    Scripted {
        /// A JSON list of answers.
        script: PathBuf,
    },
    /// Anthropic Messages.
    Anthropic(Box<RemoteEntry>),
    /// OpenAI Chat Completions.
    Openai(Box<RemoteEntry>),
    /// Any server that speaks OpenAI Chat Completions.
    OpenaiCompatible(Box<RemoteEntry>),
    /// OpenAI Responses.
    OpenaiResponses(Box<RemoteEntry>),
    /// Google Gemini.
    Gemini(Box<RemoteEntry>),
}

/// A model behind a server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteEntry {
    /// The provider's name for the model.
    pub name: String,
    /// The server; the provider's own by default.
    pub base_url: Option<String>,
    /// The environment variable with the credential. The provider's own server gets the usual one
    /// (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`) if nothing else is said.
    pub api_key_env: Option<String>,
    /// A file with the credential, read at every model call.
    pub api_key_file: Option<PathBuf>,
    /// A program and its arguments that print the credential, run at every model call.
    pub api_key_command: Option<Vec<String>>,
    /// More headers of each request.
    #[serde(default)]
    pub headers: BTreeMap<String, Hidden>,
    /// More fields of each request, merged into it table by table.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Tokens of an answer; the provider's default if absent.
    pub max_output_tokens: Option<u32>,
    /// How much the model shall think: `off`, `minimal`, `low`, `medium` or `high`.
    #[serde(default)]
    pub thinking: ThinkingEntry,
    /// Whether the model is shown images. By default yes, save with `openai-compatible`.
    pub images: Option<bool>,
    /// Whose Chat wire an `openai-compatible` server speaks; by its address if absent.
    #[serde(default, deserialize_with = "dialect")]
    pub dialect: Option<Dialect>,
    /// How long to wait for the server.
    #[serde(default)]
    pub timeouts: TimeoutsEntry,
    /// How often a request is sent again that failed before anything was answered.
    pub retries: Option<u32>,
}

/// A text that may be a credential. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

/// How much a model shall think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingEntry {
    /// Not at all.
    #[default]
    Off,
    /// As little as the provider offers.
    Minimal,
    /// A little.
    Low,
    /// A fair amount.
    Medium,
    /// A lot.
    High,
}

/// How long to wait for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsEntry {
    /// Seconds for a connection.
    #[serde(deserialize_with = "seconds")]
    pub connect_s: Option<Duration>,
    /// Seconds for the head of the response.
    #[serde(deserialize_with = "seconds")]
    pub headers_s: Option<Duration>,
    /// Seconds between two pieces of the response.
    #[serde(deserialize_with = "seconds")]
    pub idle_s: Option<Duration>,
}

impl ModelEntry {
    /// The provider, by the word for it in the file.
    pub fn provider(&self) -> &'static str {
        match self {
            Self::Scripted { .. } => "scripted",
            Self::Anthropic(_) => "anthropic",
            Self::Openai(_) => "openai",
            Self::OpenaiCompatible(_) => "openai-compatible",
            Self::OpenaiResponses(_) => "openai-responses",
            Self::Gemini(_) => "gemini",
        }
    }

    /// The entry of a model behind a server.
    pub fn remote(&self) -> Option<&RemoteEntry> {
        match self {
            Self::Scripted { .. } => None,
            Self::Anthropic(entry)
            | Self::Openai(entry)
            | Self::OpenaiCompatible(entry)
            | Self::OpenaiResponses(entry)
            | Self::Gemini(entry) => Some(entry),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let Some(entry) = self.remote() else { return Ok(()) };
        if entry.name.trim().is_empty() {
            return Err("[model] has an empty `name`: give the provider's name of a model".into());
        }
        let sources = [
            entry.api_key_env.is_some(),
            entry.api_key_file.is_some(),
            entry.api_key_command.is_some(),
        ];
        if sources.iter().filter(|given| **given).count() > 1 {
            return Err("[model] says twice where the credential comes from: keep one of \
                        `api_key_env`, `api_key_file` and `api_key_command`"
                .into());
        }
        if entry.api_key_command.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "[model] has an empty `api_key_command`: give a program and its arguments, \
                        as in `[\"pass\", \"show\", \"model\"]`"
                    .into(),
            );
        }
        if entry.dialect.is_some() && !matches!(self, Self::OpenaiCompatible(_)) {
            return Err("[model] has a `dialect`, which only `provider = \"openai-compatible\"` \
                        takes"
                .into());
        }
        Ok(())
    }

    pub(super) fn relative_to(&mut self, folder: &Path) {
        match self {
            Self::Scripted { script } => *script = folder.join(&*script),
            Self::Anthropic(entry)
            | Self::Openai(entry)
            | Self::OpenaiCompatible(entry)
            | Self::OpenaiResponses(entry)
            | Self::Gemini(entry) => {
                if let Some(file) = &mut entry.api_key_file {
                    *file = folder.join(&*file);
                }
            }
        }
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

fn dialect<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Dialect>, D::Error> {
    let name = String::deserialize(input)?;
    match Dialect::NAMES.iter().find(|(known, _)| *known == name) {
        Some((_, dialect)) => Ok(Some(*dialect)),
        None => {
            let names: Vec<&str> = Dialect::NAMES.iter().map(|(name, _)| *name).collect();
            Err(D::Error::custom(format!("unknown dialect `{name}`: one of {}", names.join(", "))))
        }
    }
}

fn seconds<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    let seconds = f64::deserialize(input)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() && duration <= Duration::from_secs(86_400) => {
            Ok(Some(duration))
        }
        _ => Err(D::Error::custom(format!(
            "{seconds} is no number of seconds from above 0 to 86400"
        ))),
    }
}
