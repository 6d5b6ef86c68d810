//! Grants beside each other: what is wanted and not given, what grew.

use super::{Access, FileGrant, Grants, KV_KIB_DEFAULT};
use crate::wants::Want;
use std::fmt;

impl Grants {
    /// Every grant as the command line takes it, such as `http=GET https://api.example.com/`.
    pub fn pairs(&self) -> Vec<String> {
        let files = self.files.iter().map(|grant| format!("files={grant}"));
        let http = self.http.iter().map(|rule| format!("http={rule}"));
        let env = self.env.iter().map(|name| format!("env={name}"));
        let config = self.config.iter().map(|(key, value)| format!("config.{key}={value}"));
        let kv = self.kv_kib.iter().map(|kib| match *kib {
            KV_KIB_DEFAULT => "kv=on".to_owned(),
            kib => format!("kv={kib}"),
        });
        let secrets = self.secrets.iter().map(|secret| {
            let as_it_is = secret.format == "{}";
            let format = if as_it_is { String::new() } else { format!(" ({})", secret.format) };
            format!("secrets={}:{}:{}{format}", secret.env, secret.header, secret.origin)
        });
        files.chain(http).chain(env).chain(config).chain(kv).chain(secrets).collect()
    }

    /// The grants that these have and others have not, word for word: a folder, a rule or a value that
    /// differs in anything counts.
    pub fn beyond(&self, others: &Self) -> Vec<String> {
        let others = others.pairs();
        self.pairs().into_iter().filter(|pair| !others.contains(pair)).collect()
    }

    /// Whether a want is satisfied: what it proposes for the operator to choose (folders of the host,
    /// names of variables, values of the configuration) may be chosen otherwise.
    pub fn satisfy(&self, want: &Want) -> bool {
        let mut wanted = Self::default();
        if wanted.add(&want.grant, &want.value).is_err() {
            return false;
        }
        let enough = |access: Access, least: Access| access == least || access == Access::ReadWrite;
        wanted.files.iter().all(|file| {
            self.files.iter().any(|own| own.guest == file.guest && enough(own.access, file.access))
        }) && wanted.http.iter().all(|rule| self.http.iter().any(|own| own.covers(rule)))
            && wanted.env.iter().all(|name| self.env.contains(name))
            && wanted.config.keys().all(|key| self.config.contains_key(key))
            && wanted.kv_kib.is_none_or(|kib| self.kv_kib.is_some_and(|own| own >= kib))
            && wanted.secrets.iter().all(|secret| {
                let same = |own: &super::SecretGrant| {
                    own.header.eq_ignore_ascii_case(&secret.header) && own.origin == secret.origin
                };
                self.secrets.iter().any(same)
            })
    }
}

impl fmt::Display for FileGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = match self.access {
            Access::ReadOnly => "read-only",
            Access::ReadWrite => "read-write",
        };
        write!(f, "{}:{}:{access}", self.host.display(), self.guest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(pairs: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for pair in pairs {
            grants.add_pair(pair).expect(pair);
        }
        grants
    }

    #[test]
    fn pairs_are_read_back_as_the_same_grants() {
        let pairs = [
            "files=./a:/a:read-write",
            "http=GET,HEAD https://a.com/v1/",
            "http=* http://10.0.0.1:8080/",
            "env=LANG",
            "config.allow=src/**",
            "kv=64",
            "secrets=TOKEN:x-key:https://a.com",
        ];
        let all = grants(&pairs);
        let again = all.pairs();
        assert_eq!(grants(&again.iter().map(String::as_str).collect::<Vec<_>>()), all);
        assert_eq!(all.beyond(&all), Vec::<String>::new());
        assert_eq!(all.beyond(&grants(&pairs[1..])), ["files=./a:/a:read-write"]);
    }

    #[test]
    fn wants() {
        let given = grants(&[
            "files=/mine:/work:read-only",
            "http=GET,POST https://a.com/v1/",
            "kv=64",
            "config.k=1",
        ]);
        for (pair, satisfied) in [
            ("files=.:/work:read-only", true),
            ("files=.:/work:read-write", false),
            ("files=.:/other:read-only", false),
            ("http=GET https://a.com/v1/x", true),
            ("http=GET https://a.com/", false),
            ("http=DELETE https://a.com/v1/", false),
            ("http=* https://a.com/v1/", false),
            ("http=GET https://*.a.com/v1/", false),
            ("http=GET https://a.com/v1/ private", false),
            ("kv=64", true),
            ("kv=65", false),
            ("config.k=2", true),
            ("config.l=2", false),
            ("env=LANG", false),
        ] {
            let (grant, value) = pair.split_once('=').expect("a pair");
            let reason = String::new();
            let want = Want { grant: grant.into(), value: value.into(), reason, optional: false };
            want.check().expect(pair);
            assert_eq!(given.satisfy(&want), satisfied, "{pair}");
        }
    }
}
