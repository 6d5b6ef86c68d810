//! What a manifest says is there, and which part of it is the component.
//!
//! The standard form is a manifest with one layer of `application/wasm` (CNCF, "Wasm OCI Artifact
//! layout"), as `wkg oci push` and `oras push` write it. Older tools used another type for the layer.

use super::reference::is_digest;
use serde::Deserialize;

/// Types of layers that are WebAssembly.
const WASM_LAYERS: [&str; 2] = ["application/wasm", "application/vnd.wasm.content.layer.v1+wasm"];

/// A part of an artifact, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    media_type: String,
    /// `sha256:` and the digest.
    pub(super) digest: String,
    /// In bytes.
    pub(super) size: u64,
    #[serde(default)]
    platform: Platform,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
}

#[derive(Deserialize)]
struct Manifest {
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a manifest leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The component.
    Component(Descriptor),
    /// The manifest of one.
    Manifest(Descriptor),
}

/// The component of a manifest; else a sentence about what is there instead.
pub(super) fn read(bytes: &[u8]) -> Result<Found, String> {
    let manifest: Manifest = serde_json::from_slice(bytes)
        .map_err(|problem| format!("its manifest is none of OCI's: {problem}"))?;
    let found = match manifest {
        Manifest { layers: Some(layers), .. } => Found::Component(component(layers)?),
        Manifest { manifests: Some(entries), .. } => Found::Manifest(entry(entries)?),
        Manifest { .. } => return Err("its manifest has no layers".into()),
    };
    let (Found::Component(part) | Found::Manifest(part)) = &found;
    match is_digest(&part.digest) {
        true => Ok(found),
        false => Err(format!(
            "a part of it is named by `{}`, and only sha256 is taken",
            part.digest.chars().take(80).collect::<String>()
        )),
    }
}

fn component(layers: Vec<Descriptor>) -> Result<Descriptor, String> {
    let types: Vec<String> = layers.iter().map(|layer| layer.media_type.clone()).collect();
    let mut wasm = layers.into_iter().filter(|layer| WASM_LAYERS.contains(&&*layer.media_type));
    match (wasm.next(), wasm.next()) {
        (Some(layer), None) => Ok(layer),
        (Some(_), Some(_)) => {
            Err("it has several layers of WebAssembly: push one component".into())
        }
        (None, _) => Err(format!(
            "it has no layer of application/wasm ({}); a component is pushed with `wkg oci push`, or \
             `oras push HOST/REPOSITORY:TAG plugin.wasm:application/wasm`",
            listed(&types)
        )),
    }
}

/// The one entry for WebAssembly, or the only one.
fn entry(mut entries: Vec<Descriptor>) -> Result<Descriptor, String> {
    let places: Vec<String> =
        entries.iter().map(|entry| entry.platform.architecture.clone()).collect();
    if entries.len() > 1 {
        entries.retain(|entry| entry.platform.architecture == "wasm");
    }
    match (entries.pop(), entries.len()) {
        (Some(entry), 0) => Ok(entry),
        _ => Err(format!(
            "it is a list of manifests, and not one of them alone is for `wasm` ({}); name one by its \
             digest",
            listed(&places)
        )),
    }
}

fn listed(types: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown = types.iter().take(SHOWN_MAX).map(|name| match name.as_str() {
        "" => "unnamed".to_owned(),
        name => name.chars().take(80).collect(),
    });
    match types.is_empty() {
        true => "it has none at all".into(),
        false => format!("it has {}", shown.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(media_type: &str) -> serde_json::Value {
        let digest = format!("sha256:{}", "0".repeat(64));
        json!({"mediaType": media_type, "digest": digest, "size": 3})
    }

    #[test]
    fn the_one_layer_of_webassembly_is_the_component() {
        for manifest in [
            json!({"schemaVersion": 2, "config": {"mediaType": "application/vnd.wasm.config.v0+json"},
                   "layers": [layer("application/wasm")]}),
            json!({"layers": [layer("text/markdown"), layer("application/wasm")]}),
            json!({"layers": [layer("application/vnd.wasm.content.layer.v1+wasm")]}),
        ] {
            let found = read(manifest.to_string().as_bytes());
            assert!(matches!(found, Ok(Found::Component(Descriptor { size: 3, .. }))), "{found:?}");
        }
        let entry = |architecture| {
            let mut entry = layer("application/vnd.oci.image.manifest.v1+json");
            entry["platform"] = json!({"architecture": architecture, "os": "x"});
            entry
        };
        for list in [vec![entry("amd64")], vec![entry("amd64"), entry("wasm"), entry("arm64")]] {
            let found = read(json!({"manifests": list}).to_string().as_bytes());
            assert!(matches!(found, Ok(Found::Manifest(_))), "{found:?}");
        }
    }

    #[test]
    fn what_is_no_component_is_said() {
        let two = json!([layer("application/wasm"), layer("application/wasm")]);
        let odd = json!([{"mediaType": "application/wasm", "digest": "sha512:00", "size": 1}]);
        for (manifest, part) in [
            (json!({"layers": []}), "it has none at all"),
            (json!({"layers": [layer("application/vnd.oci.image.layer.v1.tar+gzip")]}), "tar+gzip"),
            (json!({"layers": two}), "several layers"),
            (json!({"layers": odd}), "only sha256"),
            (json!({"layers": 1}), "none of OCI's"),
            (json!({"manifests": [layer(""), layer("")]}), "it is a list"),
            (json!({"schemaVersion": 1}), "no layers"),
        ] {
            let problem = read(manifest.to_string().as_bytes()).expect_err(part);
            assert!(problem.contains(part), "{problem}");
        }
        assert!(read(b"<html>").is_err());
    }
}
