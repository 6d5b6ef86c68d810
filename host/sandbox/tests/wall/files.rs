//! Granted directories, from a guest that tries to leave them.

use crate::guest::Guest;
use crate::support::{Prober, grants, source};
use cofferdam_sandbox::{CacheConfig, Code, Limits, Plugin, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use tempfile::TempDir;

/// A directory to write in, one to look at, and what is around them.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for dir in ["w", "w/sub", "r", "outside"] {
            std::fs::create_dir(root.join(dir)).unwrap();
        }
        for (file, text) in [
            ("w/a", "in w"),
            ("r/a", "in r"),
            ("outside/secret", "the secret"),
            ("top", "the secret"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        Self { folder }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn grants(&self) -> Vec<String> {
        let root = self.root().display();
        vec![format!("files={root}/w:/w:read-write"), format!("files={root}/r:/r:read-only")]
    }

    async fn prober(&self) -> Prober {
        Prober::with(&[], &self.grants()).await
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Everything that is there, with what is in it.
    fn everything(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        collect(self.root(), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let link = std::fs::read_link(&path).map(|to| format!("-> {}", to.display()));
        if link.is_err() && path.is_dir() {
            collect(&path, found);
        }
        let text = link.or_else(|_| std::fs::read_to_string(&path)).unwrap_or_default();
        found.push((path.display().to_string(), text));
    }
}

/// What is wrong about each step; `""` where it worked.
fn errors(outcomes: &[Value]) -> Vec<&str> {
    outcomes.iter().map(|outcome| outcome["err"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn what_is_granted_works() {
    let place = Place::new();
    let (outcomes, receipt) = place
        .prober()
        .await
        .try_steps(json!([
            {"do": "dirs"},
            {"do": "open", "dir": "/r", "path": "a", "get": 100},
            {"do": "open", "dir": "/w", "path": "sub/../a", "stream": 100},
            {"do": "open", "dir": "/w", "path": "new", "create": true, "write": true, "put": "hello"},
            {"do": "open", "dir": "/w", "path": "new", "write": true, "append": true, "fill": 10},
            {"do": "mkdir", "dir": "/w", "path": "d"},
            {"do": "rename", "dir": "/w", "path": "new", "to": "d/new"},
            {"do": "symlink", "dir": "/w", "path": "d/link", "target": "new"},
            {"do": "stat", "dir": "/w", "path": "d/link"},
            {"do": "open", "dir": "/w", "path": "d/link", "get": 3},
            {"do": "times", "dir": "/w", "path": "a"},
            {"do": "unlink", "dir": "/w", "path": "a"},
            {"do": "list", "dir": "/w"},
        ]))
        .await;
    assert_eq!(errors(&outcomes), [""; 13], "{outcomes:?}");
    assert_eq!(outcomes[0]["ok"], json!(["/w", "/r"]));
    assert_eq!(outcomes[1]["ok"]["body"], "in r");
    assert_eq!(outcomes[2]["ok"]["body"], "in w");
    assert_eq!(outcomes[9]["ok"]["body"], "hel");
    assert_eq!(outcomes[12]["ok"], json!(["d", "sub"]));
    assert_eq!(place.read("w/d/new"), "helloxxxxxxxxxx");
    assert_eq!(receipt.refusals, <[String; 0]>::default());
    assert_eq!(receipt.host_calls.files.bytes, 4 + 4 + 15 + 3);
}

/// Neither dots nor links nor a rename lead out of a directory, whatever is done at the end of the way.
#[tokio::test]
async fn nothing_leads_out() {
    let place = Place::new();
    let root = place.root().to_owned();
    // Links that the operator, or another program, has left in the granted directory.
    for (link, to) in [
        ("w/up", "../top"),
        ("w/out", "../outside"),
        ("w/absolute", root.join("top").to_str().unwrap()),
        ("w/root", "/"),
        ("w/self", "self"),
        ("w/one", "two"),
        ("w/two", "../outside/secret"),
        ("w/sub/far", "../../top"),
    ] {
        symlink(to, root.join(link)).unwrap();
    }
    let before = place.everything();
    let prober = place.prober().await;
    for path in [
        "../top",
        "sub/../../top",
        "..",
        "../w/../top",
        "up",
        "out/secret",
        "absolute",
        "root/etc/passwd",
        "self",
        "one",
        "two",
        "sub/far",
        "/etc/passwd",
        root.join("top").to_str().unwrap(),
        "./../top",
        "sub/./../../top",
        "a/../../top",
        "..\u{0}/top",
    ] {
        let (outcomes, _) = prober
            .try_steps(json!([
                {"do": "open", "dir": "/w", "path": path, "get": 100},
                {"do": "open", "dir": "/w", "path": path, "stream": 100},
                {"do": "open", "dir": "/w", "path": path, "write": true, "put": "owned"},
                {"do": "open", "dir": "/w", "path": path, "write": true, "truncate": true},
                {"do": "open", "dir": "/w", "path": path, "create": true, "write": true, "put": "owned"},
                {"do": "open", "dir": "/w", "path": path, "directory": true, "mutate": true, "list": true},
                {"do": "stat", "dir": "/w", "path": path},
                {"do": "times", "dir": "/w", "path": path},
                {"do": "rename", "dir": "/w", "path": "a", "to": format!("{path}/a")},
                {"do": "rename", "dir": "/w", "path": format!("{path}/a"), "to": "stolen"},
                {"do": "mkdir", "dir": "/w", "path": format!("{path}/d")},
                {"do": "unlink", "dir": "/w", "path": format!("{path}/secret")},
            ]))
            .await;
        assert!(errors(&outcomes).iter().all(|error| !error.is_empty()), "{path}: {outcomes:?}");
        assert!(!json!(outcomes).to_string().contains("the secret"), "{path}: {outcomes:?}");
        assert_eq!(place.everything(), before, "{path}");
    }
    // The links themselves are the guest's to remove.
    let (outcomes, _) =
        prober.try_steps(json!([{"do": "unlink", "dir": "/w", "path": "up"}])).await;
    assert_eq!(errors(&outcomes), [""]);
    assert_eq!(place.read("top"), "the secret");
}

/// What moves is the name, so that a rename could carry a file out or a link in.
#[tokio::test]
async fn between_two_grants() {
    let place = Place::new();
    let before = place.everything();
    let (outcomes, _) = place
        .prober()
        .await
        .try_steps(json!([
            {"do": "rename", "dir": "/r", "path": "a", "to_dir": "/w", "to": "b"},
            {"do": "rename", "dir": "/w", "path": "a", "to_dir": "/r", "to": "b"},
            {"do": "rename", "dir": "/w", "path": "a", "to_dir": "/r", "to": "a"},
            {"do": "link", "dir": "/r", "path": "a", "to_dir": "/w", "to": "b"},
            {"do": "link", "dir": "/w", "path": "a", "to_dir": "/r", "to": "b"},
        ]))
        .await;
    assert_eq!(errors(&outcomes), ["not-permitted"; 5]);
    assert_eq!(place.everything(), before);
}

#[tokio::test]
async fn a_directory_to_look_at_is_only_looked_at() {
    let place = Place::new();
    symlink("a", place.root().join("r/link")).unwrap();
    let before = place.everything();
    let modified = std::fs::metadata(place.root().join("r/a")).unwrap().modified().unwrap();
    let (outcomes, receipt) = place
        .prober()
        .await
        .try_steps(json!([
            {"do": "open", "dir": "/r", "path": "new", "create": true, "write": true},
            {"do": "open", "dir": "/r", "path": "new", "create": true},
            {"do": "open", "dir": "/r", "path": "a", "truncate": true},
            {"do": "open", "dir": "/r", "path": "a", "write": true, "put": "owned"},
            {"do": "open", "dir": "/r", "path": "link", "write": true, "put": "owned"},
            {"do": "open", "dir": "/r", "path": "a", "put": "owned"},
            {"do": "open", "dir": "/r", "path": "a", "append": true, "fill": 1},
            {"do": "open", "dir": "/r", "path": "a", "fill": 1},
            {"do": "open", "dir": "/r", "path": "a", "size": 0},
            {"do": "open", "dir": "/r", "path": "a", "times": true},
            {"do": "open", "dir": "/r", "path": ".", "directory": true, "mutate": true, "mkdir": "d"},
            {"do": "times", "dir": "/r", "path": "a"},
            {"do": "unlink", "dir": "/r", "path": "a"},
            {"do": "rename", "dir": "/r", "path": "a", "to": "b"},
            {"do": "symlink", "dir": "/r", "path": "s", "target": "a"},
            {"do": "mkdir", "dir": "/r", "path": "d"},
            {"do": "rmdir", "dir": "/r", "path": "."},
        ]))
        .await;
    assert!(errors(&outcomes).iter().all(|error| !error.is_empty()), "{outcomes:?}");
    assert_eq!(place.everything(), before);
    assert_eq!(std::fs::metadata(place.root().join("r/a")).unwrap().modified().unwrap(), modified);
    let host = place.root().join("r").display().to_string();
    let line = format!(
        "granted read-only; to allow it: grants.files = [{{ host = {host:?}, guest = \"/r\", access = \"read-write\" }}]"
    );
    for path in ["new", "a", "d"] {
        let said = format!("`{path}` is in a directory that is {line}");
        assert!(receipt.refusals.contains(&said), "{said}: {receipt:?}");
    }
}

/// To the guest it is an error code among others; the receipt says what was asked for and what would allow it.
#[tokio::test]
async fn who_wants_to_leave_is_told_what_to_grant() {
    let place = Place::new();
    let prober = place.prober().await;
    for step in [
        json!({"do": "open", "dir": "/w", "path": "../top", "get": 1}),
        json!({"do": "stat", "dir": "/w", "path": "../top"}),
        json!({"do": "mkdir", "dir": "/w", "path": "../top"}),
        json!({"do": "unlink", "dir": "/w", "path": "../top"}),
        json!({"do": "rename", "dir": "/w", "path": "a", "to": "../top"}),
        json!({"do": "rename", "dir": "/w", "path": "../top", "to": "b"}),
    ] {
        let (outcomes, receipt) = prober.try_steps(json!([step])).await;
        assert!(!outcomes[0]["err"].is_null(), "{step}: {outcomes:?}");
        let [refusal] = &receipt.refusals[..] else { panic!("{step}: {receipt:?}") };
        assert!(
            refusal.starts_with("`../top` leads out of the granted directory")
                && refusal.contains("grants.files = [{ host = "),
            "{step}: {refusal}"
        );
    }
    let (_, receipt) =
        prober.try_steps(json!([{"do": "open", "dir": "/w", "path": "nothing", "get": 1}])).await;
    assert!(receipt.refusals.is_empty(), "{receipt:?}");
}

/// Hard links outlive the grant; a pipe that nobody writes to would hold a thread for good.
#[tokio::test]
async fn links_that_stay_and_files_that_are_none() {
    let place = Place::new();
    let fifo = place.root().join("w/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let socket = std::os::unix::net::UnixListener::bind(place.root().join("w/socket")).unwrap();
    symlink("fifo", place.root().join("w/to-fifo")).unwrap();
    let (outcomes, receipt) = place
        .prober()
        .await
        .try_steps(json!([
            {"do": "link", "dir": "/w", "path": "a", "to": "b"},
            {"do": "open", "dir": "/w", "path": "fifo", "get": 1},
            {"do": "open", "dir": "/w", "path": "fifo", "write": true, "put": "x"},
            {"do": "open", "dir": "/w", "path": "to-fifo", "stream": 1},
            {"do": "open", "dir": "/w", "path": "sub/../fifo", "create": true, "write": true},
            {"do": "open", "dir": "/w", "path": "socket", "get": 1},
            {"do": "symlink", "dir": "/w", "path": "out", "target": "../top"},
            {"do": "symlink", "dir": "/w", "path": "out", "target": "/etc/passwd"},
        ]))
        .await;
    drop(socket);
    assert_eq!(errors(&outcomes), ["not-permitted"; 8], "{outcomes:?}");
    for word in ["hard links", "regular files and directories only", "symbolic links"] {
        assert!(receipt.refusals.iter().any(|r| r.contains(word)), "{:?}", receipt.refusals);
    }
    // Devices are of the same kind; the one that is on every system is not a directory's neighbour.
    let devices = Prober::with(&[], &["files=/dev:/dev:read-write"]).await;
    let (outcomes, _) = devices
        .try_steps(json!([
            {"do": "open", "dir": "/dev", "path": "null", "write": true, "put": "x"},
            {"do": "open", "dir": "/dev", "path": "zero", "get": 1},
            {"do": "open", "dir": "/dev", "path": "tty", "get": 1},
        ]))
        .await;
    assert!(errors(&outcomes).iter().all(|error| !error.is_empty()), "{outcomes:?}");
}

/// Lengths that no file has, as a guest may ask for them.
#[tokio::test]
async fn lengths_beyond_reason() {
    let place = Place::new();
    let prober = place.prober().await;
    let (outcomes, _) = prober
        .try_steps(json!([
            {"do": "open", "dir": "/w", "path": "a", "get": u64::MAX},
            {"do": "open", "dir": "/w", "path": "a", "stream": u64::MAX},
            {"do": "open", "dir": "/w", "path": "a", "get": 1, "at": u64::MAX},
            {"do": "open", "dir": "/w", "path": "a", "write": true, "put": "x", "at": u64::MAX},
            {"do": "open", "dir": "/w", "path": "a", "write": true, "size": u64::MAX},
            {"do": "open", "dir": "/w", "path": "x".repeat(100_000), "get": 1},
            {"do": "open", "dir": "/w", "path": "a/".repeat(50_000), "get": 1},
        ]))
        .await;
    let errors = errors(&outcomes);
    assert_eq!(&errors[..2], ["", ""], "{outcomes:?}");
    assert!(errors[2..].iter().all(|error| !error.is_empty()), "{outcomes:?}");
    assert_eq!(place.read("w/a"), "in w");
    let outcome = prober
        .call(json!([{"do": "open", "dir": "/w", "path": "a", "write": true, "zeroes": u64::MAX}]))
        .await;
    assert!(outcome.answer.is_err() || !place.read("w/a").contains("in w"), "{outcome:?}");
}

/// What the system denies to the host is denied to the guest, and says so.
#[tokio::test]
async fn a_directory_that_the_host_may_not_read() {
    let place = Place::new();
    let locked = place.root().join("w/locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let (outcomes, _) = place
        .prober()
        .await
        .try_steps(json!([{"do": "open", "dir": "/w", "path": "locked/x", "get": 1}]))
        .await;
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Root may; everybody else may not.
    assert!(["access", "no-entry"].contains(&errors(&outcomes)[0]), "{outcomes:?}");
}

/// A plugin that may write beside a granted directory, or another program, puts a link in its place.
#[tokio::test]
async fn what_was_granted_is_what_was_there() {
    let place = Place::new();
    let prober = place.prober().await;
    std::fs::rename(place.root().join("r"), place.root().join("old")).unwrap();
    symlink(place.root().join("outside"), place.root().join("r")).unwrap();
    let (outcomes, _) = prober
        .try_steps(json!([
            {"do": "list", "dir": "/r"},
            {"do": "open", "dir": "/r", "path": "secret", "get": 100},
        ]))
        .await;
    assert_eq!(outcomes[0]["ok"], json!(["a"]));
    assert_ne!(outcomes[1]["err"], Value::Null, "{outcomes:?}");
}

/// Whoever can write compiled code runs on the machine itself.
#[tokio::test]
async fn compiled_code_is_not_granted_for_writing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheConfig { dir: folder.path().join("kept/code"), size_mib: 1 };
    let config = SandboxConfig { cache: Some(cache), ..SandboxConfig::default() };
    let sandbox = Sandbox::new(config).unwrap();
    for dir in ["work", "kept/other"] {
        std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    symlink(folder.path().join("kept"), folder.path().join("work/link")).unwrap();
    let load = async |grant: &str| {
        let grant = format!("files={}/{grant}", folder.path().display());
        let source = source(Code::Bytes(Guest::default().text().into_bytes()));
        let loaded = Plugin::load(&sandbox, source, Limits::default(), grants(&[grant])).await;
        loaded.map(drop).map_err(|error| error.to_string())
    };
    for grant in [
        ":/w:read-write",
        "kept:/w:read-write",
        "kept/code:/w:read-write",
        "work/link:/w:read-write",
    ] {
        let problem = load(grant).await.unwrap_err();
        assert!(problem.contains("gets around every grant"), "{grant}: {problem}");
    }
    for grant in ["work:/w:read-write", "kept:/w:read-only", "kept/other:/w:read-write"] {
        assert_eq!(load(grant).await, Ok(()), "{grant}");
    }
}
