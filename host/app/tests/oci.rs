//! Registries that say one thing and send another, that never end, or that send us elsewhere.

use base64::Engine as _;
use cofferdam_app::oci::{Bounds, CredentialFile, OciError, Pulled, Reference, pull};
use cofferdam_sandbox::sha256_hex;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0 and more";

/// A server that answers each request by a function, and what it was asked.
struct Server {
    host: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let host = listener.local_addr().expect("bound").to_string();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (heads, answer) = (asked.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (heads, answer) = (heads.clone(), answer.clone());
                thread::spawn(move || {
                    let head = head(&mut stream);
                    heads.lock().expect("no panic").push(head.clone());
                    answer(&head, &mut stream);
                });
            }
        });
        Self { host, asked }
    }

    /// One that has these manifests and blobs, by the ends of their paths.
    fn with(parts: Vec<(String, Vec<u8>)>) -> Self {
        Self::new(move |head, stream| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            match parts.iter().find(|(end, _)| path.ends_with(end.as_str())) {
                Some((_, body)) => send(stream, "200 OK", "", body),
                None => send(stream, "404 Not Found", "", b"{}"),
            }
        })
    }

    fn reference(&self) -> Reference {
        format!("oci://{}/tools/fetch:1.0", self.host).parse().expect("a reference")
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// The whole of an answer. A client that has heard enough hangs up, which is no problem here.
fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)));
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// A manifest with one layer, of which it says this.
fn manifest(digest: &str, size: usize) -> Vec<u8> {
    let layer = json!({"mediaType": "application/wasm", "digest": digest, "size": size});
    let config =
        json!({"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest, "size": 2});
    json!({"schemaVersion": 2, "config": config, "layers": [layer]}).to_string().into_bytes()
}

fn good() -> Vec<(String, Vec<u8>)> {
    let digest = digest(COMPONENT);
    vec![
        ("/manifests/1.0".into(), manifest(&digest, COMPONENT.len())),
        (format!("/blobs/{digest}"), COMPONENT.to_vec()),
    ]
}

/// Bounds under which a test is over soon.
fn bounds() -> Bounds {
    Bounds {
        idle: Duration::from_millis(300),
        total: Duration::from_secs(2),
        component_bytes: 1_000_000,
        ..Bounds::default()
    }
}

async fn get(reference: &Reference) -> Result<Pulled, OciError> {
    pull(reference, &CredentialFile::default(), &bounds()).await
}

async fn problem(reference: &Reference) -> String {
    get(reference).await.expect_err("a refusal").to_string()
}

#[tokio::test]
async fn a_component_is_got_by_its_tag_and_by_its_digest() {
    let server = Server::with(good());
    let pulled = get(&server.reference()).await.expect("a component");
    let (_, manifest) = &good()[0];
    assert_eq!(pulled.bytes, COMPONENT);
    assert_eq!(pulled.source, server.reference().at(&digest(manifest)));

    let mut parts = good();
    parts.push((format!("/manifests/{}", digest(manifest)), manifest.clone()));
    let server = Server::with(parts);
    let pinned = server.reference().at(&digest(manifest));
    assert_eq!(get(&pinned).await.expect("a component").source, pinned);
    assert!(server.asked()[0].starts_with("GET /v2/tools/fetch/manifests/sha256:"));
}

#[tokio::test]
async fn a_list_of_manifests_leads_to_the_one_for_webassembly() {
    let mut parts = good();
    let (_, manifest) = parts.remove(0);
    let entry = |digest: &str, architecture: &str| {
        json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 1,
               "platform": {"architecture": architecture, "os": "wasip2"}})
    };
    let list = json!({"schemaVersion": 2, "manifests": [entry(&digest(b"x"), "amd64"), entry(&digest(&manifest), "wasm")]});
    parts.push((format!("/manifests/{}", digest(&manifest)), manifest));
    parts.push(("/manifests/1.0".into(), list.to_string().into_bytes()));
    let pulled = get(&Server::with(parts).reference()).await.expect("a component");
    assert_eq!(pulled.bytes, COMPONENT);
}

