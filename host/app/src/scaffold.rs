//! `plugin new`: a project of an author's own, that builds and passes its tests as it is written.
//!
//! The templates are the files beside this one; the contract, the SDK and the lock files are those
//! that the samples of this repository are built and tested with, so none of them can fall behind.

use include_dir::{Dir, DirEntry, include_dir};
use std::fs;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table};

static TEMPLATES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/scaffold");
static SDK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../plugins/sdk/src");
static CONTRACT: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../wit");
const SDK_MANIFEST: &str = include_str!("../../../plugins/sdk/Cargo.toml");
const GUESTS_MANIFEST: &str = include_str!("../../../plugins/Cargo.toml");
const GUESTS_LOCK: &str = include_str!("../../../plugins/Cargo.lock");
const NPM_MANIFEST: &str = include_str!("../../../plugins/words/package.json");
const NPM_LOCK: &str = include_str!("../../../plugins/words/package-lock.json");
const PIP_LOCK: &str = include_str!("../../../plugins/stats/requirements.txt");

/// What a plugin is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// With the SDK, whose source comes along.
    Rust,
    /// With componentize-js.
    JavaScript,
    /// With componentize-py.
    Python,
}

/// What a new plugin starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A hook before calls.
    Hook,
}

/// A project that was written.
#[derive(Debug)]
pub struct Scaffold {
    /// Its folder.
    pub folder: PathBuf,
    /// The commands that build it, test it and let it in, from the folder that `new` was called in.
    pub steps: Vec<String>,
}

/// A project that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The name does not do for a crate, a package and a WIT world alike.
    #[error("a plugin cannot be named `{name}`: {problem}; try `{suggestion}`")]
    Name {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
        /// One that would do.
        suggestion: String,
    },
    /// There is something already.
    #[error("{} is there already: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("write {}: {problem}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
}

/// Writes a project of this name into a folder of this name below `parent`.
pub fn scaffold(
    parent: &Path,
    name: &str,
    language: Language,
    kind: Kind,
) -> Result<Scaffold, ScaffoldError> {
    check_name(name)?;
    let folder = parent.join(name);
    if folder.exists() {
        return Err(ScaffoldError::Exists(folder));
    }
    let steps = steps(name, language);
    for (path, text) in files(name, language, kind, &steps) {
        write(&folder.join(path), &text)?;
    }
    Ok(Scaffold { folder, steps })
}

/// The files of a project by their paths in it.
fn files(name: &str, language: Language, kind: Kind, steps: &[String]) -> Vec<(PathBuf, String)> {
    let fill = |text: &str| filled(text, name, language, kind, steps);
    let mut files = Vec::new();
    for folder in [
        format!("any/{}", kind.folder()),
        format!("{}/both", language.folder()),
        format!("{}/{}", language.folder(), kind.folder()),
    ] {
        for (path, text) in texts(&TEMPLATES, &folder) {
            let path = path.with_extension("");
            let path = if path.ends_with("gitignore") { ".gitignore".into() } else { path };
            files.push((path, fill(text)));
        }
    }
    let contract = match language {
        Language::Rust => "wit",
        Language::JavaScript | Language::Python => "wit/deps/cofferdam-plugin",
    };
    files.extend(
        texts(&CONTRACT, "")
            .into_iter()
            .map(|(path, text)| (Path::new(contract).join(path), text.to_owned())),
    );
    match language {
        Language::Rust => {
            let sdk = Path::new("vendor/cofferdam-plugin");
            files.extend(
                texts(&SDK, "")
                    .into_iter()
                    .map(|(path, text)| (sdk.join("src").join(path), text.to_owned())),
            );
            files.push((sdk.join("Cargo.toml"), without_workspace(SDK_MANIFEST)));
            for (path, text) in &mut files {
                if path == Path::new("Cargo.toml") {
                    *text = without_workspace(text);
                }
            }
            // Cargo adds the project itself and drops what it does not need.
            files.push(("Cargo.lock".into(), GUESTS_LOCK.to_owned()));
        }
        Language::JavaScript => files.push((
            "package-lock.json".into(),
            NPM_LOCK.replace("\"name\": \"words\"", &format!("\"name\": \"{name}\"")),
        )),
        Language::Python => files.push(("requirements.txt".into(), PIP_LOCK.to_owned())),
    }
    files
}

