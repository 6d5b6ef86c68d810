//! The self-test, on this machine and on configurations with mistakes.

use cofferdam_app::doctor::{DoctorOptions, Report, Row, Scope, Verdict, examine};
use cofferdam_app::{Config, Pinning};
use cofferdam_sandbox::{
    Grants, Limits, Metadata, SandboxConfig, Want, component_bytes, sha256_hex,
};
use std::path::Path;

const PROBE: &str = include_str!("../src/doctor/probes/probe.wat");

const WRONG_PIN: &str =
    "sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"";

/// A folder with the probe as a plugin file in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = component_bytes(PROBE.as_bytes(), true).expect("a component");
    std::fs::write(folder.path().join("probe.wasm"), bytes).expect("written");
    folder
}

async fn report(scope: Scope, config: Option<(&Path, &str)>) -> Report {
    let config = config.map(|(folder, text)| {
        let file = folder.join("cofferdam.toml");
        std::fs::write(&file, text).expect("written");
        Config::read(&file)
    });
    let sandbox = SandboxConfig { slots: 8, ..SandboxConfig::default() };
    let options = DoctorOptions { scope, pinning: Pinning::Optional, sandbox };
    examine(config, options, &mut |_| ()).await
}

fn failures(report: &Report) -> Vec<&Row> {
    report.rows().filter(|row| row.verdict == Verdict::Failed).collect()
}

