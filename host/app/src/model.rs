//! The model that a configuration names.

use crate::assemble::AssembleError;
use crate::config::{ModelEntry, RemoteEntry, ThinkingEntry};
use cofferdam_agent::model::{Model, Thinking};
use cofferdam_providers::record::Recording;
use cofferdam_providers::scripted::{Script, Scripted};
use cofferdam_providers::{CredentialSource, Dialect, Endpoint, Header, Patience, Remote, Wire};
use std::path::Path;
use std::sync::Arc;

/// The model of an entry. With `record`, what it answers is written there as a script.
pub(crate) fn model(
    entry: &ModelEntry,
    record: Option<&Path>,
) -> Result<Arc<dyn Model>, AssembleError> {
    let model: Arc<dyn Model> = match entry {
        ModelEntry::Scripted { script } => Arc::new(scripted(script)?),
        ModelEntry::Anthropic(entry) => remote(Wire::Anthropic, entry)?,
        ModelEntry::Openai(entry) => remote(Wire::Chat(Dialect::OpenAi), entry)?,
        ModelEntry::OpenaiCompatible(entry) => {
            let of_url = || Dialect::of(entry.base_url.as_deref().unwrap_or_default());
            remote(Wire::Chat(entry.dialect.unwrap_or_else(of_url)), entry)?
        }
        ModelEntry::OpenaiResponses(entry) => remote(Wire::Responses, entry)?,
        ModelEntry::Gemini(entry) => remote(Wire::Gemini, entry)?,
    };
    Ok(match record {
        None => model,
        Some(path) => Arc::new(Recording::new(model, path)?),
    })
}

/// How much the model of an entry shall think.
pub(crate) fn thinking(entry: &ModelEntry) -> Thinking {
    match entry.remote().map(|entry| entry.thinking).unwrap_or_default() {
        ThinkingEntry::Off => Thinking::Off,
        ThinkingEntry::Minimal => Thinking::Minimal,
        ThinkingEntry::Low => Thinking::Low,
        ThinkingEntry::Medium => Thinking::Medium,
        ThinkingEntry::High => Thinking::High,
    }
}

/// The environment variable that holds the model's credential, if one does.
pub(crate) fn credential_env(entry: &ModelEntry) -> Option<&str> {
    entry.remote()?.api_key_env.as_deref()
}

fn scripted(path: &Path) -> Result<Scripted, AssembleError> {
    let text = std::fs::read_to_string(path)
        .map_err(|problem| AssembleError::ReadScript { path: path.into(), problem })?;
    let model = Script::parse(&text).and_then(Scripted::new);
    model.map_err(|problem| AssembleError::Script { path: path.into(), problem })
}

fn remote(wire: Wire, entry: &RemoteEntry) -> Result<Arc<dyn Model>, AssembleError> {
    let usual = Endpoint::new(wire, entry.name.as_str());
    let header = |(name, value): (&String, &crate::config::Hidden)| Header {
        name: name.clone(),
        value: value.0.clone(),
    };
    let patience = Patience {
        connect: entry.timeouts.connect_s.unwrap_or(usual.patience.connect),
        headers: entry.timeouts.headers_s.unwrap_or(usual.patience.headers),
        idle: entry.timeouts.idle_s.unwrap_or(usual.patience.idle),
        retries_max: entry.retries.unwrap_or(usual.patience.retries_max),
        ..usual.patience
    };
    let endpoint = Endpoint {
        base_url: entry.base_url.clone().unwrap_or_else(|| usual.base_url.clone()),
        credential: credential(wire, entry),
        headers: entry.headers.iter().map(header).collect(),
        extra: entry.extra.clone(),
        max_output_tokens: entry.max_output_tokens,
        images: entry.images.unwrap_or(usual.images),
        patience,
        ..usual
    };
    Ok(Arc::new(Remote::new(endpoint).map_err(AssembleError::Endpoint)?))
}

fn credential(wire: Wire, entry: &RemoteEntry) -> CredentialSource {
    if let Some(name) = &entry.api_key_env {
        return CredentialSource::Env(name.clone());
    }
    if let Some(path) = &entry.api_key_file {
        return CredentialSource::File(path.clone());
    }
    if let Some(words) = &entry.api_key_command {
        return CredentialSource::Command(words.clone());
    }
    match wire.default_env() {
        // The provider's usual key is for the provider's own server, and for no other.
        Some(name) if entry.base_url.is_none() => CredentialSource::Env(name.into()),
        _ => CredentialSource::None,
    }
}
