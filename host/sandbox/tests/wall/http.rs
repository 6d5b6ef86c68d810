//! Requests: what is granted goes where it was decided to go, and nothing else goes anywhere.

use crate::guest::Guest;
use crate::guest::hostile;
use crate::support::{
    Prober, SANDBOX, Server, ended_by, grants, limits, load, receipt, source, text,
};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Code, Plugin};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn request(method: &str, scheme: &str, authority: &str, path: &str) -> Value {
    json!({"do": "http", "method": method, "scheme": scheme, "authority": authority, "path": path})
}

#[tokio::test]
async fn a_granted_request_goes_out_as_it_was_decided() {
    let server = Server::answering(OK);
    let prober = Prober::with(&[], &[server.grant("GET,POST")]).await;
    let mut odd = server.get("/a?b=../c#d");
    odd["authority"] = format!("127.0.0.1:0{}", server.port).into();
    let mut posted = server.get("/p");
    posted["method"] = "POST".into();
    posted["body"] = "hello".into();
    let (outcomes, receipt) = prober.try_steps(json!([server.get("/a?b=c"), odd, posted])).await;
    assert!(outcomes.iter().all(|outcome| outcome["ok"]["body"] == "ok"), "{outcomes:?}");
    assert_eq!(receipt.http_requests, 3);
    assert_eq!(receipt.host_calls.http.bytes, 2 + 2 + 5 + 2);
    let seen = server.seen();
    assert!(seen[0].starts_with("GET /a?b=c HTTP/1.1\r\n"), "{}", seen[0]);
    for request in &seen {
        let host = format!("host: 127.0.0.1:{}\r\n", server.port);
        assert_eq!(request.matches("host: ").count(), 1, "{request}");
        assert!(request.contains(&host), "{request}");
    }
    assert!(seen[2].contains("hello"), "{}", seen[2]);
}

/// However an address is spelt, it is what was granted or it is refused.
#[tokio::test]
async fn spellings_of_a_request_that_is_not_granted() {
    let server = Server::answering(OK);
    let port = server.port;
    let rules = [
        format!("http=GET http://127.0.0.1:{port}/v1/"),
        "http=GET https://api.example.com/v1/".to_owned(),
        "http=GET https://*.example.org/".to_owned(),
    ];
    let prober = Prober::with(&[], &rules).await;
    let here = format!("127.0.0.1:{port}");
    let mut steps = Vec::new();
    for path in [
        "/",
        "/v1",
        "/v2/",
        "//v1/",
        "/V1/",
        "/v1/../admin",
        "/v1/..",
        "/v1/./../admin",
        "/v1/%2e%2e/admin",
        "/v1/%2E./admin",
        "/v1/.%2e/admin",
        "/v1/%252e%252e/admin",
        "/v1/..%2fadmin",
        "/v1/%2fadmin",
        "/v1/..%5cadmin",
        "/v1/..;/admin",
        "/v1/..%00/admin",
        "/v1/%c0%ae%c0%ae/admin",
        "/v1/a%0d%0ab",
        "?/v1/",
    ] {
        steps.push(request("GET", "http", &here, path));
    }
    for method in ["POST", "get", "HEAD", "CONNECT", "TRACE", "GET,HEAD"] {
        steps.push(request(method, "http", &here, "/v1/"));
    }
    for (scheme, authority) in [
        ("https", here.as_str()),
        ("ftp", &here),
        ("HTTP ", &here),
        ("http", &format!("localhost:{port}")),
        ("http", &format!("127.1:{port}")),
        ("http", &format!("0x7f.0.0.1:{port}")),
        ("http", &format!("0x7f000001:{port}")),
        ("http", &format!("2130706433:{port}")),
        ("http", &format!("0177.0.0.1:{port}")),
        ("http", &format!("127.0.0.01:{port}")),
        ("http", &format!("127.0.0.1.:{}", port + 1)),
        ("http", &format!("[::ffff:127.0.0.1]:{port}")),
        ("http", &format!("[::ffff:7f00:1]:{port}")),
        ("http", &format!("[::1]:{port}")),
        ("http", &format!("[64:ff9b::7f00:1]:{port}")),
        ("http", &format!("0.0.0.0:{port}")),
        ("http", &format!("127.0.0.2:{port}")),
        ("http", &format!("user@127.0.0.1:{port}")),
        ("http", &format!("127.0.0.1:{port}@evil.example.com")),
        ("http", &format!("evil.example.com@127.0.0.1:{port}")),
        ("http", &format!("127.0.0.1:{port}/v1/@evil.example.com")),
        ("http", &format!("127.0.0.1\\@evil.example.com:{port}")),
        ("http", &format!("127.0.0.1%2eevil.example.com:{port}")),
        ("http", "127.0.0.1:"),
        ("http", "127.0.0.1"),
        ("http", "169.254.169.254"),
        ("http", "[fd00:ec2::254]"),
        ("http", "metadata.google.internal"),
        ("https", "api.example.com.evil.example.net"),
        ("https", "api-example.com"),
        ("https", "xn--pi-bja.example.com"),
        ("https", "api.example.com:8443"),
        ("https", "example.org"),
        ("https", "evilexample.org"),
        ("https", ""),
    ] {
        steps.push(request("GET", scheme, authority, "/v1/"));
    }
    let count = steps.len();
    let (outcomes, receipt) = prober.try_steps(Value::Array(steps)).await;
    let through: Vec<_> = outcomes.iter().filter(|outcome| outcome["err"].is_null()).collect();
    assert!(through.is_empty() && outcomes.len() == count, "{through:?}");
    assert_eq!(server.seen(), <[String; 0]>::default(), "nothing was sent");
    assert_eq!((receipt.http_requests, receipt.refusals.is_empty()), (0, false));
    // The same address, and the same name in other letters, is the same.
    let same = [request("GET", "http", &format!("127.0.0.1.:{port}"), "/v1/x")];
    let (outcomes, _) = prober.try_steps(json!(same)).await;
    assert_eq!(outcomes[0]["ok"]["body"], "ok", "{outcomes:?}");
}

