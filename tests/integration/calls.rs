//! `cofferdam plugin call` on each sample, in both ways that it is built.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, plugin_by_cargo_component, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

fn call(file: &Path, tool: &str, arguments: &Value, more: &[&str]) -> Ran {
    let mut command = cofferdam();
    command.args(["plugin", "call"]).arg(file).args([tool, &arguments.to_string(), "--json"]);
    run(command.args(more))
}

/// The text of a result that must be one.
fn text(ran: &Ran) -> String {
    let said = ran.json();
    assert_eq!((ran.code, &said["is_error"]), (0, &json!(false)), "{ran:?}");
    said["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Both builds of a sample must do the same.
fn both(name: &str, check: impl Fn(&Path)) {
    check(&plugin(name));
    check(&plugin_by_cargo_component(name));
}

#[test]
fn calc_is_exact_and_leaves_a_receipt() {
    both("calc", |calc| {
        let ran = call(calc, "calc", &json!({"expressions": ["1/3 + 1/6", "2^100 % 97"]}), &[]);
        let shown = text(&ran);
        assert!(shown.contains("1/2") && shown.contains("16"), "{shown}");
        let receipt = &ran.json()["receipt"];
        assert!(receipt["fuel"].as_u64().unwrap() > 1000, "{receipt}");
        assert!(receipt["memory_peak_bytes"].as_u64().unwrap() > 65_536, "{receipt}");
    });
}

#[test]
fn files_reads_searches_and_writes_within_its_grants() {
    both("files", |files| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/b.txt"), "two more\n").unwrap();
        let read = format!("files={}:/workspace:read-only", folder.path().display());
        let write = format!("files={}:/workspace:read-write", folder.path().display());

        let lines = json!({"path": "/workspace/a.txt", "from": 2, "lines": 1, "raw": true});
        assert!(text(&call(files, "read_file", &lines, &["--grant", &read])).contains("two"));
        let list = json!({"path": "/workspace", "recursive": true});
        assert!(text(&call(files, "list_dir", &list, &["--grant", &read])).contains("sub/b.txt"));
        let grep = call(files, "grep", &json!({"pattern": "^two"}), &["--grant", &read]);
        assert!(text(&grep).contains("sub/b.txt"));
        assert_eq!(grep.json()["result"]["details"]["matches"], 2);

        let new = json!({"path": "/workspace/new/c.txt", "content": "hello"});
        let refused = call(files, "write_file", &new, &["--grant", &read]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(!folder.path().join("new").exists());
        text(&call(files, "write_file", &new, &["--grant", &write]));
        assert_eq!(std::fs::read_to_string(folder.path().join("new/c.txt")).unwrap(), "hello");
    });
}

#[test]
fn files_without_a_grant_says_which_line_would_allow_it() {
    both("files", |files| {
        let ran = call(files, "read_file", &json!({"path": "/etc/passwd"}), &[]);
        let said = ran.json();
        assert_eq!((ran.code, &said["is_error"]), (1, &json!(true)), "{ran:?}");
        let shown = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(shown.contains("grants.files"), "{shown}");
    });
}

#[test]
fn no_way_leads_out_of_a_granted_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(folder.path().join("secret.txt"), "the secret").unwrap();
    std::os::unix::fs::symlink("../secret.txt", inside.join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", inside.join("etc")).unwrap();
    let grant = format!("files={}:/workspace:read-write", inside.display());
    for path in
        ["/workspace/../secret.txt", "/workspace/link", "/workspace/etc/passwd", "/etc/passwd"]
    {
        let ran = call(&plugin("files"), "read_file", &json!({"path": path}), &["--grant", &grant]);
        assert_eq!(ran.code, 1, "{path}: {ran:?}");
        assert!(!ran.out.contains("the secret") && !ran.out.contains("root:"), "{path}: {ran:?}");
    }
}

#[test]
fn fetch_gets_granted_pages_as_text_and_no_others() {
    both("fetch", |fetch| {
        let page =
            "<html><body><h1>Title</h1><p>Hello <b>there</b></p><script>x()</script></body></html>";
        let port = serve(page);
        let url = format!("http://127.0.0.1:{port}/page");
        let grant = format!("http=GET http://127.0.0.1:{port}/");
        let shown = text(&call(fetch, "fetch", &json!({"url": url}), &["--grant", &grant]));
        assert!(shown.contains("Title") && shown.contains("Hello there"), "{shown}");
        assert!(!shown.contains("x()"), "{shown}");

        let ran = call(fetch, "fetch", &json!({"url": url}), &[]);
        let said = ran.json();
        assert_eq!((ran.code, &said["is_error"]), (1, &json!(true)), "{ran:?}");
        let shown = said["result"]["content"][0]["text"].as_str().unwrap();
        assert!(shown.contains("grants.http"), "{shown}");
    });
}

/// Answers every request on a free port of loopback with this page.
fn serve(page: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
            // The other side may have gone; the next request comes on a stream of its own.
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    port
}

#[test]
fn arguments_come_from_standard_input_too() {
    let mut child = cofferdam()
        .args(["plugin", "call"])
        .arg(plugin("calc"))
        .args(["calc", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"expressions": ["6*7"]}"#).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(text(&ran).contains("42"), "{ran:?}");
}

#[test]
fn arguments_that_break_the_schema_never_reach_the_tool() {
    let ran = call(&plugin("calc"), "calc", &json!({"expressions": []}), &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let said = ran.json();
    assert_eq!(said["is_error"], true);
    assert!(
        said["result"]["content"][0]["text"].as_str().unwrap().contains("expressions"),
        "{said}"
    );
}

#[test]
fn limits_and_grants_come_from_an_operators_file_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    std::fs::write(folder.path().join("docs/a.txt"), "from the docs\n".repeat(300)).unwrap();
    let config = folder.path().join("cofferdam.toml");
    let entry = format!(
        "[[plugins]]\nname = \"files\"\npath = {:?}\n\
         grants.files = [{{ host = \"docs\", guest = \"/docs\" }}]\nlimits = {{ result_kib = 1 }}\n",
        plugin("files").display().to_string()
    );
    std::fs::write(&config, entry).unwrap();
    let read = |more: &[&str]| {
        let more = [&["--config", config.to_str().unwrap()], more].concat();
        call(&plugin("files"), "read_file", &json!({"path": "/docs/a.txt"}), &more)
    };
    let short = read(&[]);
    assert!(text(&short).contains("from the docs") && text(&short).len() < 2048, "{short:?}");
    assert_eq!(short.json()["receipt"]["cuts"].as_array().unwrap().len(), 1, "{short:?}");
    let long = read(&["--limit", "result_kib=64"]);
    assert!(text(&long).len() > 4096, "{long:?}");
}

#[test]
fn the_whole_of_a_result_that_was_cut_is_kept_where_the_operator_says() {
    let folder = tempfile::tempdir().unwrap();
    let whole = "from the docs\n".repeat(300);
    std::fs::write(folder.path().join("a.txt"), &whole).unwrap();
    let config = folder.path().join("cofferdam.toml");
    let path = plugin("files").display().to_string();
    let read = |sandbox: &str| {
        let text = format!(
            "[sandbox]\n{sandbox}\n[[plugins]]\nname = \"docs\"\npath = {path:?}\nlimits = {{ result_kib = 1 }}\n\
             grants.files = [{{ host = \".\", guest = \"/docs\" }}]\n"
        );
        std::fs::write(&config, text).unwrap();
        let arguments = json!({"path": "/docs/a.txt", "raw": true});
        call(&plugin("files"), "read_file", &arguments, &["--config", config.to_str().unwrap()])
    };
    let kept = read("spill_dir = \"long\"");
    let marker = kept.json()["result"]["content"][1]["text"].as_str().unwrap().to_owned();
    let spilled = kept.json()["receipt"]["spilled"]["path"].as_str().unwrap().to_owned();
    assert!(marker.contains(&format!("the whole is in {spilled}")), "{marker}");
    assert_eq!(Path::new(&spilled), folder.path().join("long/docs-call.txt"));
    assert!(std::fs::read_to_string(spilled).unwrap().contains(&whole));
    // A folder that cannot be one: the result is cut all the same.
    let cut = read("spill_dir = \"a.txt\"");
    assert_eq!((cut.code, &cut.json()["receipt"]["spilled"]), (0, &Value::Null), "{cut:?}");
    assert_eq!(cut.json()["receipt"]["cuts"].as_array().unwrap().len(), 2, "{cut:?}");
    assert!(text(&cut).contains("from the docs"));
    // Settings that cannot be are refused by name.
    for (mistake, wants) in [("slots = 0", "slots"), ("stack_kb = 1", "stack_kib")] {
        let refused = read(mistake);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.err.contains(wants), "{refused:?}");
    }
}

#[test]
fn a_session_keeps_long_results_beside_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let whole = "from the docs\n".repeat(300);
    std::fs::write(folder.path().join("a.txt"), &whole).unwrap();
    let config = format!(
        "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n[session]\ndir = \"s\"\nkeep_results = true\n\
         [[plugins]]\nname = \"docs\"\npath = {:?}\nlimits = {{ result_kib = 1 }}\n\
         grants.files = [{{ host = \".\", guest = \"/docs\" }}]\n",
        plugin("files").display().to_string()
    );
    std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
    let read = json!({"type": "tool_call", "id": "../c1", "name": "read_file", "arguments": {"path": "/docs/a.txt", "raw": true}});
    let script = json!([
        {"content": [read], "stop_reason": "tool_use"},
        {"content": [{"type": "text", "text": "done"}], "stop_reason": "stop"}
    ]);
    std::fs::write(folder.path().join("answers.json"), script.to_string()).unwrap();
    let config = folder.path().join("cofferdam.toml");
    let ran = run(cofferdam()
        .args(["run", "--json", "--allow-unpinned", "--config"])
        .arg(config)
        .arg("go"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let end = ran.json_lines().into_iter().find(|event| event["type"] == "tool_execution_end");
    let kept = end.unwrap()["receipt"]["spilled"]["path"].as_str().unwrap().to_owned();
    let kept = Path::new(&kept);
    assert_eq!(kept.file_name().unwrap(), "docs-___c1.txt");
    let beside = kept.parent().unwrap();
    assert_eq!(beside.parent().unwrap(), folder.path().join("s"));
    assert!(beside.with_extension("jsonl").is_file(), "{beside:?}");
    assert!(std::fs::read_to_string(kept).unwrap().contains(&whole));
}
