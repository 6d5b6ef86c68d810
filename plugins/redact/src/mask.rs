//! Masks what the patterns find, in texts and in the texts of JSON, and counts.

use cofferdam_plugin::Value;
use regex::{Captures, Regex};

use crate::pattern::{Patterns, is_secret_name};

const MASK: &str = "[redacted]";

/// Goes over one result.
pub(crate) struct Masker<'a> {
    patterns: &'a Patterns,
    /// Secrets masked so far.
    pub(crate) count: usize,
}

impl<'a> Masker<'a> {
    pub(crate) fn new(patterns: &'a Patterns) -> Self {
        Self { patterns, count: 0 }
    }

    pub(crate) fn text(&mut self, text: &str) -> String {
        let patterns = self.patterns;
        let lower = text.to_ascii_lowercase();
        let mut text = text.to_owned();
        for pattern in &patterns.sure {
            if let Some(regex) = pattern.regex(&lower) {
                text = self.replace(regex, &text, &pattern.mask, |_| true);
            }
        }
        match patterns.assignment.regex(&lower) {
            Some(regex) => self.replace(regex, &text, MASK, plausible),
            None => text,
        }
    }

    /// All texts below. A member with a telling name is masked whatever its text looks like.
    pub(crate) fn json(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(map) => {
                for (name, value) in map {
                    match value {
                        Value::String(text) if !text.is_empty() && is_secret_name(name) => {
                            self.count += 1;
                            MASK.clone_into(text);
                        }
                        value => self.json(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// A JSON document as text; as plain text if it does not parse.
    pub(crate) fn json_text(&mut self, text: &str) -> String {
        match text.parse::<Value>() {
            Ok(mut value) => {
                self.json(&mut value);
                value.to_string()
            }
            Err(_) => self.text(text),
        }
    }

    fn replace(
        &mut self,
        regex: &Regex,
        text: &str,
        mask: &str,
        wanted: fn(&Captures<'_>) -> bool,
    ) -> String {
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for captures in regex.captures_iter(text) {
            if !wanted(&captures) {
                continue;
            }
            // The innermost group that took part, or the whole match.
            let named = ["secret", "double", "single", "bare"];
            let group = named.iter().find_map(|name| captures.name(name)).or(captures.get(0));
            let Some(secret) = group else { continue };
            out.push_str(&text[end..secret.start()]);
            out.push_str(mask);
            end = secret.end();
            self.count += 1;
        }
        out.push_str(&text[end..]);
        out
    }
}

/// Tells `token: hunter22` from `token: TokenStream`. In quotes, or straight after the sign as in
/// files of settings, a value is a secret; after a space it must have digits and some length.
fn plausible(captures: &Captures<'_>) -> bool {
    let Some(bare) = captures.name("bare") else { return true };
    let sign = captures.name("sign").map_or("", |sign| sign.as_str());
    let value = bare.as_str();
    match sign {
        // A path of code, such as `token::next`, or a variable, is no value.
        _ if value.starts_with([':', '=', '$']) => false,
        "=" => true,
        _ => value.len() >= 8 && value.contains(|c: char| c.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let patterns = Patterns::configured().unwrap();
        assert_eq!(Masker::new(&patterns).text(text), expected);
    }

    // Put together here, so that no scanner of this repository takes them for real.
    fn key(prefix: &str, length: usize) -> String {
        format!("{prefix}{}", "A1b2".repeat(length / 4 + 1).split_at(length).0)
    }

    #[test]
    fn known_formats() {
        check(&format!("id {} end", key("AKIA", 16).to_uppercase()), "id [redacted AWS key] end");
        check(&key("ghp_", 36), "[redacted GitHub token]");
        check(&key("github_pat_", 30), "[redacted GitHub token]");
        check(&key("xoxb-", 24), "[redacted Slack token]");
        check(&key("sk-ant-", 40), "[redacted API key]");
        check(&format!("{}.{}.sig", key("eyJ", 20), key("eyJ", 20)), "[redacted JWT]");
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx",
            "[redacted private key]\nx",
        );
        check("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted private key]");
    }

    #[test]
    fn headers_and_urls() {
        check("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]");
        check("curl -H 'bearer 0123456789abcdef'", "curl -H 'bearer [redacted]'");
        check("postgres://user:pa55@db/x", "postgres://user:[redacted]@db/x");
        check("https://example.com:8080/a@b", "https://example.com:8080/a@b");
    }

    #[test]
    fn assignments() {
        check("password=hunter2&x=1", "password=[redacted]&x=1");
        check("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted]");
        check("api_key = \"abcd\"", "api_key = \"[redacted]\"");
        check("{\"token\": \"abcd\"}", "{\"token\": \"[redacted]\"}");
        check("token: 1a2b3c4d5e", "token: [redacted]");
    }

    #[test]
    fn code_is_left_alone() {
        for code in [
            "let token = lexer.next();",
            "token: TokenStream,",
            "token::Kind",
            "password: String",
            "if token == other",
        ] {
            check(code, code);
        }
    }

    #[test]
    fn masks_are_not_masked_again() {
        check("token=[redacted]", "token=[redacted]");
        check(&format!("token={}", key("ghp_", 36)), "token=[redacted GitHub token]");
    }
}
