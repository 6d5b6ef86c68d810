//! Rights that grew, and taken back to what they were.

use cofferdam_sandbox::Grants;
use cofferdam_sandbox::grants::{Access, FileGrant};

/// The rights in `grants` that go beyond `before`, as the command line has them. What is less than before
/// is none of them.
pub(super) fn grown(grants: &Grants, before: &Grants) -> Vec<String> {
    let mut held = grants.clone();
    hold_back(&mut held, before);
    grants.beyond(&held)
}

/// Takes away what `grants` have beyond `before`. What was taken away since stays away; a value of the
/// plugin's configuration that changed is the old one again, because a plugin without it may do more.
pub(super) fn hold_back(grants: &mut Grants, before: &Grants) {
    let Grants { files, http, env, config, kv_kib, secrets } = grants;
    let covered = |now: &FileGrant| {
        before.files.iter().any(|then| {
            (&then.host, &then.guest) == (&now.host, &now.guest)
                && (then.access == now.access || then.access == Access::ReadWrite)
        })
    };
    files.retain(covered);
    http.retain(|rule| before.http.iter().any(|then| then.covers(rule)));
    env.retain(|name| before.env.contains(name));
    secrets.retain(|secret| before.secrets.contains(secret));
    *kv_kib = kv_kib.and_then(|now| before.kv_kib.map(|then| now.min(then)));
    config.retain(|key, value| match before.config.get(key) {
        Some(then) => {
            value.clone_from(then);
            true
        }
        None => false,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(pairs: &[&str]) -> Grants {
        let mut grants = Grants::default();
        pairs.iter().for_each(|pair| grants.add_pair(pair).unwrap());
        grants
    }

    #[test]
    fn nothing_is_left_beyond_what_was_before() {
        let before = grants(&[
            "files=/a:/a:read-only",
            "files=/b:/b:read-write",
            "http=GET https://a.com/",
            "config.allow=notes/**",
            "kv=64",
        ]);
        for (wanted, held, more) in [
            (&["files=/a:/a:read-write", "kv=128"][..], &["kv=64"][..], 2),
            (&["files=/b:/b:read-only"], &["files=/b:/b:read-only"], 0),
            (
                &["http=GET https://a.com/v1/", "http=* https://b.com/"],
                &["http=GET https://a.com/v1/"],
                1,
            ),
            (&["config.allow=**", "config.more=1"], &["config.allow=notes/**"], 2),
            (&["env=LANG", "secrets=T:x:https://a.com"], &[], 2),
            (&["kv=32"], &["kv=32"], 0),
            (&[], &[], 0),
        ] {
            let mut now = grants(wanted);
            assert_eq!(grown(&now, &before).len(), more, "{wanted:?}");
            hold_back(&mut now, &before);
            assert_eq!(now, grants(held), "{wanted:?}");
            assert_eq!(grown(&now, &before), Vec::<String>::new());
        }
    }
}
