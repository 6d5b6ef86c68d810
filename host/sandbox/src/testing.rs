//! Inner parts that take bytes from outside, for the property tests (feature `testing`).

use crate::declare::{self, Offered, RefusedTool, ToolSpec};
use crate::mask;
use crate::services::secret::Secret;
use cofferdam_agent::tool::Execution;
use serde_json::Value;
use std::collections::BTreeMap;

/// Secrets that are masked.
pub struct Secrets(Vec<Secret>);

impl Secrets {
    /// Secrets with these values, at least four bytes of visible ASCII each.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let secret = |value| Secret::sample("https://api.example.com", "authorization", value);
        Self(values.into_iter().map(secret).collect())
    }

    /// Every spelling that is masked.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|secret| &secret.forms).map(String::as_str)
    }

    /// A text for people and models.
    pub fn mask_text(&self, text: &str) -> String {
        mask::text(text, &self.0).into_owned()
    }

    /// The details of a result.
    pub fn mask_json(&self, value: Value) -> Value {
        mask::json(value, &self.0)
    }

    /// Bytes whose length must stay.
    pub fn mask_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        mask::bytes(bytes, &self.0)
    }

    /// The body of a request or a response, as it comes in pieces.
    pub fn mask_pieces<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut stream = mask::Stream::new(&self.0);
        let mut masked: Vec<u8> = pieces.into_iter().flat_map(|piece| stream.push(piece)).collect();
        masked.extend(stream.finish());
        masked
    }
}

/// A tool as a guest declares it.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub label: Option<String>,
    /// What it does.
    pub description: String,
    /// Its schema as JSON text.
    pub parameters: String,
    /// What it may run beside.
    pub execution: Execution,
    /// Hints.
    pub meta: Vec<(String, String)>,
}

/// Checks what a guest declares.
pub fn check_tools(tools: Vec<Declared>) -> (Vec<ToolSpec>, Vec<RefusedTool>) {
    let offered = |Declared { name, label, description, parameters, execution, meta }| Offered {
        name,
        label,
        description,
        parameters,
        execution,
        meta,
    };
    declare::check(tools.into_iter().map(offered).collect())
}

/// Reads JSON from a guest.
pub fn guest_json(text: &str) -> Result<Value, String> {
    crate::json::parse(text)
}

/// Reads the file of a key-value store.
pub fn stored_values(bytes: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    crate::services::kv::decode(bytes)
}
