//! What a plugin asks for: grants that it wants, each with a reason, from its `cofferdam:wants`
//! section. Claims, and nothing more: what is in force is what the operator wrote.

use crate::grants::{GrantError, Grants};
use crate::text::visible;
use serde::{Deserialize, Serialize};

/// One grant that a plugin wants, in the words of the command line's `--grant GRANT=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Want {
    /// Such as `http`, or `config.allow` for a value of the configuration.
    pub grant: String,
    /// Such as `GET https://api.example.com/`. Folders of the host, names of variables and values of
    /// the configuration are proposals: the operator's are other ones.
    pub value: String,
    /// For the operator: what the plugin does with it.
    pub reason: String,
    /// Whether the plugin does something useful without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// More than any real plugin wants; a person reads each.
const WANTS_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 500;

impl Want {
    /// Whether there is such a grant and it takes such a value.
    pub fn check(&self) -> Result<(), GrantError> {
        Grants::default().add(&self.grant, &self.value)
    }

    /// The pair that the command line takes.
    pub fn pair(&self) -> String {
        format!("{}={}", self.grant, self.value)
    }
}

/// Reads the section of a plugin. Wants of a form that this host does not know are left out, and no
/// text of them can disturb a terminal.
pub(crate) fn read(section: &[u8]) -> Option<Vec<Want>> {
    let all: Vec<serde_json::Value> = serde_json::from_slice(section).ok()?;
    let known = all.into_iter().filter_map(|want| serde_json::from_value::<Want>(want).ok());
    let shown = known.map(|want| Want {
        grant: visible(&want.grant, TEXT_BYTES_MAX),
        value: visible(&want.value, TEXT_BYTES_MAX),
        reason: visible(&want.reason, TEXT_BYTES_MAX),
        optional: want.optional,
    });
    Some(shown.filter(|want| want.check().is_ok()).take(WANTS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_taken_as_far_as_it_is_known() {
        let read = read(
            br#"[{"grant": "http", "value": "GET https://a.com/", "reason": "asks \u001b[2J a"},
                 {"grant": "teleport", "value": "on", "reason": "x"},
                 {"grant": "env", "value": "GITHUB_TOKEN", "reason": "a credential"},
                 7]"#,
        );
        let read = read.expect("a list");
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].pair(), "http=GET https://a.com/");
        assert_eq!(read[0].reason, "asks \\u{1b}[2J a");
        assert_eq!(super::read(b"{}"), None);
    }
}
