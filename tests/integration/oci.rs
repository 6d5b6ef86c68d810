//! `plugin allow oci://…` against a real registry: Debian's `docker-registry`, on loopback.

use crate::authors::wanting;
use crate::cofferdam;
use cofferdam_tests::{Ran, root, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A registry that lives as long as this.
struct Registry {
    host: String,
    /// What is said of ourselves to push into it.
    authorization: &'static str,
    server: Child,
    folder: tempfile::TempDir,
}

/// `me:s3cret`, as htpasswd has it and as a header has it.
const PASSWORDS: &str = "me:$2b$04$YBs.zI7J.D2iMTWdX82wTeMyWxrwPbAgHfLJ2zvK9X0YHuLclRoU6\n";
const AUTH: &str = "bWU6czNjcmV0";

/// The program: named by the environment, installed, or unpacked by `cargo xtask test`.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn program() -> Option<PathBuf> {
    let named = std::env::var_os("COFFERDAM_DOCKER_REGISTRY").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain([root().join("target/docker-registry/usr/bin")]);
    let found = named.into_iter().chain(folders.map(|folder| folder.join("docker-registry")));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        eprintln!("LEFT OUT: docker-registry is missing: install Debian's package of that name");
    }
    found
}

impl Registry {
    /// None where there is no program for it.
    fn start(with_password: bool) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{port}");
        let passwords = folder.path().join("passwords");
        fs::write(&passwords, PASSWORDS).unwrap();
        let mut config = json!({
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": folder.path().join("data")}},
            "http": {"addr": host},
        });
        if with_password {
            config["auth"] = json!({"htpasswd": {"realm": "tools", "path": passwords}});
        }
        // JSON is YAML.
        let file = folder.path().join("config.yml");
        fs::write(&file, config.to_string()).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(file).env("OTEL_TRACES_EXPORTER", "none");
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let authorization =
            if with_password { "authorization: Basic bWU6czNjcmV0\r\n" } else { "" };
        let registry = Self { host, authorization, server, folder };
        registry.wait();
        Some(registry)
    }

    /// Until it takes connections.
    fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&self.host).is_err() {
            assert!(Instant::now() < end, "docker-registry does not listen");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A request: the head of the answer.
    fn ask(&self, request: &str, type_: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let (host, authorization, length) = (&self.host, self.authorization, body.len());
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {host}\r\n{authorization}content-type: {type_}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 20"), "{request}: {answer}");
        answer
    }

    /// Puts bytes into a repository: their descriptor.
    fn push_blob(&self, repository: &str, type_: &str, bytes: &[u8]) -> Value {
        let begun = self.ask(&format!("POST /v2/{repository}/blobs/uploads/"), type_, b"");
        let line = begun.lines().find(|line| line.to_ascii_lowercase().starts_with("location:"));
        let place = line.unwrap().split_once("/v2/").unwrap().1;
        let digest = format!("sha256:{}", cofferdam_sandbox::sha256_hex(bytes));
        let request = format!("PUT /v2/{place}&digest={}", digest.replace(':', "%3A"));
        self.ask(&request, "application/octet-stream", bytes);
        json!({"mediaType": type_, "digest": digest, "size": bytes.len()})
    }

    /// Pushes a component as `wkg oci push` does: its reference.
    fn push(&self, name: &str, component: &Path) -> String {
        let component = fs::read(component).unwrap();
        self.push_as(name, "application/vnd.wasm.config.v0+json", "application/wasm", &component)
    }

    fn push_as(&self, name: &str, config: &str, layer: &str, bytes: &[u8]) -> String {
        const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
        let (repository, tag) = name.split_once(':').unwrap();
        let config =
            self.push_blob(repository, config, br#"{"architecture":"wasm","os":"wasip2"}"#);
        let layer = self.push_blob(repository, layer, bytes);
        let manifest =
            json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        let request = format!("PUT /v2/{repository}/manifests/{tag}");
        self.ask(&request, MANIFEST, manifest.to_string().as_bytes());
        format!("oci://{}/{name}", self.host)
    }

    /// The command that allows a component, in a folder of its own.
    fn allow(&self, reference: &str, more: &[&str]) -> Ran {
        let mut command = cofferdam();
        command.current_dir(self.folder.path()).args(["plugin", "allow", reference]).args(more);
        command.env("COFFERDAM_STATE_DIR", self.path("state"));
        command.env("REGISTRY_AUTH_FILE", self.path("auth.json"));
        run(&mut command)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> String {
        fs::read_to_string(self.path("cofferdam.toml")).unwrap()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.server.kill().and_then(|()| self.server.wait()));
    }
}

/// The value of a key in the operator's file.
fn value(config: &str, key: &str) -> String {
    let line = config.lines().find(|line| line.starts_with(key)).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

#[test]
fn a_component_of_a_registry_is_pinned_kept_and_used() {
    let Some(registry) = Registry::start(false) else { return };
    let http = "http=GET https://rates.example.com/";
    wanting(registry.folder.path(), "one.wasm", "1.0.0", &[http]);
    let reference = registry.push("tools/sums:1", &registry.path("one.wasm"));

    let unasked = registry.allow(&reference, &[]);
    assert!(unasked.code == 2 && unasked.err.contains("nothing was written"), "{unasked:?}");
    assert!(!registry.path("cofferdam.toml").exists() && !registry.path(".cofferdam").exists());
    let first = registry.allow(&reference, &["--yes"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.out.contains(&format!("from      {reference}@sha256:")), "{first:?}");
    let again = format!("cofferdam plugin allow {reference}@sha256:");
    assert!(
        first.out.contains(&again),
        "what is left to grant names the same component: {first:?}"
    );

    let config = registry.config();
    let (path, source) = (value(&config, "path"), value(&config, "source"));
    assert!(path.starts_with(".cofferdam/plugins/sums-") && path.ends_with(".wasm"), "{path}");
    assert!(source.starts_with(&format!("{reference}@sha256:")), "{source}");
    assert_eq!(
        fs::read(registry.path(&path)).unwrap(),
        fs::read(registry.path("one.wasm")).unwrap()
    );
    let mut call = cofferdam();
    call.current_dir(registry.folder.path()).args(["plugin", "call", &path, "calc"]);
    call.args(["{\"expressions\": [\"1+1\"]}", "--config", "cofferdam.toml"]);
    assert_eq!(run(&mut call).code, 0);
    let same = registry.allow(&reference, &["--yes"]);
    assert!(same.out.contains("in force  this component"), "{same:?}");
    assert_eq!(registry.config(), config);

    // The tag moves: the entry does not until it is allowed, and what grew stays off.
    wanting(registry.folder.path(), "two.wasm", "2.0.0", &[http, "kv=on"]);
    registry.push("tools/sums:1", &registry.path("two.wasm"));
    let update = registry.allow(&reference, &["--yes", "--grant", http]);
    for part in [
        "plugin    sums 2.0.0",
        "+ kv=on  (grew, off): because",
        "  http=GET https://rates.example.com/  (off)",
    ] {
        assert!(update.out.contains(part), "{part}: {update:?}");
    }
    let updated = registry.config();
    assert_eq!(updated.matches("[[plugins]]").count(), 1, "{updated}");
    assert!(!updated.contains("grants.kv") && updated.contains("grants.http"), "{updated}");
    assert_ne!(value(&updated, "path"), path);
    assert!(registry.path(&path).exists(), "a host that runs may still load it");

    // The way back is the line that the file had.
    let back = registry.allow(&source, &["--yes"]);
    assert_eq!((back.code, value(&registry.config(), "path")), (0, path), "{back:?}");
    let bytes = registry.config();
    let missing = registry.allow(&reference.replace("sums:1", "sums:3"), &["--yes"]);
    assert!(missing.code == 2, "{missing:?}");
    assert_eq!(registry.config(), bytes, "a refusal changes nothing");
}

#[test]
fn what_a_registry_does_not_have_or_give_is_refused() {
    let Some(registry) = Registry::start(true) else { return };
    wanting(registry.folder.path(), "one.wasm", "1.0.0", &[]);
    let reference = registry.push("sums:1.0", &registry.path("one.wasm"));
    let stranger = registry.allow(&reference, &["--yes"]);
    assert!(
        stranger.code == 2 && stranger.err.contains("log in with `docker login"),
        "{stranger:?}"
    );

    let login = json!({"auths": {&registry.host: {"auth": AUTH}}});
    fs::write(registry.path("auth.json"), login.to_string()).unwrap();
    let known = registry.allow(&reference, &["--yes"]);
    assert_eq!(known.code, 0, "{known:?}");
    assert!(!format!("{known:?}").contains(AUTH));

    let missing = registry.allow(&reference.replace("sums:1.0", "sums:2.0"), &["--yes"]);
    assert!(missing.code == 2 && missing.err.contains("it has the tags 1.0"), "{missing:?}");
    let image = registry.push_as(
        "image:1",
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar",
        b"tar",
    );
    let image = registry.allow(&image, &["--yes"]);
    assert!(image.code == 2 && image.err.contains("no layer of application/wasm"), "{image:?}");
    let module = registry.push_as(
        "module:1",
        "application/vnd.wasm.config.v0+json",
        "application/wasm",
        b"\0asm\x01\0\0\0",
    );
    let module = registry.allow(&module, &["--yes"]);
    assert!(module.code == 2 && module.err.contains("is no plugin for this host"), "{module:?}");
    let unnamed = registry.allow("oci://127.0.0.1/sums", &["--yes"]);
    assert!(unnamed.code == 2 && unnamed.err.contains("a tag or a digest"), "{unnamed:?}");
}
