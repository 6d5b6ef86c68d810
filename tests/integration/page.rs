//! The HTML page of a session, in a browser without a head: narrow and wide, light and dark, with
//! the keyboard, and with guests that would like to be markup.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry, says};
use cofferdam_tests::run;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What a guest and a model would like to be.
const MARKUP: &str = "<script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\">";

/// A session with a trap, a time-out, a refusal, a block, progress and fifty calls at once; then one
/// that a model's failure ends.
fn session() -> Setup {
    let config = "[session]\ndir = \"sessions\"\n".to_owned()
        + &entry("unruly", "limits = { wall_ms = 300, memory_mib = 16 }")
        + &entry("calc", "")
        + &entry("fetch", "")
        + &entry("files", "grants.files = [{ host = \".\", guest = \"/workspace\" }]")
        + &entry("guard", "grants.config = { allow = \"notes/**\" }")
        + "[[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"write_*\"]\n";
    let fifty: Vec<(String, &str, Value)> = (0..50)
        .map(|n| match n % 3 {
            0 => (format!("f{n}"), "nap", json!({"ms": (n * 37) % 90})),
            1 => (format!("f{n}"), "calc", json!({"expressions": [format!("2^{n}")]})),
            _ => (format!("f{n}"), "chatter", json!({"lines": 4})),
        })
        .collect();
    let fifty: Vec<(&str, &str, Value)> =
        fifty.iter().map(|(id, name, arguments)| (&**id, *name, arguments.clone())).collect();
    let script = json!([
        calls(&[
            ("trap", "crash", json!({"message": MARKUP})),
            ("time", "spin", json!({})),
            ("refusal", "fetch", json!({"url": "https://example.com/"})),
            ("block", "write_file", json!({"path": "/workspace/a.txt", "content": MARKUP})),
            ("progress", "chatter", json!({"lines": 9})),
            ("gone", MARKUP, json!({MARKUP: MARKUP})),
        ]),
        calls(&fifty),
        says(&format!(
            "# Done\n\n{MARKUP}\n\n[x](javascript:window.pwned=3) ![y](https://e.org/z.png)\n\n{}",
            "w".repeat(400)
        )),
    ]);
    let setup = Setup::new(&config, &script);
    let ran = setup.run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let failed = json!([{"stop_reason": "error", "error_message": format!("overloaded {MARKUP}")}]);
    fs::write(setup.path("answers.json"), failed.to_string()).unwrap();
    let ran = setup.run(&["--allow-unpinned", "--continue"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    setup
}

fn export(setup: &Setup, name: &str) -> String {
    let mut command = cofferdam();
    command.args(["session", "export", "latest", "--dir"]).arg(setup.path("sessions"));
    let ran = run(command.arg("-o").arg(setup.path(name)));
    assert_eq!(ran.code, 0, "{ran:?}");
    fs::read_to_string(setup.path(name)).unwrap()
}

#[test]
fn a_session_is_exported_in_three_forms() {
    let setup = session();
    let page = export(&setup, "page.html");
    assert!(page.contains("default-src 'none'") && !page.contains(MARKUP));
    assert_eq!(page.matches("<script").count(), 1, "its own");
    for attribute in ["src=\"http", "href=\"http", "@import", "url("] {
        assert!(!page.contains(attribute), "{attribute}");
    }

    let text = export(&setup, "session.md");
    for want in ["## User\n\ngo\n", "### `crash` trap", "broken · trap", "### `chatter` progress"]
    {
        assert!(text.contains(want), "{want}: {text}");
    }

    let document: Value = serde_json::from_str(&export(&setup, "session.json")).unwrap();
    let calls = document["batches"][0]["calls"].as_array().unwrap();
    let outcomes: Vec<&str> = calls.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["broken", "limited", "failed", "blocked", "done", "refused"]);
    assert_eq!(document["batches"][1]["calls"].as_array().unwrap().len(), 50);
    for call in calls.iter().chain(document["batches"][1]["calls"].as_array().unwrap()) {
        let moments =
            ["preflight_us", "started_us", "ended_us", "retired_us"].map(|key| call[key].as_u64());
        let moments: Vec<u64> = moments.into_iter().flatten().collect();
        assert!(moments.len() >= 3 && moments.is_sorted(), "{call}");
    }
    assert_eq!(document["messages"].as_array().unwrap().len(), 1 + 7 + 51 + 1 + 2);
}

/// A browser, if there is one.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("COFFERDAM_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome"];
    let mut places = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    places.find(|place| place.is_file())
}

