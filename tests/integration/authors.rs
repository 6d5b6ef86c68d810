//! The author's way: a project, its tests, what it says of itself, its cases.

use crate::cofferdam;
use cofferdam_tests::{Ran, plugin, root, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn ran(folder: &Path, arguments: &[&str]) -> Ran {
    run(cofferdam().current_dir(folder).args(arguments))
}

/// A folder with a file of cases, and the cases run on a sample.
fn cases(name: &str, text: &str, more: &[&str]) -> (Ran, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cases.toml"), text).unwrap();
    let file = plugin(name);
    let mut arguments = vec!["plugin", "test", file.to_str().unwrap(), "cases.toml"];
    arguments.extend(more);
    (ran(folder.path(), &arguments), folder)
}

#[test]
fn cases_hold_results_refusals_and_figures_against_what_is_expected() {
    let (ran, _) = cases(
        "calc",
        r#"
        [[case]]
        name = "adds"
        tool = "calc"
        arguments = { expressions = ["1/3 + 1/6"] }
        expect.contains = ["1/2"]
        expect.at_most = { fuel = 10_000_000, memory_peak_bytes = 4_000_000, "host_calls.http.calls" = 0 }

        [[case]]
        name = "wants a list"
        tool = "calc"
        arguments = { expressions = [] }
        expect.ended_by = "invalid-arguments"

        [[case]]
        name = "has a budget"
        tool = "calc"
        arguments = { expressions = ["factorial(900)"] }
        limits = { fuel = 130_000 }
        expect.ended_by = "fuel-limit"
        "#,
        &[],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.ends_with("3 passed, 0 failed\n"), "{ran:?}");
}

#[test]
fn a_case_that_fails_says_what_differs() {
    let (ran, _) = cases(
        "calc",
        r#"
        [[case]]
        name = "wrong"
        tool = "calc"
        arguments = { expressions = ["1 + 1"] }
        expect.text = "3"
        expect.details = { a = 1 }
        expect.refused = ["grants.http"]
        expect.at_most = { fuel = 1, fule = 1 }

        [[case]]
        name = "failed after all"
        tool = "calc"
        arguments = { expressions = ["1 / 0"] }

        [[case]]
        name = "no such tool"
        tool = "clac"
        "#,
        &[],
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    for part in [
        "expected \"3\"",
        "details are",
        "no refusal holds \"grants.http\"",
        "at most 1 expected",
        "the receipt has no figure `fule`: fuel,",
        "✗ failed after all",
        "there is no tool `clac`: the plugin offers calc",
        "0 passed, 3 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

#[test]
fn http_is_answered_from_the_script_as_far_as_it_is_granted() {
    let (ran, _) = cases(
        "fetch",
        r#"
        [[case]]
        name = "reads a page that is nowhere"
        tool = "fetch"
        arguments = { url = "https://pages.invalid/start" }
        grants.http = ["GET https://pages.invalid/"]
        expect.contains = ["All is well."]
        expect.requests = ["GET https://pages.invalid/start", "GET https://pages.invalid/there"]
        [[case.http]]
        request = "GET https://pages.invalid/start"
        status = 302
        headers = { location = "/there" }
        [[case.http]]
        request = "GET https://pages.invalid/th*"
        headers = { content-type = "text/plain" }
        body = "All is well."

        [[case]]
        name = "is refused without a grant"
        tool = "fetch"
        arguments = { url = "https://pages.invalid/start" }
        expect.is_error = true
        expect.refused = ["grants.http = [\"GET https://pages.invalid/\"]"]
        expect.requests = []

        [[case]]
        name = "no answer"
        tool = "fetch"
        arguments = { url = "https://pages.invalid/start" }
        grants.http = ["GET https://pages.invalid/"]
        expect.is_error = true
        "#,
        &["--json"],
    );
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["problems"], serde_json::json!([]), "{ran:?}");
    assert_eq!(lines[1]["problems"], serde_json::json!([]), "{ran:?}");
    let problem = lines[2]["problems"][0].as_str().unwrap();
    assert_eq!(problem, "no [[case.http]] answers `GET https://pages.invalid/start`");
    assert_eq!(ran.code, 1);
}

#[test]
fn hooks_have_cases_too() {
    let (ran, _) = cases(
        "guard",
        r#"
        [[case]]
        name = "lets notes be written"
        before = "write_file"
        arguments = { path = "notes/a.txt" }
        grants.config = { allow = "notes/**", ask = "src/**" }
        expect.verdict = "proceed"

        [[case]]
        name = "asks about sources"
        before = "write_file"
        arguments = { path = "src/a.rs" }
        grants.config = { allow = "notes/**", ask = "src/**" }
        expect.verdict = "ask"
        expect.contains = ["src/a.rs"]

        [[case]]
        name = "has no hook after calls"
        after = "read_file"
        "#,
        &[],
    );
    assert!(ran.out.contains("the plugin has no hook after calls"), "{ran:?}");
    assert!(ran.out.ends_with("2 passed, 1 failed\n"), "{ran:?}");
    let (ran, _) = cases(
        "redact",
        r#"
        [[case]]
        name = "masks"
        after = "read_file"
        result = { text = "password = hunter2hunter2" }
        expect.lacks = ["hunter2"]
        "#,
        &[],
    );
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn golden_output_is_written_when_it_is_blessed_and_kept_then() {
    let text = "[[case]]\nname = \"golden\"\ntool = \"calc\"\narguments = { expressions = [\"2^10\"] }\n\
                expect.golden = \"golden/power.txt\"\n";
    let (missing, _) = cases("calc", text, &[]);
    assert!(missing.code == 1 && missing.out.contains("--bless writes it"), "{missing:?}");
    let (blessed, folder) = cases("calc", text, &["--bless"]);
    assert_eq!(blessed.code, 0, "{blessed:?}");
    let golden = folder.path().join("golden/power.txt");
    assert!(std::fs::read_to_string(&golden).unwrap().contains("1024"));
    let file = plugin("calc");
    let arguments = ["plugin", "test", file.to_str().unwrap()];
    assert_eq!(ran(folder.path(), &arguments).code, 0);
    std::fs::write(&golden, "1023\n").unwrap();
    let differs = ran(folder.path(), &arguments);
    assert!(differs.out.contains("line 1: \"1023\" expected"), "{differs:?}");
}

#[test]
fn cases_that_cannot_be_used_are_refused_before_any_runs() {
    for (text, part) in [
        ("", "missing field `case`"),
        ("[[case]]\nname = \"a\"\ntool = \"calc\"\nexpext = 1", "unknown field `expext`"),
        ("case = []", "has no [[case]]"),
    ] {
        let (ran, _) = cases("calc", text, &[]);
        assert!(ran.code == 2 && ran.err.contains(part), "{part}: {ran:?}");
    }
}

/// The lines of a stream, as they come.
#[cfg(unix)]
fn lines(stream: impl std::io::Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    use std::io::BufRead as _;
    let (tell, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let all = std::io::BufReader::new(stream).lines().map_while(Result::ok);
        all.take_while(|line| tell.send(line.clone()).is_ok()).for_each(drop);
    });
    lines
}

#[cfg(unix)]
#[test]
fn watch_runs_again_at_every_change_until_it_is_interrupted() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "[[case]]\nname = \"adds\"\ntool = \"calc\"\narguments = { expressions = [\"1 + 1\"] }\n\
                expect.contains = [\"2\"]\n";
    std::fs::write(at("cases.toml"), text).unwrap();
    std::fs::copy(plugin("calc"), at("it.wasm")).unwrap();
    let mut watch = cofferdam();
    watch.current_dir(folder.path()).args(["plugin", "test", "it.wasm", "--watch"]);
    let mut watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (lines(watch.stdout.take().unwrap()), lines(watch.stderr.take().unwrap()));
    let until = |lines: &std::sync::mpsc::Receiver<String>, part: &str| loop {
        let line = lines.recv_timeout(std::time::Duration::from_secs(120)).expect(part);
        if line.contains(part) {
            return;
        }
    };
    until(&out, "1 passed, 0 failed");
    until(&err, "watching");
    std::fs::write(at("cases.toml"), text.replace("[\"2\"]", "[\"3\"]")).unwrap();
    until(&out, "0 passed, 1 failed");
    // What cannot be used is said, and the watch goes on.
    std::fs::write(at("cases.toml"), "no cases").unwrap();
    until(&err, "error: cases.toml");
    std::fs::write(at("cases.toml"), text).unwrap();
    until(&out, "1 passed, 0 failed");
    std::fs::copy(plugin("guard"), at("it.wasm")).unwrap();
    until(&out, "the plugin offers hooks and no tools");
    std::fs::remove_file(at("it.wasm")).unwrap();
    until(&err, "error: read it.wasm");
    until(&err, "watching");
    let pid = watch.id().to_string();
    assert_eq!(run(Command::new("kill").args(["-INT", &pid])).code, 0);
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_packed_is_shown_by_inspect_and_changes_no_behaviour() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "name = \"sums\"\nversion = \"1.2.3\"\ndescription = \"Adds.\"\n\
        [[wants]]\ngrant = \"http\"\nvalue = \"GET https://rates.example.com/\"\nreason = \"rates of the day\"\n";
    std::fs::write(folder.path().join("plugin.toml"), manifest).unwrap();
    let calc = plugin("calc");
    let packed =
        ran(folder.path(), &["plugin", "pack", calc.to_str().unwrap(), "--output", "sums.wasm"]);
    assert_eq!(packed.code, 0, "{packed:?}");
    let shown = ran(folder.path(), &["plugin", "inspect", "sums.wasm"]);
    for part in [
        "name      sums",
        "1.2.3",
        "http=GET https://rates.example.com/: rates of the day",
        "  calc: ",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let json = ran(folder.path(), &["plugin", "inspect", "sums.wasm", "--json"]).json();
    assert_eq!(json["wants"][0]["grant"], "http");
    assert_eq!(json["tools"][0]["parameters"]["type"], "object");
    let unrun =
        ran(folder.path(), &["plugin", "inspect", "sums.wasm", "--json", "--no-run"]).json();
    assert!(unrun.get("tools").is_none() && unrun["metadata"]["version"] == "1.2.3", "{unrun}");
    let called = ran(
        folder.path(),
        &["plugin", "call", "sums.wasm", "calc", "{\"expressions\": [\"1+1\"]}"],
    );
    assert_eq!(called.code, 0, "{called:?}");

    std::fs::write(folder.path().join("plugin.toml"), manifest.replace("http", "htpp")).unwrap();
    let refused = ran(folder.path(), &["plugin", "pack", "sums.wasm"]);
    assert!(refused.code == 2 && refused.err.contains("did you mean `http`"), "{refused:?}");
}

#[test]
fn new_refuses_what_it_cannot_make() {
    let folder = tempfile::tempdir().unwrap();
    let refused = ran(folder.path(), &["plugin", "new", "My_Tool", "--lang", "rust"]);
    assert!(refused.code == 2 && refused.err.contains("try `my-tool`"), "{refused:?}");
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let refused = ran(folder.path(), &["plugin", "new", "there", "--lang", "js"]);
    assert!(refused.code == 2 && refused.err.contains("is there already"), "{refused:?}");
}

/// Makes a project and runs the commands that it prints, save those that fetch a toolchain.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn builds(name: &str, language: &str, kind: &[&str], toolchain: Option<&Path>) {
    if let Some(missing) = toolchain.filter(|toolchain| !toolchain.exists()) {
        eprintln!("LEFT OUT: {} is missing: `cargo xtask guests`", missing.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = ran(folder.path(), &[&["plugin", "new", name, "--lang", language], kind].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let mut steps = made.out.lines();
    assert_eq!(steps.next(), Some(format!("cd {name}").as_str()));
    let project = folder.path().join(name);
    match (language, toolchain) {
        ("js", Some(modules)) => {
            std::os::unix::fs::symlink(modules, project.join("node_modules")).unwrap();
        }
        ("python", Some(venv)) => {
            std::os::unix::fs::symlink(venv, project.join(".venv")).unwrap();
        }
        _ => {}
    }
    let fetches = |step: &str| {
        step.contains("npm ci") || step.contains("pip install") || step.contains("-m venv")
    };
    let built = root().join("target/guests");
    for step in steps.filter(|step| !fetches(step)) {
        let mut command = Command::new("sh");
        let bin = Path::new(env!("CARGO_BIN_EXE_cofferdam")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        // Built beside the samples, whose dependencies are the same.
        let step = step.replace("target/wasm32", &format!("{}/wasm32", built.display()));
        command.args(["-c", &step]).current_dir(&project).env("PATH", path);
        command.env("CARGO_TARGET_DIR", &built).env("CARGO_NET_OFFLINE", "true");
        command.env("COFFERDAM_CACHE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/compiled"));
        for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTUP_TOOLCHAIN", "CARGO", "RUSTC"] {
            command.env_remove(name);
        }
        let ran = run(&mut command);
        assert_eq!(ran.code, 0, "{step}\n{}\n{}", ran.out, ran.err);
    }
    let shown = ran(&project, &["plugin", "inspect", &format!("{name}.wasm"), "--json"]).json();
    assert_eq!(shown["metadata"]["name"], name);
    assert_eq!(shown["wants"].as_array().unwrap().len(), 1, "{shown}");
}

/// The toolchain's own library for plugins.
fn rust_target() -> PathBuf {
    let mut ask = Command::new("rustc");
    ask.args(["--print", "target-libdir", "--target", "wasm32-wasip2"]);
    PathBuf::from(run(&mut ask).out.trim())
}

#[test]
fn a_new_project_in_rust_builds_and_passes_its_tests() {
    builds("new-tool", "rust", &[], Some(&rust_target()));
    builds("new-hook", "rust", &["--hook"], Some(&rust_target()));
}

#[test]
fn a_new_project_in_javascript_builds_and_passes_its_tests() {
    let modules = root().join("target/guest-toolchain/words/node_modules");
    builds("new-tool", "js", &[], Some(&modules));
    builds("new-hook", "js", &["--hook"], Some(&modules));
}

#[test]
fn a_new_project_in_python_builds_and_passes_its_tests() {
    let venv = root().join("target/guest-toolchain/stats/venv");
    builds("new-tool", "python", &[], Some(&venv));
    builds("new-hook", "python", &["--hook"], Some(&venv));
}

/// A packed copy of `calc` that wants these grants.
pub(crate) fn wanting(folder: &Path, file: &str, version: &str, wants: &[&str]) {
    let mut manifest =
        format!("name = \"sums\"\nversion = \"{version}\"\ndescription = \"Adds.\"\n");
    for want in wants {
        let (grant, value) = want.split_once('=').unwrap();
        manifest.push_str(&format!(
            "[[wants]]\ngrant = \"{grant}\"\nvalue = \"{value}\"\nreason = \"because\"\n"
        ));
    }
    std::fs::write(folder.join("plugin.toml"), manifest).unwrap();
    let calc = plugin("calc");
    let packed = ran(folder, &["plugin", "pack", calc.to_str().unwrap(), "--output", file]);
    assert_eq!(packed.code, 0, "{packed:?}");
}

#[test]
fn an_update_shows_what_grew_and_grants_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let state = folder.join("state");
    let allow = |arguments: &[&str]| {
        let mut command = cofferdam();
        command.current_dir(folder).env("COFFERDAM_STATE_DIR", &state);
        run(command.args(["plugin", "allow", "sums.wasm"]).args(arguments))
    };
    wanting(folder, "sums.wasm", "1.0.0", &["http=GET https://rates.example.com/"]);
    let unasked = allow(&[]);
    assert!(unasked.code == 2 && unasked.err.contains("nothing was written"), "{unasked:?}");
    assert!(!folder.join("cofferdam.toml").exists());

    let first = allow(&["--yes"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.out.contains("http=GET https://rates.example.com/  (off): because"), "{first:?}");
    let written = std::fs::read_to_string(folder.join("cofferdam.toml")).unwrap();
    assert!(!written.contains("grants"), "{written}");
    let granted = allow(&["--yes", "--grant-wanted"]);
    assert_eq!(granted.code, 0, "{granted:?}");
    let mut written = std::fs::read_to_string(folder.join("cofferdam.toml")).unwrap();
    assert!(written.contains("grants.http = [\"GET https://rates.example.com/\"]"), "{written}");
    written.insert_str(0, "# the operator's own words\n");
    std::fs::write(folder.join("cofferdam.toml"), &written).unwrap();

    wanting(
        folder,
        "sums.wasm",
        "1.1.0",
        &["http=GET https://rates.example.com/", "http=* https://rates.example.com/", "kv=on"],
    );
    let update = allow(&["--yes"]);
    for part in [
        "GET https://rates.example.com/  (granted): because",
        "+ http=* https://rates.example.com/  (grew, off): because",
        "+ kv=on  (grew, off): because",
        "--grant 'kv=on'",
    ] {
        assert!(update.out.contains(part), "{part}: {}", update.out);
    }
    let now = std::fs::read_to_string(folder.join("cofferdam.toml")).unwrap();
    let pin = |text: &str| text.lines().find(|line| line.starts_with("sha256")).unwrap().to_owned();
    assert_ne!(pin(&now), pin(&written));
    assert_eq!(now.replace(&pin(&now), &pin(&written)), written, "nothing but the digest changed");

    let bad = allow(&["--yes", "--grant", "htpp=x"]);
    assert!(bad.code == 2 && bad.err.contains("did you mean `http`"), "{bad:?}");
    std::fs::write(folder.join("sums.wasm"), "text").unwrap();
    assert_eq!(allow(&["--yes"]).code, 2);
    assert_eq!(std::fs::read_to_string(folder.join("cofferdam.toml")).unwrap(), now);
}
