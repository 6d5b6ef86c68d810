//! TLS with the workspace's one provider of cryptography.

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::Arc;

/// Trusts what the system trusts, which an operator may have added to; on a system without a store
/// of certificates, what is built in. The system's store is read only if it is `needed`.
pub(crate) fn config(needed: bool) -> ClientConfig {
    if needed && let Some(config) = by_system() {
        return config;
    }
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    builder().with_root_certificates(roots).with_no_client_auth()
}

fn by_system() -> Option<ClientConfig> {
    Some(builder().with_platform_verifier().ok()?.with_no_client_auth())
}

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|error| unreachable!("ring speaks TLS 1.2 and 1.3: {error}"))
}