/// A name that was granted may lead anywhere; where it leads is decided on the address.
#[tokio::test]
async fn names_that_lead_inside() {
    let server = Server::answering(OK);
    let port = server.port;
    // On this machine, the machine's own name leads to loopback or to a private network, if anywhere.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_lowercase();
    let private = |address: IpAddr| cofferdam_sandbox::grants::address::special(address).is_some();
    let resolved = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), port));
    let inside = resolved.is_ok_and(|mut found| found.all(|address| private(address.ip())));
    if inside && name != "localhost" {
        let rule = format!("http=GET http://{name}:{port}");
        let (outcomes, bill) = Prober::with(&[], &[&rule])
            .await
            .try_steps(json!([request("GET", "http", &format!("{name}:{port}"), "/")]))
            .await;
        assert!(outcomes[0]["err"].as_str().unwrap().contains("IpProhibited"), "{outcomes:?}");
        assert!(bill.refusals[0].contains("private\"]"), "{:?}", bill.refusals);
        assert_eq!(server.seen().len(), 0);
    }
    // Loopback by its name is named; its first address may be one that nobody listens at.
    let rule = format!("http=GET http://localhost:{port}");
    let steps = json!([request("GET", "http", &format!("LOCALHOST.:{port}"), "/")]);
    let (outcomes, _) = Prober::with(&[], &[&rule]).await.try_steps(steps).await;
    assert_eq!(outcomes[0]["ok"]["body"], "ok", "{outcomes:?}");
    assert!(
        server.seen()[0].contains(&format!("host: localhost:{port}\r\n")),
        "{:?}",
        server.seen()
    );
}

/// A guest follows redirects itself, so that each hop is a request of its own.
#[tokio::test]
async fn each_hop_is_decided_anew() {
    let inside = Server::answering("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ninside");
    let to = format!("http://{}/secret", inside.authority());
    let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    let outside = Server::answering(head);
    let prober = Prober::with(&[], &[outside.grant("GET")]).await;
    let (outcomes, receipt) = prober
        .try_steps(json!([
            outside.get("/"),
            request("GET", "http", &inside.authority(), "/secret")
        ]))
        .await;
    assert_eq!(outcomes[0]["ok"]["status"], 302, "the host does not follow it: {outcomes:?}");
    assert_eq!(outcomes[1]["err"], "ErrorCode::HttpRequestDenied");
    assert_eq!((inside.seen().len(), receipt.http_requests), (0, 1));
    assert!(receipt.refusals[0].contains(&inside.authority()), "{:?}", receipt.refusals);
}

