//! What secrets look like. All patterns run in linear time, whatever the text.

use cofferdam_plugin::{Failure, Result, config};
use regex::Regex;

/// The operator's patterns, one a line, on top of ours.
const KEY: &str = "patterns";

/// Names whose values are secrets.
const SECRET_NAME: &str = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)";

/// Each masks what its group `secret` holds, or all of it if it has none. Those that know a format
/// come first, since their masks say more.
const KNOWN: [(&str, &str); 13] = [
    (
        "private key",
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("JWT", r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("AWS key", r"(?-u:\b)(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?-u:\b)"),
    ("GitHub token", r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"),
    ("GitLab token", r"(?-u:\b)glpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"(?-u:\b)xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("Slack hook", r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]+"),
    ("Google key", r"(?-u:\b)AIza[A-Za-z0-9_-]{35}"),
    ("Stripe key", r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm token", r"(?-u:\b)npm_[A-Za-z0-9]{36}"),
    ("API key", r"(?-u:\b)sk-[A-Za-z0-9_-]{20,}"),
    (
        "",
        r#"(?i)(?-u:\b)authorization["']?\s*[:=]\s*["']?(?:[a-z]+\s+)?(?P<secret>[^\s"',;\[\]]{8,})|(?-u:\b)bearer\s+(?P<secret2>[A-Za-z0-9+/._~=-]{16,})"#,
    ),
    ("", r"(?-u:\b)[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@\[]*:(?P<secret>[^\s/@\[]+)@"),
];

/// One pattern with the words of its mask.
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    pub(crate) mask: String,
}

/// All that is looked for.
pub(crate) struct Patterns {
    pub(crate) whole: Vec<Pattern>,
    /// `password = "…"`, `token: …`, `API_KEY=…`, also as a member of JSON.
    pub(crate) assignment: Regex,
    /// The name of a member whose text is a secret whatever it looks like.
    pub(crate) name: Regex,
}

impl Patterns {
    pub(crate) fn configured() -> Result<Self> {
        let mut whole = Vec::new();
        for (name, pattern) in KNOWN {
            let mask = if name.is_empty() {
                "[redacted]".to_owned()
            } else {
                format!("[redacted {name}]")
            };
            whole.push(Pattern { regex: Regex::new(pattern)?, mask });
        }
        let own = config::read(KEY).unwrap_or_default();
        for pattern in own.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let regex = Regex::new(pattern);
            let regex = regex.map_err(|error| {
                Failure::other(format!("pattern `{pattern}` in `{KEY}`: {error}"))
            })?;
            whole.push(Pattern { regex, mask: "[redacted]".to_owned() });
        }
        Ok(Self {
            whole,
            assignment: Regex::new(&assignment())?,
            name: Regex::new(&format!("(?i){SECRET_NAME}$"))?,
        })
    }
}

/// Name, sign and value. The value is in quotes, or ends before what ends words in code and URLs.
fn assignment() -> String {
    let value =
        r#""(?P<double>[^"\n]{4,})"|'(?P<single>[^'\n]{4,})'|(?P<bare>[^\s"',;&<>(){}\[\]]{4,})"#;
    format!(r#"(?i){SECRET_NAME}["']?(?P<sign>\s*(?::=|=>|[:=])\s*)(?:{value})"#)
}
