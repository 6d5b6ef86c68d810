//! A granted credential with its value: what goes into requests, and how it is known again.

use crate::grants::SecretGrant;
use crate::grants::http::Origin;
use http::header::{HeaderName, HeaderValue};

/// Shorter ones would be found in words that have nothing to do with them.
const SECRET_BYTES_MIN: usize = 4;

/// A credential, ready to go into requests.
pub(crate) struct Secret {
    pub(crate) origin: Origin,
    pub(crate) header: HeaderName,
    pub(crate) value: HeaderValue,
    /// The spellings under which it is masked: as it is, as JSON and as a URL write it.
    pub(crate) forms: Vec<String>,
}

impl Secret {
    /// Reads the value that a grant stands for.
    pub(crate) fn from_grant(grant: &SecretGrant) -> Result<Self, String> {
        let bare = std::env::var(&grant.env)
            .map_err(|_| format!("the environment has no {}", grant.env))?;
        Self::new(grant, &bare)
    }

    fn new(grant: &SecretGrant, bare: &str) -> Result<Self, String> {
        if bare.len() < SECRET_BYTES_MIN {
            return Err(format!(
                "the value of {} has fewer than {SECRET_BYTES_MIN} bytes: too short to be told from other text \
                 where a server echoes it",
                grant.env
            ));
        }
        let mut value = HeaderValue::from_str(&grant.format.replace("{}", bare))
            .map_err(|_| format!("the value of {} cannot be in a header", grant.env))?;
        value.set_sensitive(true);
        Ok(Self {
            origin: Origin::parse(&grant.origin)?,
            header: grant
                .header
                .parse()
                .map_err(|_| format!("`{}` is no name of a header", grant.header))?,
            value,
            forms: forms(bare),
        })
    }

    /// A credential for tests.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn sample(origin: &str, header: &str, bare: &str) -> Self {
        let grant = SecretGrant {
            env: "TEST".into(),
            header: header.into(),
            format: "{}".into(),
            origin: origin.into(),
        };
        Self::new(&grant, bare).unwrap_or_else(|problem| panic!("{problem}"))
    }
}

/// The spellings that differ from each other, the longest first.
fn forms(bare: &str) -> Vec<String> {
    let json = serde_json::Value::from(bare).to_string();
    let json = json.trim_start_matches('"').trim_end_matches('"');
    let mut forms = vec![
        bare.to_owned(),
        json.into(),
        percent(bare, "-._~"),
        percent(bare, "-._~!$&'()*+,;=:@/?"),
    ];
    forms.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    forms.dedup();
    forms
}

/// A text as a URL writes it, save letters, digits and these.
fn percent(text: &str, plain: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b if b.is_ascii_alphanumeric() || plain.contains(char::from(b)) => char::from(b).into(),
            b => format!("%{b:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        assert_eq!(forms("plain-1"), ["plain-1"]);
        assert_eq!(forms("a\"b/c d"), ["a%22b%2Fc%20d", "a%22b/c%20d", "a\\\"b/c d", "a\"b/c d"]);
    }

    #[test]
    fn what_is_no_secret() {
        let grant = SecretGrant::parse("T:x-key:https://api.example.com").expect("a grant");
        for (value, part) in
            [("abc", "too short"), ("", "too short"), ("abc\ndef", "cannot be in a header")]
        {
            let problem = Secret::new(&grant, value).err().expect(part);
            assert!(problem.contains(part), "{problem}");
        }
    }
}
