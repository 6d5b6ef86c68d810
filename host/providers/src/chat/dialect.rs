//! What servers of the Chat wire differ in, as data.

use crate::ids::IdRule;
use cofferdam_agent::model::Thinking;
use serde_json::{Map, Value, json};

/// Whose Chat wire it is. What answers differ in needs no choice: all of it is read from all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Any compatible server, among them vLLM, llama.cpp and Ollama.
    #[default]
    Generic,
    /// OpenAI itself.
    OpenAi,
    /// OpenRouter.
    OpenRouter,
    /// Groq.
    Groq,
    /// DeepSeek.
    DeepSeek,
    /// Mistral.
    Mistral,
}

impl Dialect {
    /// The names that an operator may use. Servers that need nothing of their own are `generic`.
    pub const NAMES: &[(&str, Dialect)] = &[
        ("generic", Self::Generic),
        ("ollama", Self::Generic),
        ("vllm", Self::Generic),
        ("llama.cpp", Self::Generic),
        ("openai", Self::OpenAi),
        ("openrouter", Self::OpenRouter),
        ("groq", Self::Groq),
        ("deepseek", Self::DeepSeek),
        ("mistral", Self::Mistral),
    ];

    /// The dialect that is spoken at this server, by its host.
    pub fn of(base_url: &str) -> Self {
        let host = base_url.split("://").nth(1).unwrap_or(base_url);
        let host = host.split(['/', ':', '?']).next().unwrap_or_default();
        let at = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        match () {
            () if at("openai.com") => Self::OpenAi,
            () if at("openrouter.ai") => Self::OpenRouter,
            () if at("groq.com") => Self::Groq,
            () if at("deepseek.com") => Self::DeepSeek,
            () if at("mistral.ai") => Self::Mistral,
            () => Self::Generic,
        }
    }

    pub(crate) fn default_url(self) -> Option<&'static str> {
        match self {
            Self::Generic => None,
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::OpenRouter => Some("https://openrouter.ai/api/v1"),
            Self::Groq => Some("https://api.groq.com/openai/v1"),
            Self::DeepSeek => Some("https://api.deepseek.com/v1"),
            Self::Mistral => Some("https://api.mistral.ai/v1"),
        }
    }

    pub(crate) fn default_env(self) -> Option<&'static str> {
        match self {
            Self::Generic => None,
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::OpenRouter => Some("OPENROUTER_API_KEY"),
            Self::Groq => Some("GROQ_API_KEY"),
            Self::DeepSeek => Some("DEEPSEEK_API_KEY"),
            Self::Mistral => Some("MISTRAL_API_KEY"),
        }
    }

    pub(crate) fn id_rule(self) -> IdRule {
        match self {
            Self::Mistral => IdRule::Exact(9),
            // Longer ones are refused by OpenAI (vercel/ai 5171), odd ones by strict compatible
            // servers (earendil-works/pi 3975).
            Self::OpenAi => IdRule::Plain { max: 40, keep_own: false },
            _ => IdRule::Plain { max: 40, keep_own: true },
        }
    }

    /// The field that limits an answer.
    pub(super) fn max_tokens_field(self) -> &'static str {
        match self {
            Self::OpenAi => "max_completion_tokens",
            _ => "max_tokens",
        }
    }

    /// Whether token counts must be asked for. Mistral and OpenRouter tell them unasked.
    pub(super) fn asks_for_usage(self) -> bool {
        !matches!(self, Self::Mistral | Self::OpenRouter)
    }

    /// Whether an answer must stand between a tool result and the user's next words.
    pub(super) fn wants_answer_after_results(self) -> bool {
        self == Self::Mistral
    }

    /// The fields that make a model think so much.
    pub(super) fn thinking(self, thinking: Thinking) -> Map<String, Value> {
        let effort = match thinking {
            Thinking::Off => return Map::new(),
            Thinking::Minimal => "minimal",
            Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        };
        crate::wire::object(match self {
            Self::Generic | Self::OpenAi | Self::Groq => json!({"reasoning_effort": effort}),
            Self::OpenRouter => json!({"reasoning": {"effort": effort}}),
            Self::DeepSeek => json!({"thinking": {"type": "enabled"}}),
            // Its reasoning models always reason, and its others do not know the field.
            Self::Mistral => json!({}),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_told_by_the_host() {
        for (url, want) in [
            ("https://api.openai.com/v1", Dialect::OpenAi),
            ("https://eu.api.openai.com:443/v1", Dialect::OpenAi),
            ("https://openrouter.ai/api/v1", Dialect::OpenRouter),
            ("https://api.mistral.ai", Dialect::Mistral),
            ("http://127.0.0.1:11434/v1", Dialect::Generic),
            ("https://notmistral.ai/v1", Dialect::Generic),
            ("https://gateway.example/openai.com", Dialect::Generic),
        ] {
            assert_eq!(Dialect::of(url), want, "{url}");
        }
    }
}