/// That a row about this says this, with this verdict.
fn has(report: &Report, subject: &str, verdict: Verdict, words: &str) {
    let about: Vec<&Row> = report.rows().filter(|row| row.subject == subject).collect();
    let says = |row: &&Row| {
        let advice = row.advice.as_deref().unwrap_or_default();
        row.verdict == verdict && (row.found.contains(words) || advice.contains(words))
    };
    assert!(about.iter().any(says), "{subject}, {verdict:?}, {words}: {about:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_limit_and_every_kind_of_grant_bites() {
    let report = report(Scope::All, None).await;
    assert!(report.is_sound(), "{:#?}", failures(&report));
    let limits: Vec<&str> = report.section("limits").iter().map(|row| &*row.subject).collect();
    assert_eq!(limits, Limits::KEYS);
    for kind in Grants::KEYS {
        assert!(report.section("grants").iter().any(|row| row.subject == *kind), "{kind}");
    }
    assert_eq!(report.to_json()["sound"], true);
}

/// The values of a configuration are those that are tried, each exactly there.
#[tokio::test(flavor = "multi_thread")]
async fn odd_values_of_a_configuration_bite_exactly_there() {
    let odd = [
        ("wall_ms", 37),
        ("queue_ms", 31),
        ("grace_ms", 0),
        ("fuel", 123_457),
        ("memory_mib", 3),
        ("tables", 7),
        ("table_elements", 77),
        ("instances", 5),
        ("resources", 13),
        ("host_alloc_mib", 1),
        ("result_kib", 3),
        ("spill_kib", 5),
        ("progress_count", 7),
        ("progress_kib", 3),
        ("log_lines", 3),
        ("log_kib", 2),
        ("stdio_kib", 3),
        ("http_requests", 3),
        ("http_body_kib", 5),
        ("file_write_kib", 9),
        ("files_created", 2),
        ("file_operations", 3),
        ("random_kib", 3),
        ("concurrent_calls", 3),
        ("queue", 2),
        ("component_mib", 1),
        ("function_kib", 9),
        ("compiled_mib", 1),
        ("compile_seconds", 1),
    ];
    let keys: Vec<&str> = odd.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, Limits::KEYS, "each limit has an odd value here");
    let folder = folder();
    let pairs: Vec<String> = odd.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let config = format!(
        "[sandbox]\nslots = 5\nmemory_total_mib = 50\nstack_kib = 96\nfile_operations = 7\n\
         [[plugins]]\nname = \"odd\"\npath = \"probe.wasm\"\nlimits = {{ {} }}\n",
        pairs.join(", ")
    );
    let report = report(Scope::All, Some((folder.path(), &config))).await;
    let section = report.section("limits");
    for (row, (key, value)) in section.iter().zip(odd) {
        assert_eq!((&*row.subject, row.value.as_deref()), (key, Some(&*value.to_string())));
        assert_eq!(row.verdict, Verdict::Ok, "{row:#?}");
        assert!(!row.found.starts_with("at "), "tried at its own value: {row:#?}");
    }
    for (key, value, words) in [
        ("slots", "5", "5 calls ran together"),
        ("memory_total_mib", "50", "with 50 MiB"),
        ("stack_kib", "96", "was stopped"),
        ("file_operations", "7", "in force"),
    ] {
        let row = report.section("settings").iter().find(|row| row.subject == key);
        let row = row.expect("a row");
        assert_eq!((row.value.as_deref(), row.verdict), (Some(value), Verdict::Ok), "{row:#?}");
        assert!(row.found.contains(words), "{row:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_plugins_is_explained() {
    let folder = folder();
    let bytes = std::fs::read(folder.path().join("probe.wasm")).expect("there");
    let write = |name: &str, text: &str| {
        let bytes = component_bytes(text.as_bytes(), true).expect("good text");
        std::fs::write(folder.path().join(name), bytes).expect("written");
    };
    write("core.wasm", "(module (func (export \"call\")))");
    write("wasip1.wasm", "(module (import \"wasi_snapshot_preview1\" \"fd_write\" (func)))");
    write(
        "newer.wasm",
        &PROBE.replace("cofferdam:plugin/tools@0.1.0", "cofferdam:plugin/tools@0.7.0"),
    );
    write(
        "import.wasm",
        &PROBE.replace("cofferdam:plugin/log@0.1.0", "cofferdam:plugin/log@0.9.0"),
    );
    write(
        "wasip3.wasm",
        &PROBE.replacen(
            "(component\n",
            "(component (import \"wasi:cli/stdin@0.3.0\" (instance))\n",
            1,
        ),
    );
    write("missing.wasm", &PROBE.replace("(export \"call-tool\" (func $call-tool))", ""));
    write(
        "changed.wasm",
        &PROBE.replace(
            "(enum \"rejected\" \"denied\" \"unavailable\" \"other\")",
            "(enum \"no\" \"denied\" \"other\")",
        ),
    );
    let entries = [
        ("wrong-pin", "probe.wasm", WRONG_PIN),
        ("gone", "gone.wasm", ""),
        ("core", "core.wasm", ""),
        ("wasip1", "wasip1.wasm", ""),
        ("newer", "newer.wasm", ""),
        ("import", "import.wasm", ""),
        ("wasip3", "wasip3.wasm", ""),
        ("missing", "missing.wasm", ""),
        ("changed", "changed.wasm", ""),
        ("folder", "probe.wasm", "grants.files = [{ host = \"nowhere\", guest = \"/x\" }]"),
        ("subset", "probe.wasm", "tools = [\"rum\"]"),
        ("large", "probe.wasm", "limits = { function_kib = 1 }"),
    ];
    let config: String = entries
        .iter()
        .map(|(name, path, more)| {
            format!("[[plugins]]\nname = \"{name}\"\npath = \"{path}\"\n{more}\n")
        })
        .collect();
    let report = report(Scope::Configuration, Some((folder.path(), &config))).await;
    let digest = sha256_hex(&bytes);
    for (name, words) in [
        ("wrong-pin", &*format!("sha256 = \"{digest}\"")),
        ("wrong-pin", "cofferdam.toml:2)"),
        ("gone", "correct its `path`"),
        ("core", "wasm32-wasip2"),
        ("wasip1", "wasm32-wasip1"),
        ("newer", "0.7.0"),
        ("import", "cofferdam:plugin/log@0.9.0"),
        ("wasip3", "was built for WASI 0.3.0"),
        ("wasip3", "--target wasm32-wasip2"),
        ("missing", "call-tool"),
        ("changed", "cofferdam plugin wit"),
        ("folder", "nowhere"),
        ("subset", "did you mean `run`"),
    ] {
        has(&report, name, Verdict::Failed, words);
    }
    assert!(!report.is_sound());
}

/// A component that fills a part of the contract which this host does not know, one that asks for
/// what it does not get, and one that knows nothing of the contract.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_drifted_and_still_loads_is_named() {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    };
    let text = |text: &str| component_bytes(text.as_bytes(), true).expect("good text").into_owned();
    let later = PROBE.trim_end().strip_suffix(')').expect("a component").to_owned()
        + "(component $c) (instance $later (instantiate $c)) \
           (export \"cofferdam:plugin/before-tool-call@0.9.0\" (instance $later)))";
    write("later.wasm", &text(&later));
    let want = Want {
        grant: "http".into(),
        value: "GET https://example.com/".into(),
        reason: "the pages".into(),
        optional: false,
    };
    let packed = cofferdam_sandbox::pack(&text(PROBE), &Metadata::default(), Some(&[want]));
    write("wanting.wasm", &packed.expect("packed"));
    write(
        "plain.wasm",
        &text(
            "(component (core module $m (func (export \"f\") (result i32) i32.const 7)) \
             (core instance $i (instantiate $m)) \
             (func (export \"seven\") (result u32) (canon lift (core func $i \"f\"))))",
        ),
    );
    let entry = |name: &str| {
        format!("[[plugins]]\nname = \"{name}\"\npath = \"{name}.wasm\"\nprefix = \"{name}_\"\n")
    };
    let config = ["later", "wanting", "plain"].map(entry).concat();
    let report = report(Scope::Configuration, Some((folder.path(), &config))).await;
    has(&report, "later", Verdict::Warning, "before-tool-call@0.9.0");
    has(&report, "wanting", Verdict::Note, "it asks for http=GET https://example.com/");
    has(
        &report,
        "plain",
        Verdict::Ok,
        "no contract, its functions are its tools; tools plain_seven",
    );
    assert!(report.is_sound(), "{:#?}", failures(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_in_a_configuration_is_named() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("work")).expect("made");
    let other = PROBE.replace("\"run\" \"A tool.\"", "\"RUN\" \"A tool.\"");
    let bytes = component_bytes(other.as_bytes(), true).expect("good text");
    std::fs::write(folder.path().join("other.wasm"), bytes).expect("written");
    let config = r#"
        [[plugins]]
        name = "one"
        path = "probe.wasm"
        grants.env = ["COFFERDAM_NO_SUCH_VARIABLE"]
        grants.http = ["GET https://no-such-host.invalid/"]
        grants.files = [{ host = ".", guest = "/all", access = "read-write" }]

        [[plugins]]
        name = "two"
        path = "other.wasm"
        grants.files = [{ host = "work", guest = "/work", access = "read-write" }]
        limits = { wall_ms = 1234 }

        [[hooks]]
        plugin = "one"
        on = ["after"]
        tools = ["write_*"]

        [approval]
        ask = ["shell"]
    "#;
    let report = report(Scope::Configuration, Some((folder.path(), config))).await;
    has(&report, "one", Verdict::Warning, "it is not pinned");
    has(&report, "one", Verdict::Warning, "COFFERDAM_NO_SUCH_VARIABLE");
    has(&report, "one", Verdict::Note, "no-such-host.invalid");
    has(&report, "one", Verdict::Warning, "cofferdam.toml");
    has(
        &report,
        "one",
        Verdict::Warning,
        "it may send what it sees to GET https://no-such-host.invalid/",
    );
    has(&report, "one", Verdict::Failed, "no hook after tool calls");
    has(&report, "one", Verdict::Warning, "accepts any arguments");
    has(&report, "two", Verdict::Failed, "prefix = \"two_\"");
    has(&report, "two", Verdict::Ok, "wall_ms = 1234 (default 30000)");
    has(&report, "[approval] ask", Verdict::Warning, "`shell` matches no tool");
    has(&report, "[[hooks]] one", Verdict::Warning, "`write_*` matches no tool");
    let two = report.rows().filter(|row| row.subject == "two");
    assert!(
        !two.into_iter().any(|row| row.found.contains("it may write in")),
        "work holds nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_cannot_be_read_is_named() {
    let folder = folder();
    let report =
        report(Scope::Configuration, Some((folder.path(), "[agent]\nsystem_promt = \"x\""))).await;
    assert_eq!(failures(&report).len(), 1, "{:#?}", failures(&report));
    let place = format!("{}:2", folder.path().join("cofferdam.toml").display());
    has(&report, &place, Verdict::Failed, "did you mean `system_prompt`");
}