#[tokio::test]
async fn what_is_not_what_it_was_said_to_be_is_refused() {
    let mut parts = good();
    parts[1].1[9] ^= 1;
    let said = problem(&Server::with(parts).reference()).await;
    assert!(said.starts_with("the component is not what it was said to be"), "{said}");

    let pinned = Server::with(vec![("/manifests/".to_owned() + &digest(b"x"), good().remove(0).1)]);
    let said = problem(&pinned.reference().at(&digest(b"x"))).await;
    assert!(said.starts_with("the manifest is not what it was said to be"), "{said}");

    let (_, body) = good().remove(0);
    let other = Server::new(move |_, stream| {
        let header = format!("docker-content-digest: {}\r\n", digest(b"x"));
        send(stream, "200 OK", &header, &body);
    });
    let said = problem(&other.reference()).await;
    assert!(said.starts_with("the manifest is not what it was said to be"), "{said}");
}

#[tokio::test]
async fn more_than_was_said_is_not_read() {
    let mut longer = good();
    longer[1].1.extend([0; 100]);
    let said = problem(&Server::with(longer).reference()).await;
    assert!(said.contains(&format!("more than {} bytes", COMPONENT.len())), "{said}");

    let huge = vec![("/manifests/1.0".to_owned(), manifest(&digest(COMPONENT), 1_000_001))];
    let server = Server::with(huge);
    let said = problem(&server.reference()).await;
    assert!(said.contains("more than 1000000 bytes"), "{said}");
    assert_eq!(server.asked().len(), 1, "the component is not even asked for");

    // Without a length, and without an end.
    for kind in ["manifests", "blobs"] {
        let (_, manifest) = good().remove(0);
        let server = Server::new(move |head, stream| {
            if !head.contains(kind) {
                return send(stream, "200 OK", "", &manifest);
            }
            let piece = [b' '; 65_536];
            let mut wrote = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            while wrote.is_ok() {
                wrote = stream.write_all(&piece);
            }
        });
        let said = problem(&server.reference()).await;
        assert!(said.contains("bytes, the limit"), "{kind}: {said}");
    }
}

#[tokio::test]
async fn silence_and_drops_end() {
    let silent = Server::new(|_, _| thread::sleep(Duration::from_secs(60)));
    let said = problem(&silent.reference()).await;
    assert!(said.contains("nothing came for 0.3 s"), "{said}");

    let dripping = Server::new(|_, stream| {
        let mut wrote = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        while wrote.is_ok() {
            thread::sleep(Duration::from_millis(100));
            wrote = stream.write_all(b" ");
        }
    });
    let said = problem(&dripping.reference()).await;
    assert!(said.contains("more than 2 s in all"), "{said}");

    let cut = Server::new(|_, stream| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nab"));
    });
    let said = problem(&cut.reference()).await;
    assert!(said.starts_with("no answer from http://127.0.0.1"), "{said}");

    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let reference = format!("oci://{gone}/a:1").parse().expect("a reference");
    assert!(problem(&reference).await.starts_with("no answer from http://127.0.0.1"));
}

/// A file with a name and a password for a host.
fn credentials(host: &str) -> (CredentialFile, tempfile::NamedTempFile) {
    let auth = base64::engine::general_purpose::STANDARD.encode("me:s3cret");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{}", json!({"auths": {host: {"auth": auth}}})).expect("written");
    (CredentialFile::new(Some(file.path().into())), file)
}

fn has_credential(head: &str) -> bool {
    head.to_ascii_lowercase().contains("\nauthorization:")
}

#[tokio::test]
async fn a_blob_elsewhere_is_got_and_no_credential_goes_along() {
    let elsewhere = Server::with(good());
    let (to, (_, manifest)) = (elsewhere.host.clone(), good().remove(0));
    let server = Server::new(move |head, stream| match head {
        head if !has_credential(head) => {
            send(stream, "401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", b"");
        }
        head if head.contains("/blobs/") => {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let location = format!("location: http://{to}{path}\r\n");
            send(stream, "307 Temporary Redirect", &location, b"");
        }
        _ => send(stream, "200 OK", "", &manifest),
    });
    let (file, _kept) = credentials(&server.host);
    let pulled = pull(&server.reference(), &file, &bounds()).await.expect("a component");
    assert_eq!(pulled.bytes, COMPONENT);
    assert!(server.asked().iter().skip(1).all(|head| has_credential(head)));
    assert_eq!(elsewhere.asked().len(), 1);
    assert!(!has_credential(&elsewhere.asked()[0]), "{:?}", elsewhere.asked());
}

