//! `[model]`: which model answers, where it is, and where its credential comes from.

use super::keys::{
    Key, Toml, anything, keys, list, map, path, seconds, some_text, switch, table, whole, word,
    words,
};
use cofferdam_providers::{Dialect, Patience, Wire};
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

/// The providers, and what each is.
const PROVIDERS: &[(&str, &str)] = &[
    ("anthropic", "Anthropic Messages."),
    ("openai", "OpenAI Chat Completions."),
    ("openai-compatible", "Any server that speaks OpenAI Chat Completions."),
    ("openai-responses", "OpenAI Responses."),
    ("gemini", "Google Gemini."),
    ("scripted", "Answers from a file: offline, the same every time."),
];
/// Those behind a server.
const REMOTE: &[&str] = &["anthropic", "openai", "openai-compatible", "openai-responses", "gemini"];

keys! {
    /// A model behind a server.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RemoteEntry {
        /// The provider's name for the model.
        pub name: String => some_text().required().such_as("claude-sonnet-5"),
        /// The server; the provider's own by default. `models.md` says what is asked for below it.
        pub base_url: Option<String> => some_text()
            .checked(server)
            .or_else("the provider's own server")
            .such_as("http://127.0.0.1:11434/v1"),
        /// The environment variable with the credential. The provider's own server gets the usual one
        /// (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`) if nothing else is said.
        pub api_key_env: Option<String> => some_text()
            .checked(variable)
            .or_else("the provider's usual one")
            .such_as("MODEL_KEY"),
        /// A file with the credential, read at every model call.
        pub api_key_file: Option<PathBuf> => path().or_else("none").such_as("key.txt"),
        /// A program and its arguments that print the credential, run at every model call.
        pub api_key_command: Option<Vec<String>> => list(some_text())
            .hidden()
            .or_else("none")
            .such_as(["pass", "show", "model"]),
        /// More headers of each request; they win over those of the wire.
        #[serde(default)]
        pub headers: BTreeMap<String, Hidden> => map(header, some_text().hidden())
            .or_else("none")
            .such_as(Toml("{ x-team = \"infra\" }")),
        /// More fields of each request, merged into it table by table.
        #[serde(default)]
        pub extra: Map<String, Value> => map(|_| Ok(()), anything())
            .or_else("none")
            .such_as(Toml("{ temperature = 0 }")),
        /// Tokens of an answer; the provider's default if absent.
        pub max_output_tokens: Option<u32> => whole(1, u32::MAX.into()).or_else("the provider's default"),
        /// How much the model shall think.
        #[serde(default)]
        pub thinking: ThinkingEntry => word(ThinkingEntry::WORDS).or(ThinkingEntry::default()),
        /// Whether the model is shown images. By default yes, save with `openai-compatible`.
        pub images: Option<bool> => switch().or_else("yes, save with `openai-compatible`"),
        /// Whose Chat wire an `openai-compatible` server speaks; by its address if absent.
        #[serde(default, deserialize_with = "dialect")]
        pub dialect: Option<Dialect> => word(&dialects())
            .only_with(&["openai-compatible"])
            .or_else("by the address of the server"),
        /// How long to wait for the server.
        #[serde(default)]
        pub timeouts: TimeoutsEntry => table(TimeoutsEntry::keys()),
        /// How often a request is sent again that failed before anything was answered.
        pub retries: Option<u32> => whole(0, 1_000).or(Patience::default().retries_max),
    }
}

/// A text that may be a credential. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Hidden(pub String);

words! {
    /// How much a model shall think.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    pub enum ThinkingEntry {
        /// Not at all.
        #[default]
        Off = "off",
        /// As little as the provider offers.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// A fair amount.
        Medium = "medium",
        /// A lot.
        High = "high",
    }
}

keys! {
    /// How long to wait for the server.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TimeoutsEntry {
        /// Seconds for a connection.
        #[serde(deserialize_with = "seconds_of")]
        pub connect_s: Option<Duration> => seconds().or(Patience::default().connect),
        /// Seconds for the head of the response.
        #[serde(deserialize_with = "seconds_of")]
        pub headers_s: Option<Duration> => seconds().or(Patience::default().headers),
        /// Seconds between two pieces of the response.
        #[serde(deserialize_with = "seconds_of")]
        pub idle_s: Option<Duration> => seconds().or(Patience::default().idle),
    }
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

    /// What may be written in `[model]`: the provider decides which of it.
    pub(crate) fn keys() -> Vec<Key> {
        let provider = word(PROVIDERS).required().such_as("anthropic");
        let script = path().required().only_with(&["scripted"]).such_as("answers.json");
        let mut keys = vec![
            provider.named("provider", "Who answers."),
            script.named("script", "A JSON list of answers, of `provider = \"scripted\"`."),
        ];
        keys.extend(RemoteEntry::keys().into_iter().map(|mut key| {
            if key.rule.only.is_empty() {
                key.rule.only = REMOTE;
            }
            key
        }));
        keys
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

    /// Keys of `[model]` that do not go together: one of them, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        let Some(entry) = self.remote() else { return Ok(()) };
        let sources = [
            ("api_key_env", entry.api_key_env.is_some()),
            ("api_key_file", entry.api_key_file.is_some()),
            ("api_key_command", entry.api_key_command.is_some()),
        ];
        let mut given = sources.iter().filter(|(_, given)| *given).map(|(key, _)| *key);
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            return Err((
                second,
                format!(
                    "the credential comes from two places, `{first}` and `{second}`: keep one of \
                     `api_key_env`, `api_key_file` and `api_key_command`"
                ),
            ));
        }
        if entry.api_key_command.as_ref().is_some_and(Vec::is_empty) {
            return Err((
                "api_key_command",
                "the command is empty: give a program and its arguments, as in `[\"pass\", \
                 \"show\", \"model\"]`"
                    .into(),
            ));
        }
        if matches!(self, Self::OpenaiCompatible(entry) if entry.base_url.is_none() && !has_server(entry.dialect))
        {
            return Err((
                "provider",
                "say where the server is, as in `base_url = \"http://127.0.0.1:11434/v1\"`".into(),
            ));
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

fn seconds_of<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
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

/// The dialects by their names.
fn dialects() -> Vec<(&'static str, &'static str)> {
    Dialect::NAMES.iter().map(|(name, _)| (*name, "")).collect()
}

fn has_server(dialect: Option<Dialect>) -> bool {
    dialect.is_some_and(|dialect| Wire::Chat(dialect).default_url().is_some())
}

fn server(text: &str) -> Result<(), String> {
    let takes =
        || Err("an address that begins with `http://` or `https://` and names a host".into());
    let Some((scheme, rest)) = text.trim().split_once("://") else { return takes() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if !matches!(scheme, "http" | "https") || authority.is_empty() {
        return takes();
    }
    match authority.contains('@') {
        true => Err("an address without a credential: use `api_key_env`, or `headers`".into()),
        false => Ok(()),
    }
}

pub(super) fn variable(text: &str) -> Result<(), String> {
    match text.trim().is_empty() || text.contains(['=', '\0']) {
        true => Err("the name of an environment variable".into()),
        false => Ok(()),
    }
}

pub(super) fn header(text: &str) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match !text.is_empty() && text.chars().all(letter) {
        true => Ok(()),
        false => Err("the name of a header, such as `x-team`".into()),
    }
}
