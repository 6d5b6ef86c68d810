//! The entry in the operator's file: changed in place, so that comments, order and spaces stay.

use cofferdam_sandbox::Grants;
use std::io::{self, Write as _};
use std::path::Path;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

/// What a file begins with that was not there.
pub(super) const NEW_FILE: &str = "# Which plugins may be loaded, and what each may touch.\n";

/// What is written.
pub(super) struct Change<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a str,
    pub(super) sha256: &'a str,
    pub(super) source: Option<&'a str>,
    /// Beside those that are there.
    pub(super) grants: &'a Grants,
}

impl Change<'_> {
    /// The file with the entry, and the line where that is.
    pub(super) fn apply(&self, text: &str) -> Result<(String, usize), String> {
        let mut file: DocumentMut =
            text.parse().map_err(|problem: toml_edit::TomlError| problem.to_string())?;
        let had_nothing = file.is_empty();
        if had_nothing {
            file.set_trailing("");
        }
        let plugins = file
            .entry("plugins")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .ok_or("`plugins` is written as a value: write each plugin as a table [[plugins]]")?;
        let is_named = |table: &Table| table.get("name").and_then(Item::as_str) == Some(self.name);
        let place = plugins.iter().position(is_named);
        match place.and_then(|place| plugins.get_mut(place)) {
            Some(table) => self.update(table)?,
            None => {
                let mut table = Table::new();
                table.insert("name", value(self.name));
                table.insert("path", value(self.path));
                self.update(&mut table)?;
                if !text.trim().is_empty() {
                    table.decor_mut().set_prefix("\n");
                }
                plugins.push(table);
            }
        }
        // Comments of a file that has nothing else would count as its end.
        let before = if had_nothing { text } else { "" };
        let text = format!("{before}{file}");
        let line = text.lines().position(|line| line.contains(self.sha256)).unwrap_or_default() + 1;
        Ok((text, line))
    }

    fn update(&self, table: &mut Table) -> Result<(), String> {
        set(table, "path", self.path);
        set(table, "sha256", self.sha256);
        match self.source {
            Some(source) => set(table, "source", source),
            None => drop(table.remove("source")),
        }
        if *self.grants == Grants::default() {
            return Ok(());
        }
        let grants = table.entry("grants").or_insert_with(|| {
            let mut grants = Table::new();
            grants.set_dotted(true);
            Item::Table(grants)
        });
        let grants = grants.as_table_like_mut().ok_or("`grants` is no table")?;
        for (key, given) in values(self.grants) {
            let old = grants.entry(key).or_insert_with(|| Item::Value(empty_like(&given)));
            match (old.as_value_mut(), given) {
                (Some(Value::Array(old)), Value::Array(given)) => {
                    given.into_iter().for_each(|item| old.push(item));
                }
                (Some(Value::InlineTable(old)), Value::InlineTable(given)) => {
                    old.extend(given);
                }
                (None, Value::InlineTable(given)) => {
                    let old = old.as_table_like_mut().ok_or("a grant is no table")?;
                    for (key, item) in given {
                        old.insert(&key, Item::Value(item));
                    }
                }
                (Some(old), given) => *old = given,
                (None, _) => return Err(format!("`grants.{key}` is not written as a list")),
            }
        }
        Ok(())
    }
}

/// Replaces a value and leaves what is around it, such as the comment behind it.
fn set(table: &mut Table, key: &str, text: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = Value::from(text);
            *old.decor_mut() = decor;
        }
        None => drop(table.insert(key, value(text))),
    }
}

fn empty_like(given: &Value) -> Value {
    match given {
        Value::Array(_) => Value::Array(Array::new()),
        Value::InlineTable(_) => Value::InlineTable(InlineTable::new()),
        other => other.clone(),
    }
}

