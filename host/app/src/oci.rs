//! Components from OCI registries: `oci://HOST/REPOSITORY:TAG` is resolved to a digest, and what comes
//! is held against it. What a registry may send, and for how long, is bounded; where it sends us on
//! to gets no credential. Other machines are asked over TLS only.

mod client;
mod credentials;
mod manifest;
mod reference;

pub use credentials::{Credential, CredentialFile};
pub use reference::{Reference, ReferenceError};

use client::Client;
use cofferdam_sandbox::{Limits, sha256_hex};
use manifest::Found;
use std::time::Duration;

/// A component that a registry had.
#[derive(Debug, Clone)]
pub struct Pulled {
    /// Where it was, with the digest of its manifest.
    pub source: Reference,
    /// The component: its digest is that of the manifest's one layer of WebAssembly.
    pub bytes: Vec<u8>,
}

/// How much a registry may send, and how long it may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Bytes of a manifest; registries need not take more than 4 MiB (OCI distribution, "Pushing
    /// manifests").
    pub manifest_bytes: u64,
    /// Bytes of a component: the default of `limits.component_mib`, under which it is looked at.
    pub component_bytes: u64,
    /// Bytes of any other answer: tokens, tags, refusals.
    pub answer_bytes: u64,
    /// How often one request may be sent on to another place.
    pub redirects: u32,
    /// For a connection.
    pub connect: Duration,
    /// For an answer to begin, and between two pieces of it.
    pub idle: Duration,
    /// For everything together.
    pub total: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            manifest_bytes: 4 << 20,
            component_bytes: Limits::default().component_mib << 20,
            answer_bytes: 256 << 10,
            redirects: 5,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_secs(600),
        }
    }
}

/// A component that could not be had. What a registry said is in it, a credential never.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// Nobody answered.
    #[error("no answer from {place}: {problem}")]
    Unreachable {
        /// Where.
        place: String,
        /// Why not.
        problem: String,
    },
    /// It took too long.
    #[error("{place} took too long: {what}")]
    Slow {
        /// Where.
        place: String,
        /// Which bound it broke.
        what: String,
    },
    /// There is no such thing.
    #[error("the registry has no {reference}{tags}")]
    Missing {
        /// What was asked for.
        reference: String,
        /// The tags that there are, as far as it told.
        tags: String,
    },
    /// It is not for everybody.
    #[error("the registry does not give {reference} to {whom}: {advice}")]
    Denied {
        /// What was asked for.
        reference: String,
        /// Who asked.
        whom: String,
        /// What would help.
        advice: String,
    },
    /// It answered with something else.
    #[error("{place} answered {status}{said}")]
    Status {
        /// Where.
        place: String,
        /// The status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// It sent more than it may.
    #[error("{what} has more than {bytes_max} bytes, the limit")]
    Large {
        /// What was read.
        what: &'static str,
        /// The limit.
        bytes_max: u64,
    },
    /// It sent something else than it said.
    #[error("{what} is not what it was said to be: expected {expected}, got {actual}")]
    Differs {
        /// What was read.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// It sends us to a place where we do not go.
    #[error("{place} sends on to {to}: {problem}")]
    Redirect {
        /// Where from.
        place: String,
        /// Where to.
        to: String,
        /// Why we do not go there.
        problem: String,
    },
    /// There is something, and it is no component.
    #[error("{reference} is no component: {problem}")]
    NoComponent {
        /// What was asked for.
        reference: String,
        /// What it is instead, and what to do.
        problem: String,
    },
    /// The file with credentials is none.
    #[error("{0}")]
    Credentials(String),
}

/// Gets the component that a reference names.
pub async fn pull(
    reference: &Reference,
    credentials: &CredentialFile,
    bounds: &Bounds,
) -> Result<Pulled, OciError> {
    let all = async {
        let mut client = Client::new(reference, credentials, bounds)?;
        let (digest, layer) = resolve(&mut client, reference).await?;
        let bytes = client.component(&layer).await?;
        Ok(Pulled { source: reference.at(&digest), bytes })
    };
    tokio::time::timeout(bounds.total, all).await.unwrap_or_else(|_| {
        Err(OciError::Slow {
            place: reference.host().into(),
            what: format!("more than {} s in all", bounds.total.as_secs_f64()),
        })
    })
}

/// The digest of what a reference names, and the layer with the component.
async fn resolve(
    client: &mut Client<'_>,
    reference: &Reference,
) -> Result<(String, manifest::Descriptor), OciError> {
    let no_component =
        |problem| OciError::NoComponent { reference: reference.to_string(), problem };
    let bytes = client.manifest(reference.wanted(), reference.digest()).await?;
    let digest = format!("sha256:{}", sha256_hex(&bytes));
    match manifest::read(&bytes).map_err(no_component)? {
        Found::Component(layer) => Ok((digest, layer)),
        // A list of manifests, and one of them is for WebAssembly.
        Found::Manifest(entry) => {
            let bytes = client.manifest(&entry.digest, Some(&entry.digest)).await?;
            match manifest::read(&bytes).map_err(no_component)? {
                Found::Component(layer) => Ok((digest, layer)),
                Found::Manifest(_) => Err(no_component("it is a list of lists".into())),
            }
        }
    }
}