/// Headers that would end the request early, begin another, or speak for the host.
#[tokio::test]
async fn headers_that_smuggle() {
    let server = Server::answering(OK);
    let prober = Prober::with(&[], &[server.grant("*")]).await;
    let with = |headers: Value, body: Option<&str>| {
        let mut step = server.get("/");
        step["method"] = if body.is_some() { "POST".into() } else { "GET".into() };
        step["headers"] = headers;
        if let Some(body) = body {
            step["body"] = body.into();
        }
        step
    };
    for (headers, body) in [
        (json!([["Host", "evil.example.com"]]), None),
        (json!([["hOsT", "evil.example.com"]]), None),
        (
            json!([["Transfer-Encoding", "chunked"]]),
            Some("0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"),
        ),
        (json!([["transfer-encoding", "identity, chunked"]]), Some("x")),
        (json!([["Connection", "upgrade"]]), None),
        (json!([["Upgrade", "websocket"]]), None),
        (json!([["keep-alive", "1"]]), None),
        (json!([["proxy-authorization", "x"]]), None),
        (json!([["x", "a\r\nGET /smuggled HTTP/1.1\r\n\r\n"]]), None),
        (json!([["x\r\ny", "a"]]), None),
        (json!([["x: y", "a"]]), None),
        (json!([["", "a"]]), None),
        (json!([["content-length", "3"], ["content-length", "30"]]), Some("abc")),
        (json!([["content-length", "3, 30"]]), Some("abc")),
        (json!([["content-length", "+3"]]), Some("abc")),
        (json!([["content-length", "0"]]), Some("GET /smuggled HTTP/1.1\r\n\r\n")),
        (json!([["content-length", "3"]]), Some("abcGET /smuggled HTTP/1.1\r\n\r\n")),
        (json!([["content-length", "300"]]), Some("abc")),
        (json!([["content-length", "18446744073709551616"]]), Some("abc")),
    ] {
        let (outcomes, _) = prober.try_steps(json!([with(headers.clone(), body)])).await;
        let sent = server.seen().iter().any(|seen| seen.contains("smuggled"));
        assert!(
            !outcomes[0]["err"].is_null() && !sent,
            "{headers}: {outcomes:?} {:?}",
            server.seen()
        );
    }
    let plain = with(json!([["content-length", "3"], ["X-Plain", "a"]]), Some("abc"));
    let (outcomes, _) = prober.try_steps(json!([plain])).await;
    assert_eq!(outcomes[0]["ok"]["body"], "ok", "{outcomes:?}");
    let seen = server.seen();
    let last = seen.last().unwrap();
    assert_eq!(last.matches("content-length").count(), 1, "{last}");
    assert!(last.ends_with("\r\n\r\nabc"), "{last}");
}

/// Time-outs of 600 s, which the guest sets, end with the call: against every kind of silence.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_waste_time() {
    type Serve = fn(&mut TcpStream, &str);
    let silent: Serve = |stream, _| {
        // Until the other side goes.
        let _ = stream.read(&mut [0; 64]);
    };
    let drip: Serve = |stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let drip_head: Serve = |stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx-slow: ");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let drip_chunks: Serve = |stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        while stream.write_all(b"1\r\nx\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let endless_continue: Serve =
        |stream, _| while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok() {};
    let row = hostile::all().into_iter().find(|row| row.file == "http-drip.wat").unwrap();
    for (name, serve) in [
        ("silent", silent),
        ("drip", drip),
        ("drip_head", drip_head),
        ("drip_chunks", drip_chunks),
        ("endless_continue", endless_continue),
    ] {
        let server = Server::new(serve);
        let code = source(Code::Bytes(row.published()));
        let plugin =
            Plugin::load(&SANDBOX, code, limits(&["wall_ms=300"]), grants(&[server.grant("GET")]));
        let plugin = plugin.await.unwrap();
        let arguments = format!(r#"{{"to":"{}"}}"#, server.authority());
        let started = Instant::now();
        let outcome =
            plugin.call_tool("run", &arguments, Progress::default(), AbortSignal::new()).await;
        assert_eq!(ended_by(&outcome), "time-limit", "{name}: {outcome:?}");
        assert!(started.elapsed() < Duration::from_secs(3), "{name}: {:?}", started.elapsed());
        assert_eq!(receipt(&outcome).http_requests, 1, "{name}");
    }
}

