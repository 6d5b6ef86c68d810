//! Keeps a credential out of what is shown and stored: some servers echo it, as it is or as an
//! address would write it.

use cofferdam_agent::model::Secret;

/// Shown in place of a credential.
const MASK: &str = "[credential]";
/// Shorter ones would be found in words that have nothing to do with them.
const MASKED_BYTES_MIN: usize = 6;

/// What is kept out of texts; nothing by default.
#[derive(Clone, Default)]
pub(crate) struct Mask(Option<String>);

impl Mask {
    /// Keeps this credential out.
    pub(crate) fn of(secret: Option<&Secret>) -> Self {
        secret.map_or_else(Self::default, |secret| Self::of_text(secret.expose()))
    }

    /// Keeps this text out.
    pub(crate) fn of_text(text: &str) -> Self {
        Self((text.len() >= MASKED_BYTES_MIN).then(|| text.to_owned()))
    }

    /// The text without the credential.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = self.split(rest) {
            masked.push_str(before);
            masked.push_str(MASK);
            rest = after;
        }
        masked.push_str(rest);
        masked
    }

    /// Whether the text holds the credential.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.split(text).is_some()
    }

    /// What stands before the credential and behind it.
    fn split<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        let secret = self.0.as_deref()?.as_bytes();
        text.char_indices().find_map(|(at, _)| {
            let (before, from) = text.split_at(at);
            let after = from.get(written(from.as_bytes(), secret)?..)?;
            Some((before, after))
        })
    }
}

/// The bytes that a secret takes where a text begins with it. Each of its own may stand as it is,
/// as `%2D`, or behind a backslash as JSON writes quotes.
fn written(text: &[u8], secret: &[u8]) -> Option<usize> {
    let mut at = 0;
    for byte in secret {
        let rest = text.get(at..)?;
        at += match rest {
            [b'\\', second, ..] if second == byte && matches!(byte, b'"' | b'\\') => 2,
            [first, ..] if first == byte => 1,
            [b'%', high, low, ..] => {
                let digit = |digit: u8| char::from(digit).to_digit(16);
                (digit(*high)? * 16 + digit(*low)? == u32::from(*byte)).then_some(3)?
            }
            _ => return None,
        };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_found_in_every_spelling() {
        let mask = Mask::of(Some(&Secret::new("sk-a\"b\\c+1")));
        for text in [
            "sk-a\"b\\c+1",
            "sk-a\\\"b\\\\c+1",
            "sk%2Da%22b%5Cc%2B1",
            "sk%2da%22b%5cc%2b1",
            "%73%6B%2D%61%22%62%5C%63%2B%31",
        ] {
            assert_eq!(mask.apply(text), MASK);
            let around = format!("é {text}, sk-{text}{text}%");
            assert_eq!(mask.apply(&around), "é [credential], sk-[credential][credential]%");
            assert!(mask.is_in(&around));
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        let mask = Mask::of(Some(&Secret::new("s3cret")));
        for text in ["", "s3cre", "s3cre%7", "S3CRET", "s3-cret", "%é", "100 %"] {
            assert_eq!(mask.apply(text), text);
            assert!(!mask.is_in(text));
        }
        for mask in [Mask::default(), Mask::of(Some(&Secret::new("the")))] {
            assert_eq!(mask.apply("the end"), "the end");
        }
    }
}
