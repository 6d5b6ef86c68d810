//! Compiled code on disk: what is kept is found again, and whatever is wrong with it is a miss that
//! nobody notices but by the time it takes.
#![allow(missing_docs, clippy::unwrap_used)]

#[allow(dead_code)]
mod guest;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{
    CacheConfig, Code, Grants, Limits, LoadError, Plugin, PluginSource, Sandbox, SandboxConfig,
    sha256_hex,
};
use guest::Guest;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder with a plugin file and a folder of compiled code.
struct Bench {
    folder: tempfile::TempDir,
    sandbox: Sandbox,
}

const ECHO: &str = "";
const OTHER: &str = "(call $answer (i32.const 64) (i32.const 5))";

impl Bench {
    fn new() -> Self {
        Self::with_size(100)
    }

    fn with_size(size_mib: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = sandbox(&folder.path().join("cache"), size_mib);
        let bench = Self { folder, sandbox };
        bench.write("guest.wasm", ECHO);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, call: &'static str) -> PathBuf {
        let functions = r#"(data (i32.const 64) "other")"#;
        let text = Guest { functions, ..Guest::call(call) }.text();
        let path = self.path(name);
        fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
        // Whoever has just been written may be written again unnoticed, and is not remembered.
        rest(&path);
        path
    }

    /// Loads the plugin, tells whether its code was at hand, and checks what it answers.
    fn load(&self, name: &str, answer: &str) -> bool {
        let plugin = self.try_load(name, Limits::default(), None).unwrap();
        assert_eq!(said(&plugin), answer);
        plugin.compile_time().is_none()
    }

    fn try_load(
        &self,
        name: &str,
        limits: Limits,
        sha256: Option<String>,
    ) -> Result<Plugin, LoadError> {
        let code = Code::Path(self.path(name));
        let source = PluginSource { name: "guest".into(), code, sha256, accept_text: false };
        block_on(Plugin::load(&self.sandbox, source, limits, Grants::default()))
    }

    /// The only file of the cache that ends like this.
    fn cached(&self, end: &str) -> PathBuf {
        let mut found: Vec<PathBuf> = fs::read_dir(self.path("cache"))
            .unwrap()
            .map(|file| file.unwrap().path())
            .filter(|path| path.to_str().unwrap().ends_with(end))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.pop().unwrap()
    }
}

fn sandbox(cache: &Path, size_mib: u64) -> Sandbox {
    let cache = CacheConfig { dir: cache.into(), size_mib };
    Sandbox::new(SandboxConfig { slots: 4, cache: Some(cache), ..SandboxConfig::default() })
        .unwrap()
}

