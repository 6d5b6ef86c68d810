//! Credentials that the host adds to a plugin's requests. The plugin never holds them.

use super::http::Origin;

/// One credential: where it comes from and which requests get it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct SecretGrant {
    /// The environment variable of the host that holds it.
    pub env: String,
    /// The header that carries it.
    pub header: String,
    /// The header's value, with `{}` for the secret.
    #[serde(default = "bare")]
    pub format: String,
    /// The requests that get it: `https://HOST` or `https://HOST:PORT`; plain http on loopback only.
    #[serde(rename = "for")]
    pub origin: String,
}

fn bare() -> String {
    "{}".into()
}

impl SecretGrant {
    /// Reads `ENV:HEADER:ORIGIN`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, ':').map(str::to_owned);
        let (Some(env), Some(header), Some(origin)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(
                "it takes ENV:HEADER:ORIGIN, such as API_TOKEN:x-api-key:https://api.example.com"
                    .into(),
            );
        };
        let grant = Self { env, header, format: bare(), origin };
        grant.check()?;
        Ok(grant)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let origin = Origin::parse(&self.origin)?;
        if !origin.https && !origin.is_loopback() {
            return Err("a secret goes over https, or to loopback, only".into());
        }
        if self.env.is_empty() {
            return Err("it names no environment variable".into());
        }
        ::http::HeaderName::from_bytes(self.header.as_bytes())
            .map_err(|_| format!("`{}` is no name of a header", self.header))?;
        if !self.format.contains("{}") {
            return Err("`format` needs a `{}` where the secret goes".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::SecretGrant;

    #[test]
    fn where_a_secret_may_go() {
        for (text, fine) in [
            ("T:authorization:https://api.example.com", true),
            ("T:authorization:http://localhost:8080", true),
            ("T:authorization:http://127.0.0.1:8080", true),
            ("T:authorization:http://api.example.com", false),
            ("T:bad header:https://api.example.com", false),
            (":authorization:https://api.example.com", false),
            ("T:authorization", false),
        ] {
            assert_eq!(SecretGrant::parse(text).is_ok(), fine, "{text}");
        }
    }
}