/// Grants as the file has them.
fn values(grants: &Grants) -> Vec<(&'static str, Value)> {
    let Grants { files, http, env, config, kv_kib, secrets } = grants;
    let table = |pairs: &[(&str, String)]| {
        let pairs =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
        Value::InlineTable(pairs.collect())
    };
    let list = |items: Vec<Value>| Value::Array(items.into_iter().collect());
    let mut values = Vec::new();
    if !files.is_empty() {
        let access = |grant: &cofferdam_sandbox::grants::FileGrant| {
            let text = grant.to_string();
            text.rsplit(':').next().unwrap_or_default().to_owned()
        };
        let one = |grant: &cofferdam_sandbox::grants::FileGrant| {
            table(&[
                ("host", grant.host.display().to_string()),
                ("guest", grant.guest.clone()),
                ("access", access(grant)),
            ])
        };
        values.push(("files", list(files.iter().map(one).collect())));
    }
    if !http.is_empty() {
        values.push(("http", list(http.iter().map(|rule| rule.to_string().into()).collect())));
    }
    if !env.is_empty() {
        values.push(("env", list(env.iter().map(|name| name.as_str().into()).collect())));
    }
    if !config.is_empty() {
        let pairs: Vec<_> =
            config.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        values.push(("config", table(&pairs)));
    }
    if let Some(kib) = kv_kib {
        values.push(("kv", Value::from(i64::try_from(*kib).unwrap_or(i64::MAX))));
    }
    if !secrets.is_empty() {
        let one = |secret: &cofferdam_sandbox::grants::SecretGrant| {
            table(&[
                ("env", secret.env.clone()),
                ("header", secret.header.clone()),
                ("format", secret.format.clone()),
                ("for", secret.origin.clone()),
            ])
        };
        values.push(("secrets", list(secrets.iter().map(one).collect())));
    }
    values
}

/// The component's path as the operator's file has it: relative to the file where it lies below.
pub(super) fn path_from(config: &Path, file: &Path) -> String {
    let folder =
        config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = match (folder.canonicalize(), file.canonicalize()) {
        (Ok(folder), Ok(file)) => file.strip_prefix(&folder).map(Path::to_path_buf).unwrap_or(file),
        _ => file.into(),
    };
    path.display().to_string()
}

/// Replaces a file: whoever reads it sees the old one or the new one.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

/// The same for what is no text.
pub(super) fn replace_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.into());
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let part = folder.join(format!(".{name}.{}.part", std::process::id()));
    let mut file = std::fs::File::create(&part)?;
    if let Ok(old) = path.metadata() {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&part, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str, name: &str, pairs: &[&str]) -> String {
        let mut grants = Grants::default();
        pairs.iter().for_each(|pair| grants.add_pair(pair).expect(pair));
        let change = Change { name, path: "p.wasm", sha256: DIGEST, source: None, grants: &grants };
        change.apply(text).expect("a good file").0
    }

    const DIGEST: &str = "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabca";
    const FILE: &str = "# mine\n[model]\nprovider = \"scripted\" # offline\nscript = \"a.json\"\n\n\
        [[plugins]] # the first\nname = \"a\"\npath = \"a.wasm\"\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\" # in March\n\
        grants.http = [\"GET https://a.com/\"] # needed\n\n# hooks\n[[hooks]]\nplugin = \"a\"\non = [\"before\"]\n";

    #[test]
    fn an_update_changes_the_digest_and_nothing_else() {
        let wanted = FILE.replace(&"0".repeat(64), DIGEST).replace("\"a.wasm\"", "\"p.wasm\"");
        assert_eq!(change(FILE, "a", &[]), wanted);
    }

    #[test]
    fn grants_join_those_that_are_there() {
        let text = change(FILE, "a", &["http=* https://b.com/", "kv=on", "config.x=1"]);
        assert!(
            text.contains("grants.http = [\"GET https://a.com/\", \"* https://b.com/\"] # needed"),
            "{text}"
        );
        assert!(
            text.contains("grants.kv = 1024\n") && text.contains("grants.config = { x = \"1\" }"),
            "{text}"
        );
        for grants in
            ["[plugins.grants]\nhttp = []", "grants = { http = [] }", "grants.config.y = \"2\"", ""]
        {
            let text = format!("[[plugins]]\nname = \"a\"\npath = \"a\"\n{grants}\n");
            let text = change(
                &text,
                "a",
                &["http=* https://b.com/", "config.x=1", "files=.:/w:read-only"],
            );
            let config = crate::Config::parse(&text, Path::new("c.toml")).expect(&text);
            let grants = &config.plugins[0].grants;
            assert_eq!(
                (grants.http.len(), grants.config["x"].as_str(), grants.files.len()),
                (1, "1", 1),
                "{text}"
            );
        }
    }

    #[test]
    fn a_new_entry_goes_behind_the_others() {
        let text = change(FILE, "b", &["env=LANG"]);
        let config = crate::Config::parse(&text, Path::new("c.toml")).expect(&text);
        assert_eq!(config.plugins[1].name, "b");
        assert_eq!(config.plugins[1].grants.env, ["LANG"]);
        assert!(
            text.contains("# mine") && text.contains("# needed\n") && text.contains("# hooks"),
            "{text}"
        );
        let first = change(NEW_FILE, "b", &[]);
        assert_eq!(
            first,
            format!(
                "{NEW_FILE}\n[[plugins]]\nname = \"b\"\npath = \"p.wasm\"\nsha256 = \"{DIGEST}\"\n"
            )
        );
    }
}