#[tokio::test]
async fn we_do_not_go_everywhere() {
    for (location, part) in [
        ("http://registry.example.com/x", "it is not https"),
        ("http://169.254.169.254/latest/meta-data", "it is not https"),
        ("ftp://registry.example.com/x", "it is not https"),
        ("//[", "invalid"),
        ("/v2/again", "more than 5 times"),
    ] {
        let header = format!("location: {location}\r\n");
        let server = Server::new(move |_, stream| send(stream, "302 Found", &header, b""));
        let said = problem(&server.reference()).await;
        assert!(said.contains(part), "{location}: {said}");
    }
}

#[tokio::test]
async fn tokens_are_got_where_the_registry_says_and_told_to_it_alone() {
    let tokens = Server::new(|head, stream| {
        assert!(
            head.starts_with("GET /token?scope=repository%3Atools%2Ffetch%3Apull&service=r"),
            "{head}"
        );
        match has_credential(head) {
            true => send(stream, "200 OK", "", br#"{"access_token": "t0ken"}"#),
            false => send(stream, "403 Forbidden", "", b""),
        }
    });
    let (realm, parts) = (tokens.host.clone(), good());
    let server = Server::new(move |head, stream| {
        if !head.contains("Bearer t0ken") {
            let asks = format!(
                "www-authenticate: Bearer realm=\"http://{realm}/token\",service=\"r\"\r\n"
            );
            return send(stream, "401 Unauthorized", &asks, b"");
        }
        let path = head.split(' ').nth(1).unwrap_or_default();
        let found = parts.iter().find(|(end, _)| path.ends_with(end.as_str()));
        send(stream, "200 OK", "", found.map_or(b"", |(_, body)| body.as_slice()));
    });
    let (file, _kept) = credentials(&server.host);
    let pulled = pull(&server.reference(), &file, &bounds()).await.expect("a component");
    assert_eq!(pulled.bytes, COMPONENT);

    let said = problem(&server.reference()).await;
    assert!(said.contains("log in with `docker login 127.0.0.1"), "{said}");

    let elsewhere = Server::new(|_, stream| {
        let asks = "www-authenticate: Bearer realm=\"http://tokens.example.com/\"\r\n";
        send(stream, "401 Unauthorized", asks, b"");
    });
    let (file, _kept) = credentials(&elsewhere.host);
    let said =
        pull(&elsewhere.reference(), &file, &bounds()).await.expect_err("refused").to_string();
    assert!(said.contains("it is not https") && !said.contains("s3cret"), "{said}");
}

#[tokio::test]
async fn what_a_registry_refuses_is_told() {
    let tags: Value = json!({"name": "tools/fetch", "tags": ["0.9", "1.1\u{1b}[2J"]});
    let server = Server::with(vec![("/tags/list?n=50".into(), tags.to_string().into_bytes())]);
    let said = problem(&server.reference()).await;
    assert!(
        said.contains("has no oci://") && said.contains("the tags 0.9, 1.1\\u{1b}[2J"),
        "{said}"
    );

    let busy = Server::new(|_, stream| {
        send(
            stream,
            "503 Service Unavailable",
            "",
            br#"{"errors": [{"code": "X", "message": "come back\nlater"}]}"#,
        );
    });
    let said = problem(&busy.reference()).await;
    assert!(said.ends_with("answered 503: come back\\nlater"), "{said}");

    let wrong = Server::new(|_, stream| {
        send(stream, "401 Unauthorized", "www-authenticate: Basic realm=\"r\"\r\n", b"");
    });
    let (file, _kept) = credentials(&wrong.host);
    let said = pull(&wrong.reference(), &file, &bounds()).await.expect_err("refused").to_string();
    assert!(said.contains("to `me`: the name or the password is wrong"), "{said}");

    let image = json!({"layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest(b""), "size": 0}]});
    let server = Server::with(vec![("/manifests/1.0".into(), image.to_string().into_bytes())]);
    let said = problem(&server.reference()).await;
    assert!(said.contains("is no component") && said.contains("oras push"), "{said}");

    let page = Server::new(|_, stream| send(stream, "200 OK", "", b"<html>sign in</html>"));
    let said = problem(&page.reference()).await;
    assert!(said.contains("none of OCI's"), "{said}");
}
