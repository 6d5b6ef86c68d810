//! What secrets look like. All patterns run in linear time, whatever the text.

use std::cell::OnceCell;

use cofferdam_plugin::{Failure, Result, config};
use regex::Regex;

/// The operator's patterns, one a line, on top of ours.
const KEY: &str = "patterns";
const MASK: &str = "[redacted]";

/// A known form: the words of its mask, what every match has in it (in lower case), the pattern.
type Known = (&'static str, &'static [&'static str], &'static str);

/// Each masks what its named group holds, or all of it if it has none. Those that know a format
/// come first, since their masks say more. Word boundaries are those of ASCII, which cost nothing.
const KNOWN: [Known; 14] = [
    (
        "private key",
        &["private key"],
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("JWT", &["eyj"], r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    (
        "AWS key",
        &["akia", "asia", "abia", "acca"],
        r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)",
    ),
    (
        "GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    ("GitLab token", &["glpat-"], r"(?-u:\b)glpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", &["xox"], r"(?-u:\b)xox[a-z]-[A-Za-z0-9-]{10,}"),
    (
        "Slack hook",
        &["hooks.slack.com"],
        r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]+",
    ),
    ("Google key", &["aiza"], r"(?-u:\b)AIza[A-Za-z0-9_-]{35}"),
    ("Stripe key", &["k_live_", "k_test_"], r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm token", &["npm_"], r"(?-u:\b)npm_[A-Za-z0-9]{36}"),
    ("API key", &["sk-"], r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}"),
    (
        "",
        &["authorization"],
        r#"(?i)(?-u:\b)authorization["']?\s*[:=]\s*["']?(?:[a-z]+\s+)?(?P<secret>[^\s"',;\[\]]{8,})"#,
    ),
    ("", &["bearer"], r"(?i)(?-u:\b)bearer\s+(?P<secret>[A-Za-z0-9+/._~=-]{16,})"),
    ("", &["://"], r"(?-u:\b)[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@\[]*:(?P<secret>[^\s/@\[]+)@"),
];

/// `password = "…"`, `token: …`, `API_KEY=…`, also as a member of JSON: name, sign and value. The
/// value is in quotes, or ends before what ends words in code and URLs.
const ASSIGNMENT: Known = (
    "",
    &["pass", "secret", "token", "key", "credential"],
    concat!(
        r"(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)",
        r#"["']?(?P<sign>\s*(?::=|=>|[:=])\s*)"#,
        r#"(?:"(?P<double>[^"\n]{4,})"|'(?P<single>[^'\n]{4,})'|(?P<bare>[^\s"',;&<>(){}\[\]]{4,}))"#,
    ),
);

/// How names end whose values are secrets, in lower case and without `_` and `-`.
const SECRET_NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "credentials",
];

/// True for the name of a member whose text is a secret whatever it looks like.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !"_-".contains(*c)).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|secret| plain.ends_with(secret))
}

/// One pattern. Compiling it is the dear part, and each result has a fresh instance, so that is
/// left until a text has what every match has in it.
pub(crate) struct Pattern {
    hints: &'static [&'static str],
    source: String,
    regex: OnceCell<Regex>,
    pub(crate) mask: String,
}

impl Pattern {
    fn known((name, hints, source): Known) -> Self {
        let mask = if name.is_empty() { MASK.to_owned() } else { format!("[redacted {name}]") };
        Self { hints, source: source.to_owned(), regex: OnceCell::new(), mask }
    }

    fn own(source: &str) -> Result<Self> {
        let regex = Regex::new(source);
        let regex = regex
            .map_err(|error| Failure::other(format!("pattern `{source}` in `{KEY}`: {error}")))?;
        Ok(Self {
            hints: &[],
            source: source.to_owned(),
            regex: regex.into(),
            mask: MASK.to_owned(),
        })
    }

    /// The expression, if it can match a text; `lower` is that text in lower case.
    pub(crate) fn regex(&self, lower: &str) -> Option<&Regex> {
        let possible = self.hints.is_empty() || self.hints.iter().any(|hint| lower.contains(hint));
        // A pattern of ours that does not compile must fail the hook, not let a secret through.
        let compile = || Regex::new(&self.source).expect("a pattern of this file, tested below");
        possible.then(|| self.regex.get_or_init(compile))
    }
}

/// All that is looked for.
pub(crate) struct Patterns {
    /// Those whose every match is a secret.
    pub(crate) sure: Vec<Pattern>,
    /// Names, signs and values, where the value may be code.
    pub(crate) assignment: Pattern,
}

impl Patterns {
    pub(crate) fn configured() -> Result<Self> {
        let mut sure: Vec<_> = KNOWN.into_iter().map(Pattern::known).collect();
        let own = config::read(KEY).unwrap_or_default();
        for source in own.lines().map(str::trim).filter(|line| !line.is_empty()) {
            sure.push(Pattern::own(source)?);
        }
        Ok(Self { sure, assignment: Pattern::known(ASSIGNMENT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        let patterns = Patterns::configured().unwrap();
        for pattern in patterns.sure.iter().chain([&patterns.assignment]) {
            let hint = pattern.hints[0];
            assert_eq!(hint, hint.to_ascii_lowercase());
            assert!(pattern.regex(hint).is_some());
            assert!(pattern.regex("nothing to see").is_none());
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in ["password", "DB_PASSWORD", "api-key", "accessKey", "github_token"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["tokens_used", "path", "keyboard", "secretary"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