/// Answers that are too much, not what they say, or no answers. Each ends with an error for the guest.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_answer_badly() {
    let good = load(&Guest::default(), &[]).await;
    let answer = |text: &str| Server::answering(text.to_owned());
    let endless = |head: &'static str, piece: &'static str| {
        Server::new(move |stream, _| {
            let _ = stream.write_all(head.as_bytes());
            while stream.write_all(piece.as_bytes()).is_ok() {}
        })
    };
    for (name, server) in [
        ("nothing", answer("")),
        ("no http", answer("220 mail.example.com ESMTP\r\n")),
        ("binary", Server::answering(vec![0xff; 1_000])),
        ("cut head", answer("HTTP/1.1 200 OK\r\ncontent-le")),
        ("cut body", answer("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf")),
        ("cut chunk", answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nhalf")),
        (
            "huge chunk",
            answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nx"),
        ),
        (
            "huger chunk",
            answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx"),
        ),
        ("bad chunk", answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nx")),
        (
            "two lengths",
            answer("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"),
        ),
        (
            "huge length",
            answer("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\nok"),
        ),
        (
            "huger length",
            answer("HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nok"),
        ),
        ("many headers", answer(&("HTTP/1.1 200 OK\r\n".to_owned() + &"x: y\r\n".repeat(5_000)))),
        (
            "endless header",
            endless("HTTP/1.1 200 OK\r\nx: ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ),
        (
            "endless headers",
            endless("HTTP/1.1 200 OK\r\n", "x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
        ),
        (
            "endless body",
            endless("HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        ),
        (
            "endless chunks",
            endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "8\r\nxxxxxxxx\r\n"),
        ),
        (
            "endless extension",
            endless(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ),
        ),
        (
            "endless trailers",
            endless(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
                "x: yyyyyyyyyyyyyyyyyyyyyy\r\n",
            ),
        ),
    ] {
        let prober =
            Prober::with(&["wall_ms=20000", "http_body_kib=64"], &[server.grant("GET")]).await;
        let outcome = prober.call(json!([server.get("/")])).await;
        let shown = text(&outcome).to_owned();
        let outcomes: Vec<Value> = serde_json::from_str(&shown).unwrap();
        // Trailers that are left out are no error; everything else is.
        let fine = outcomes[0]["err"].is_string() || name == "endless trailers";
        assert!(fine, "{name}: {shown:.300}");
        assert!(receipt(&outcome).host_calls.http.bytes < 512 << 10, "{name}");
        let good = good.call_tool("run", "{}", Progress::default(), AbortSignal::new()).await;
        assert_eq!(ended_by(&good), "answer", "after {name}");
    }
    // Reset in the middle of the answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        // With its request unread, closing it resets the connection.
        std::thread::sleep(Duration::from_millis(50));
    });
    let prober = Prober::with(&[], &[format!("http=GET http://{authority}")]).await;
    let (outcomes, _) = prober.try_steps(json!([request("GET", "http", &authority, "/")])).await;
    assert!(outcomes[0]["err"].is_string(), "{outcomes:?}");
}

/// Headers in the host's memory are bounded, whoever makes them.
#[tokio::test]
async fn headers_of_a_guest_are_bounded() {
    let server = Server::answering(OK);
    let prober = Prober::with(&[], &[server.grant("GET")]).await;
    let mut step = server.get("/");
    step["headers"] = (0..200).map(|n| json!([format!("x-{n}"), "y".repeat(10_000)])).collect();
    let outcome = prober.call(json!([step])).await;
    // The engine ends such a call; an error for the guest would do as well.
    assert!(outcome.answer.is_err() || text(&outcome).contains("err"), "{outcome:?}");
    assert_eq!(server.seen().len(), 0);
}

/// A server that only its own certificate vouches for is no server of that name.
#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_signed() {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};
    use std::sync::Arc;
    // Made for this test, and good for nothing else.
    let pem = include_bytes!("self-signed.pem");
    let certificate = CertificateDer::from_pem_slice(pem).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pem).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let _ = stream.write_all(OK.as_bytes());
        }
    });
    for host in ["127.0.0.1", "localhost"] {
        let rule = format!("http=GET https://{host}:{port}");
        let prober = Prober::with(&[], &[rule]).await;
        let steps = json!([request("GET", "https", &format!("{host}:{port}"), "/")]);
        let (outcomes, receipt) = prober.try_steps(steps).await;
        assert!(outcomes[0]["err"].as_str().unwrap().contains("Tls"), "{outcomes:?}");
        assert!(receipt.refusals[0].contains("no secure connection"), "{:?}", receipt.refusals);
    }
}