/// What a script finds in the page, in a frame of each width. The test is the server of the page,
/// and the script reports to it.
fn facts(browser: &Path, setup: &Setup, dark: bool) -> Vec<Value> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (report, reported) = mpsc::channel();
    let page = fs::read_to_string(setup.path("page.html")).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (page, report) = (page.clone(), report.clone());
            thread::spawn(move || answer(stream, &page, &report));
        }
    });
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1700,1200"]);
    command.arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }));
    command.arg(format!("--user-data-dir={}", setup.path("browser").display()));
    command.arg(format!("http://{address}/probe.html")).stderr(Stdio::null());
    let mut browser = command.spawn().unwrap();
    let facts = reported.recv_timeout(Duration::from_secs(120));
    browser.kill().unwrap();
    browser.wait().unwrap();
    let text = facts.unwrap_or_else(|_| panic!("the browser did not report"));
    serde_json::from_str(&text).unwrap_or_else(|problem| panic!("{problem}: {text}"))
}

/// Answers one request: the page, the probe, or a report. Browsers open connections that they do
/// not use.
fn answer(mut stream: TcpStream, page: &str, report: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let body = match first.split(' ').nth(1) {
        Some("/page.html") => page,
        Some("/probe.html") => include_str!("page_probe.html"),
        Some("/facts") => {
            let mut facts = vec![0; length];
            reader.read_exact(&mut facts).unwrap();
            let _ = report.send(String::from_utf8(facts).unwrap());
            ""
        }
        _ => "",
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
    let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

#[test]
fn the_page_works_in_a_browser_narrow_and_wide_light_and_dark() {
    let Some(browser) = chromium() else {
        eprintln!(
            "left out: there is no Chromium; install `chromium`, or name one in COFFERDAM_CHROMIUM"
        );
        return;
    };
    let setup = session();
    export(&setup, "page.html");
    for dark in [false, true] {
        for found in facts(&browser, &setup, dark) {
            let seen = |key: &str| found[key].as_i64().unwrap_or_else(|| panic!("{key}: {found}"));
            assert_eq!(found["error"], Value::Null, "{found}");
            assert_eq!(found["dark"], dark, "{found}");
            assert!(seen("overflow") <= 0, "wider than its window: {found}");
            assert_eq!(found["pwned"], Value::Null, "{found}");
            assert_eq!((seen("requests"), seen("links_out")), (0, 0), "{found}");
            assert_eq!((seen("calls"), seen("lines_of_time")), (56, 56), "{found}");
            for kind in ["broken", "limited", "failed", "blocked", "refused"] {
                assert_eq!(seen(kind), 1, "{kind}: {found}");
            }
            assert_eq!(seen("marks_of_refusal"), 1, "{found}");
            assert!(seen("marks_of_progress") > 9, "{found}");
            // The keyboard: from problem to problem, a receipt in the focus, all open, the help.
            assert_eq!(found["first_problem"], "trap", "{found}");
            assert_eq!(found["second_problem"], "time", "{found}");
            assert_eq!(found["back_to_first"], "trap", "{found}");
            assert!(found["receipt"].as_str().unwrap().contains("fuel"), "{found}");
            assert_eq!(
                (&found["tip_fits"], &found["tip_gone"]),
                (&json!(true), &json!(true)),
                "{found}"
            );
            assert_eq!((seen("open_after_o"), &found["help"]), (56, &json!(true)), "{found}");
            assert_eq!(seen("calls_among_problems"), 5, "{found}");
            assert_eq!(found["too_faint"], json!([]), "contrast below 4.5: {found}");
            assert_eq!(found["too_small"], json!([]), "smaller than 24 by 24 pixels: {found}");
        }
    }
}