/// The text files below a folder of embedded ones, by their paths in it.
fn texts<'a>(dir: &'a Dir<'a>, below: &str) -> Vec<(PathBuf, &'a str)> {
    let start = if below.is_empty() { Some(dir) } else { dir.get_dir(below) };
    let mut found = Vec::new();
    let mut open: Vec<&Dir<'_>> = start.into_iter().collect();
    while let Some(dir) = open.pop() {
        for entry in dir.entries() {
            match entry {
                DirEntry::Dir(dir) => open.push(dir),
                DirEntry::File(file) => {
                    let path = file.path().strip_prefix(below).unwrap_or(file.path());
                    found.extend(file.contents_utf8().map(|text| (path.to_owned(), text)));
                }
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

fn filled(text: &str, name: &str, language: Language, kind: Kind, steps: &[String]) -> String {
    let about = match kind {
        Kind::Tool => "Greets people.",
        Kind::Hook => "Blocks calls that hold a forbidden word.",
    };
    let module = match kind {
        Kind::Tool => "greet",
        Kind::Hook => "find",
    };
    // What such a component takes, with room to grow.
    let memory = match language {
        Language::Rust => "4_000_000",
        Language::JavaScript | Language::Python => "40_000_000",
    };
    let npm = |key: &str| {
        let manifest: serde_json::Value = serde_json::from_str(NPM_MANIFEST).unwrap_or_default();
        manifest.pointer(key).and_then(|version| version.as_str()).unwrap_or_default().to_owned()
    };
    // The folder is entered already where a project's own text has the commands.
    let steps = steps.get(1..).unwrap_or_default().join("\n");
    [
        ("{{name}}", name),
        ("{{tool}}", &name.replace('-', "_")),
        ("{{about}}", about),
        ("{{module}}", module),
        ("{{memory}}", memory),
        ("{{steps}}", &steps),
        ("{{componentize-js}}", &npm("/devDependencies/@bytecodealliance~1componentize-js")),
        ("{{jco}}", &npm("/overrides/@bytecodealliance~1jco")),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
}

fn steps(name: &str, language: Language) -> Vec<String> {
    let mut steps = vec![format!("cd {name}")];
    let built = match language {
        Language::Rust => {
            steps.push("cargo test".into());
            steps.push("cargo build --release --target wasm32-wasip2".into());
            format!("target/wasm32-wasip2/release/{}.wasm", name.replace('-', "_"))
        }
        Language::JavaScript => {
            steps.push("npm ci --ignore-scripts".into());
            steps.push("npm test".into());
            steps.push("npm run build".into());
            format!("{name}.wasm")
        }
        Language::Python => {
            steps.push("python3 -m venv .venv".into());
            steps.push(".venv/bin/pip install --require-hashes -r requirements.txt".into());
            steps.push("PYTHONPATH=src python3 -m unittest discover -s tests".into());
            steps.push("sh build.sh".into());
            format!("{name}.wasm")
        }
    };
    steps.push(format!("cofferdam plugin pack {built} --output {name}.wasm"));
    steps.push(format!("cofferdam plugin test {name}.wasm cases.toml"));
    steps
}

fn check_name(name: &str) -> Result<(), ScaffoldError> {
    match problem_of(name) {
        None => Ok(()),
        Some(problem) => {
            Err(ScaffoldError::Name { name: name.into(), problem, suggestion: suggestion(name) })
        }
    }
}

/// What keeps a name from doing for a crate, an npm package, a WIT package and a file alike.
fn problem_of(name: &str) -> Option<&'static str> {
    const NAME_MAX: usize = 40;
    // Rust's words, those of WIT, and crates that every crate can see.
    const TAKEN: &[&str] = &[
        "abstract",
        "alloc",
        "as",
        "async",
        "await",
        "become",
        "bool",
        "borrow",
        "box",
        "break",
        "char",
        "cofferdam-plugin",
        "const",
        "continue",
        "core",
        "crate",
        "do",
        "dyn",
        "else",
        "enum",
        "export",
        "extern",
        "false",
        "final",
        "flags",
        "fn",
        "for",
        "func",
        "future",
        "gen",
        "if",
        "impl",
        "import",
        "in",
        "include",
        "interface",
        "let",
        "list",
        "loop",
        "macro",
        "match",
        "mod",
        "move",
        "mut",
        "option",
        "override",
        "own",
        "package",
        "priv",
        "proc-macro",
        "pub",
        "record",
        "ref",
        "resource",
        "result",
        "return",
        "self",
        "static",
        "std",
        "stream",
        "string",
        "struct",
        "super",
        "test",
        "trait",
        "true",
        "try",
        "tuple",
        "type",
        "typeof",
        "unsafe",
        "unsized",
        "use",
        "variant",
        "virtual",
        "where",
        "while",
        "with",
        "world",
        "yield",
        "schemars",
        "serde",
        "serde-json",
        "wit-bindgen",
    ];
    let good_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if name.is_empty() || !name.split('-').all(good_word) {
        Some("it takes lower-case words of letters and digits, joined by `-`")
    } else if name.len() > NAME_MAX {
        Some("it takes 40 characters at most")
    } else if TAKEN.contains(&name) {
        Some("the word has a meaning of its own in Rust or WIT")
    } else {
        None
    }
}

/// The nearest name that would do.
fn suggestion(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| word.trim_start_matches(|c: char| c.is_ascii_digit()));
    let joined = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    let joined: String = joined.chars().take(30).collect();
    match joined.trim_matches('-') {
        "" => "my-tool".into(),
        joined if problem_of(joined).is_none() => joined.into(),
        joined => format!("my-{joined}"),
    }
}

/// A manifest that stands alone: what it takes from the workspace of the samples is written out.
fn without_workspace(manifest: &str) -> String {
    let parse = |text: &str| text.parse::<DocumentMut>().unwrap_or_default();
    let workspace = parse(GUESTS_MANIFEST);
    let mut manifest = parse(manifest);
    manifest.remove("lints");
    for (part, of_workspace) in [("package", "package"), ("dependencies", "dependencies")] {
        let inherited =
            workspace.get("workspace").and_then(|workspace| workspace.get(of_workspace));
        let Some(table) = manifest.get_mut(part).and_then(Item::as_table_mut) else { continue };
        write_out(table, inherited);
    }
    manifest.to_string()
}

fn write_out(table: &mut Table, inherited: Option<&Item>) {
    for (mut key, value) in table.iter_mut() {
        let is_inherited = value.get("workspace").and_then(Item::as_bool) == Some(true);
        let from = inherited.and_then(|inherited| inherited.get(key.get()));
        if let (true, Some(from)) = (is_inherited, from) {
            *value = from.clone();
            key.fmt();
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), ScaffoldError> {
    let failed = |problem| ScaffoldError::Write { path: path.into(), problem };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

impl Language {
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::JavaScript => "javascript",
            Self::Python => "python",
        }
    }
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_whole_and_nothing_is_left_to_fill_in() {
        for language in [Language::Rust, Language::JavaScript, Language::Python] {
            for kind in [Kind::Tool, Kind::Hook] {
                let steps = steps("two-words", language);
                let files = files("two-words", language, kind, &steps);
                for needed in ["README.md", ".gitignore", "cases.toml", "plugin.toml"] {
                    assert!(files.iter().any(|(path, _)| path == Path::new(needed)), "{needed}");
                }
                for (path, text) in &files {
                    let is_sdk = path.starts_with("vendor");
                    assert!(is_sdk || !text.contains("{{"), "{}: {text}", path.display());
                    let inherits = text.contains("workspace = true");
                    assert!(!path.ends_with("Cargo.toml") || !inherits, "{text}");
                    assert!(path.extension().is_none_or(|extension| extension != "in"), "{path:?}");
                }
            }
        }
    }

    #[test]
    fn names() {
        for name in ["greet", "two-words", "a1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for (name, suggestion) in [
            ("", "my-tool"),
            ("My Tool", "my-tool"),
            ("read_file", "read-file"),
            ("7zip", "zip"),
            ("type", "my-type"),
            ("../evil", "evil"),
            ("-", "my-tool"),
        ] {
            let problem = check_name(name).expect_err(name).to_string();
            assert!(problem.ends_with(&format!("try `{suggestion}`")), "{problem}");
        }
    }
}