fn said(plugin: &Plugin) -> String {
    let call = plugin.call_tool("run", r#"{"a":1}"#, Progress::default(), AbortSignal::new());
    match &block_on(call).answer.unwrap().content[..] {
        [Content::Text(text), ..] => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// Sets the time of the last change back, as its owner can. The file system keeps the other time, so
/// this waits until that one has rested as well.
fn rest(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(80));
}

const SAID: &str = r#"{"a":1}"#;

#[test]
fn what_is_kept_is_found_again() {
    let bench = Bench::new();
    assert!(!bench.load("guest.wasm", SAID));
    assert!(bench.load("guest.wasm", SAID));
    fs::rename(bench.path("guest.wasm"), bench.path("moved.wasm")).unwrap();
    assert!(bench.load("moved.wasm", SAID), "the digest is what counts, not the place");
    let again = sandbox(&bench.path("cache"), 100);
    assert!(Bench { sandbox: again, ..bench }.load("moved.wasm", SAID));
}

#[test]
fn whatever_is_wrong_with_an_entry_is_a_miss() {
    type Spoil = fn(&Bench);
    let spoilers: [(&str, Spoil); 15] = [
        ("cut", |b| {
            let code = fs::read(b.cached(".cwasm")).unwrap();
            fs::write(b.cached(".cwasm"), &code[..code.len() / 2]).unwrap();
        }),
        ("empty", |b| fs::write(b.cached(".cwasm"), "").unwrap()),
        ("one bit, with the old time", |b| {
            let path = b.cached(".cwasm");
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            let mut code = fs::read(&path).unwrap();
            let middle = code.len() / 2;
            code[middle] ^= 1;
            fs::write(&path, code).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
        }),
        ("code of another plugin", |b| {
            let before = b.cached(".cwasm");
            b.write("other.wasm", OTHER);
            b.load("other.wasm", "other");
            let other = fs::read_dir(b.path("cache"))
                .unwrap()
                .map(|file| file.unwrap().path())
                .find(|path| path.extension().is_some_and(|end| end == "cwasm") && *path != before);
            fs::copy(other.unwrap(), before).unwrap();
        }),
        ("code of another plugin, linked", |b| {
            let before = b.cached(".cwasm");
            fs::rename(&before, b.path("own")).unwrap();
            symlink(b.path("own"), before).unwrap();
        }),
        ("a folder", |b| {
            let path = b.cached(".cwasm");
            fs::remove_file(&path).unwrap();
            fs::create_dir(&path).unwrap();
            fs::write(path.join("full"), "").unwrap();
        }),
        ("a pipe", |b| {
            let path = b.cached(".cwasm");
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("a pipe for an index", |b| {
            let path = b.cached(".index");
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("writable for others", |b| {
            fs::set_permissions(b.cached(".cwasm"), fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("no code", |b| fs::remove_file(b.cached(".cwasm")).unwrap()),
        ("no index", |b| fs::remove_file(b.cached(".index")).unwrap()),
        ("an index of nonsense", |b| fs::write(b.cached(".index"), "{\"key\":").unwrap()),
        ("an index that others may write", |b| {
            fs::set_permissions(b.cached(".index"), fs::Permissions::from_mode(0o606)).unwrap();
        }),
        ("an index of another key", |b| {
            let text = fs::read_to_string(b.cached(".index")).unwrap();
            fs::write(b.cached(".index"), text.replacen("\"key\":\"", "\"key\":\"0", 1)).unwrap();
        }),
        ("no machine code, and an index that vouches for it", |b| {
            let (code, index) = (b.cached(".cwasm"), b.cached(".index"));
            let before = fs::read(&code).unwrap();
            let nonsense = vec![0; before.len()];
            fs::write(&code, &nonsense).unwrap();
            let text = fs::read_to_string(&index).unwrap();
            let text = text.replace(&sha256_hex(&before), &sha256_hex(&nonsense));
            fs::write(&index, text).unwrap();
        }),
    ];
    for (what, spoil) in spoilers {
        let bench = Bench::new();
        bench.load("guest.wasm", SAID);
        spoil(&bench);
        assert!(!bench.load("guest.wasm", SAID), "{what}: taken from the cache");
        let stuck = matches!(what, "a folder");
        assert_eq!(bench.load("guest.wasm", SAID), !stuck, "{what}: mended");
    }
}

#[test]
fn a_touched_entry_with_the_same_content_is_a_hit() {
    let bench = Bench::new();
    bench.load("guest.wasm", SAID);
    let code = bench.cached(".cwasm");
    let (copy, times) = (bench.path("copy"), SystemTime::UNIX_EPOCH);
    fs::copy(&code, &copy).unwrap();
    fs::rename(&copy, &code).unwrap();
    fs::File::options().append(true).open(&code).unwrap().set_modified(times).unwrap();
    assert!(bench.load("guest.wasm", SAID));
}

#[test]
fn a_plugin_file_that_changed_is_noticed_though_its_time_is_set_back() {
    let bench = Bench::new();
    bench.load("guest.wasm", SAID);
    bench.load("guest.wasm", SAID);
    let path = bench.path("guest.wasm");
    let before = fs::read(&path).unwrap();
    // A byte of the name section, so that the size stays.
    let place = before.windows(6).rposition(|bytes| bytes == b"answer").unwrap();
    let mut after = before.clone();
    after[place] = b'A';
    fs::write(&path, &after).unwrap();
    rest(&path);
    let pinned = Some(sha256_hex(&before));
    let refused = bench.try_load("guest.wasm", Limits::default(), pinned).err().unwrap();
    assert!(matches!(&refused, LoadError::Digest { found, .. } if *found == sha256_hex(&after)));
    assert!(!bench.load("guest.wasm", SAID));
}

#[test]
fn checks_hold_for_what_is_kept() {
    let bench = Bench::new();
    bench.load("guest.wasm", SAID);
    let wrong = Some("0".repeat(64));
    let refused = bench.try_load("guest.wasm", Limits::default(), wrong);
    assert!(matches!(refused, Err(LoadError::Digest { .. })));

    let big: &'static str = Box::leak("(drop (i32.const 1))".repeat(400).into_boxed_str());
    let call = format!("{big}(call $answer (local.get $args) (local.get $args-size))");
    bench.write("big.wasm", Box::leak(call.into_boxed_str()));
    bench.load("big.wasm", SAID);
    let mut limits = Limits::default();
    limits.set("function_kib", "1").unwrap();
    let refused = bench.try_load("big.wasm", limits, None).err().unwrap();
    assert!(matches!(refused, LoadError::TooLarge { key: "function_kib", .. }), "{refused}");
}

#[test]
fn text_that_is_kept_is_still_text() {
    let bench = Bench::new();
    fs::write(bench.path("guest.wat"), Guest::default().text()).unwrap();
    let load = |accept_text| {
        let code = Code::Path(bench.path("guest.wat"));
        let source = PluginSource { name: "guest".into(), code, sha256: None, accept_text };
        block_on(Plugin::load(&bench.sandbox, source, Limits::default(), Grants::default()))
    };
    assert!(load(true).unwrap().compile_time().is_some());
    assert!(load(true).unwrap().compile_time().is_none());
    assert!(matches!(load(false), Err(LoadError::Refused(_))));
}

#[test]
fn engines_of_other_settings_have_entries_of_their_own() {
    let bench = Bench::new();
    bench.load("guest.wasm", SAID);
    let uncounted = Limits { fuel: None, ..Limits::default() };
    let plugin = bench.try_load("guest.wasm", uncounted.clone(), None).unwrap();
    assert!(plugin.compile_time().is_some());
    let plugin = bench.try_load("guest.wasm", uncounted, None).unwrap();
    assert!(plugin.compile_time().is_none());
}

#[test]
fn a_folder_that_is_not_private_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o750)).unwrap();
    let problem = sandbox(&shared, 1).cache_problem().unwrap().to_owned();
    assert!(problem.contains("chmod 700"), "{problem}");
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(sandbox(&folder.path().join("file"), 1).cache_problem().is_some());
    let target = folder.path().join("target");
    fs::create_dir(&target).unwrap();
    symlink(&target, folder.path().join("link")).unwrap();
    assert!(sandbox(&folder.path().join("link"), 1).cache_problem().is_some());
}

#[test]
fn above_its_size_the_longest_unused_goes() {
    let bench = Bench::with_size(0);
    bench.load("guest.wasm", SAID);
    assert!(bench.load("guest.wasm", SAID), "the last one stays");
    bench.write("other.wasm", OTHER);
    assert!(!bench.load("other.wasm", "other"));
    assert!(bench.load("other.wasm", "other"));
    assert!(!bench.load("guest.wasm", SAID));
}

#[test]
fn a_doctor_reads_every_byte() {
    let bench = Bench::new();
    bench.load("guest.wasm", SAID);
    let report = bench.sandbox.verify_cache().unwrap();
    assert_eq!((report.entries, report.removed.len(), report.disguised.len()), (1, 0, 0));
    let code = bench.cached(".cwasm");
    assert_eq!(report.bytes, fs::metadata(&code).unwrap().len());
    fs::write(&code, "not code").unwrap();
    let report = bench.sandbox.verify_cache().unwrap();
    assert_eq!((report.entries, report.removed.len()), (0, 1));
    assert!(!code.exists());

    // What is remembered of the plugin's file is not what the file says.
    let note = bench.cached(".source");
    let text = fs::read_to_string(&note).unwrap();
    let digest = sha256_hex(&fs::read(bench.path("guest.wasm")).unwrap());
    fs::write(&note, text.replace(&digest, &"0".repeat(64))).unwrap();
    let report = bench.sandbox.verify_cache().unwrap();
    assert_eq!(report.disguised, [bench.path("guest.wasm").canonicalize().unwrap()]);
    assert!(!note.exists());
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
