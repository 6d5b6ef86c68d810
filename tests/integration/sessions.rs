//! Sessions from the outside: what is kept, gone on with, shown, and what a crash leaves.

use crate::cofferdam;
use crate::runs::{Setup, calls, entry, says};
use cofferdam_tests::{Ran, plugin, run};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

/// The sessions beside the operator's file.
const HERE: &str = "[session]\ndir = \"sessions\"\n";

fn files(setup: &Setup) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(setup.path("sessions")) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn lines(setup: &Setup) -> Vec<Value> {
    let [file] = &files(setup)[..] else { panic!("{:?}", files(setup)) };
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

fn messages(lines: &[Value]) -> Vec<Value> {
    lines.iter().filter(|l| l["type"] == "message").map(|l| l["message"].clone()).collect()
}

fn session(setup: &Setup, args: &[&str]) -> Ran {
    let mut command = cofferdam();
    command.arg("session").args(args).arg("--dir").arg(setup.path("sessions"));
    run(&mut command)
}

#[test]
fn a_run_leaves_a_session_that_the_next_one_goes_on_with() {
    let script = json!([
        calls(&[
            ("c1", "calc", json!({"expressions": ["6*7"]})),
            ("c2", "crash", json!({"message": "no"}))
        ]),
        says("It is 42."),
    ]);
    let setup = Setup::new(&(HERE.to_owned() + &entry("calc", "") + &entry("unruly", "")), &script);
    let ran = setup.run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let first = lines(&setup);
    let kinds = kinds(&first);
    assert_eq!(kinds[..5], ["session", "setup", "run_start", "turn_start", "message"]);
    assert_eq!(kinds[kinds.len() - 2..], ["turn_end", "run_end"]);
    assert_eq!(first[1]["plugins"][0]["sha256"].as_str().unwrap().len(), 64);
    let ends: Vec<&Value> = first.iter().filter(|l| l["type"] == "call_end").collect();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["receipt"]["fuel"].as_u64().unwrap() > 0), "{ends:?}");
    let id = first[0]["id"].as_str().unwrap();
    assert!(ran.err.contains(&format!("session {id}")), "{ran:?}");

    // The scripted model begins anew with each process.
    fs::write(setup.path("answers.json"), json!([says("${results.c1} was it.")]).to_string())
        .unwrap();
    let ran = setup.run(&["--allow-unpinned", "--continue", "--print"]);
    assert_eq!((ran.code, ran.out.contains("42")), (0, true), "{ran:?}");
    let both = lines(&setup);
    assert_eq!(both[..first.len()], first, "only ever appended to");
    assert_eq!(messages(&both).len(), 5 + 2);
    assert_eq!(both[first.len()]["type"], "opened");
    assert!(both[first.len()..].iter().all(|line| line["type"] != "setup"), "it is the same");

    let shown = session(&setup, &["show", &id[..12]]);
    assert_eq!(shown.code, 0, "{shown:?}");
    for want in
        ["user: go", "✓ calc c1", "✗ unruly", "It is 42."].iter().filter(|w| !w.contains("unruly"))
    {
        assert!(shown.out.contains(want), "{want}: {}", shown.out);
    }
    let listed = session(&setup, &["list", "--json"]).json_lines();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["id"], &listed[0]["messages"]), (&json!(id), &json!(7)));
    let listed = session(&setup, &["list"]);
    assert!(listed.out.starts_with(id) && listed.out.ends_with("  go\n"), "{listed:?}");
}

#[test]
fn a_session_is_gone_on_with_by_its_id_and_only_if_there_is_one() {
    let setup = Setup::new(HERE, &json!([says("hi")]));
    let ran = setup.run(&["--continue"]);
    assert_eq!((ran.code, ran.err.contains("there is no session of")), (2, true), "{ran:?}");
    for _ in 0..2 {
        assert_eq!(setup.run(&[]).code, 0);
    }
    let [first, _] = &files(&setup)[..] else { panic!("two sessions") };
    let id = first.file_stem().unwrap().to_str().unwrap();
    assert_eq!(setup.run(&["--session", id]).code, 0);
    let text = fs::read_to_string(first).unwrap();
    assert_eq!(text.matches("\"type\":\"run_start\"").count(), 2, "{text}");
    for (wanted, code, says) in [
        ("2", 2, "2 sessions begin with `2`"),
        ("nonesuch", 2, "there is no session `nonesuch`"),
        ("../x", 2, "there is no session `../x`"),
        ("latest", 0, ""),
        (first.to_str().unwrap(), 0, ""),
    ] {
        let ran = setup.run(&["--session", wanted]);
        assert_eq!((ran.code, ran.err.contains(says)), (code, true), "{wanted}: {ran:?}");
    }
    let mut command = cofferdam();
    command.args(["run", "--continue", "--config"]).arg(setup.path("cofferdam.toml"));
    let ran = run(&mut command);
    assert_eq!((ran.code, ran.err.contains("nothing to go on with")), (2, true), "{ran:?}");
}

#[test]
fn no_session_is_kept_where_none_is_wanted() {
    let setup = Setup::new("[session]\ndir = \"sessions\"\nrecord = false\n", &json!([says("hi")]));
    assert_eq!(setup.run(&[]).code, 0);
    let setup = Setup::new(HERE, &json!([says("hi")]));
    assert_eq!(setup.run(&["--no-session"]).code, 0);
    assert_eq!(files(&setup), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_session_played_again_is_the_same_and_one_that_was_changed_is_not() {
    let config = HERE.to_owned()
        + &entry("calc", "")
        + &entry("unruly", "limits = { wall_ms = 300 }")
        + &entry(
            "files",
            "grants.files = [{ host = \".\", guest = \"/workspace\", access = \"read-write\" }]",
        )
        + &entry("redact", "")
        + &entry("guard", "grants.config = { allow = \"notes/**\" }")
        + "[[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"write_*\"]\n"
        + "[[hooks]]\nplugin = \"redact\"\non = [\"after\"]\n[approval]\nask = [\"nap\"]\n";
    let script = json!([
        calls(&[
            ("c1", "calc", json!({"expression": "6*7"})),
            ("c2", "spin", json!({})),
            ("c3", "write_file", json!({"path": "/workspace/a.txt", "content": "x"})),
            ("c4", "read_file", json!({"path": "/workspace/key.txt"})),
            ("c5", "chatter", json!({"lines": 3})),
            ("c6", "nap", json!({"ms": 1})),
            ("c7", "calc", json!({"expressions": 1, "wrong": true})),
            ("c8", "gone", json!({})),
        ]),
        says("${results.c4}"),
    ]);
    let setup = Setup::new(&config, &script);
    fs::write(setup.path("key.txt"), "id AKIAIOSFODNN7EXAMPLE\n").unwrap();
    assert_eq!(setup.run(&["--allow-unpinned"]).code, 0);
    let played = session(&setup, &["replay", "latest"]);
    assert_eq!(played.code, 0, "{played:?}");
    assert!(played.out.contains("run 1: 2 answers, 8 calls"), "{played:?}");
    assert!(played.out.contains("all the same"), "{played:?}");

    let file = &files(&setup)[0];
    let text = fs::read_to_string(file).unwrap();
    fs::write(
        file,
        text.replacen(
            "\"message\":{\"role\":\"tool_result\",\"tool_call_id\":\"c1\"",
            "\"message\":{\"role\":\"tool_result\",\"tool_call_id\":\"c9\"",
            1,
        ),
    )
    .unwrap();
    let played = session(&setup, &["replay", "latest"]);
    assert_eq!((played.code, played.out.contains("differs")), (1, true), "{played:?}");
    assert!(played.out.contains("recorded") && played.out.contains("c9"), "{played:?}");
}

#[test]
fn a_call_is_made_again_in_the_sandbox_and_compared() {
    let config = HERE.to_owned()
        + &entry("calc", "")
        + &entry("files", "grants.files = [{ host = \".\", guest = \"/workspace\" }]")
        + &entry("guard", "grants.config = { allow = \"notes/**\" }")
        + "[[hooks]]\nplugin = \"guard\"\non = [\"before\"]\ntools = [\"write_*\"]\n";
    let script = json!([
        calls(&[
            ("c1", "calc", json!({"expression": "2^70 / 3"})),
            ("c2", "read_file", json!({"path": "/workspace/a.txt"})),
            ("c3", "write_file", json!({"path": "/workspace/b.txt", "content": "x"})),
        ]),
        says("done"),
    ]);
    let setup = Setup::new(&config, &script);
    fs::write(setup.path("a.txt"), "first\n").unwrap();
    assert_eq!(setup.run(&["--allow-unpinned", "--record-seeds"]).code, 0);
    let file = setup.path("cofferdam.toml");
    let again = |call: &str| {
        let config = file.to_str().unwrap();
        session(&setup, &["replay", "latest", "--call", call, "--config", config])
    };
    // An entry without a digest is pinned by the session.
    let ran = again("c1");
    assert_eq!(ran.code, 0, "{ran:?}");
    for want in ["calc of the plugin calc, with the recorded chance and time", "same     fuel"] {
        assert!(ran.out.contains(want), "{want}: {ran:?}");
    }
    assert_eq!(again("c2").code, 0);
    fs::write(setup.path("a.txt"), "second\n").unwrap();
    let ran = again("c2");
    assert_eq!((ran.code, ran.out.contains("differs  content")), (1, true), "{ran:?}");
    assert!(ran.out.contains("first") && ran.out.contains("second"), "{ran:?}");
    for (call, says) in
        [("c3", "did not run: it ended by `blocked`"), ("c9", "those that did: c1, c2")]
    {
        let ran = again(call);
        assert_eq!((ran.code, ran.err.contains(says)), (2, true), "{call}: {ran:?}");
    }
    // Grants and files are those of the operator, whatever the session says.
    let other = config.replace("name = \"calc\"", "name = \"calculator\"");
    fs::write(&file, other).unwrap();
    let ran = again("c1");
    assert_eq!((ran.code, ran.err.contains("has no plugin `calc`")), (2, true), "{ran:?}");
    let other = config.replacen(
        &format!("{:?}", plugin("calc").display().to_string()),
        &format!("{:?}", plugin("unruly").display().to_string()),
        1,
    );
    fs::write(&file, other).unwrap();
    let ran = again("c1");
    assert_eq!((ran.code, ran.err.contains("SHA-256")), (2, true), "{ran:?}");
}

#[test]
fn seeds_are_in_a_session_only_if_they_are_wanted() {
    let script = json!([calls(&[("c1", "calc", json!({"expressions": ["1"]}))]), says("done")]);
    for (more, recorded) in
        [(&["--allow-unpinned"][..], false), (&["--allow-unpinned", "--record-seeds"], true)]
    {
        let setup = Setup::new(&(HERE.to_owned() + &entry("calc", "")), &script);
        assert_eq!(setup.run(more).code, 0);
        let lines = lines(&setup);
        let end = lines.iter().find(|line| line["type"] == "call_end").unwrap();
        let random = end["receipt"]["seeds"]["random"].as_str();
        assert_eq!(random.map(str::len), recorded.then_some(64), "{end}");
    }
}

#[test]
fn the_whole_of_a_long_result_is_kept_beside_the_session_if_that_is_wanted() {
    let config = "[session]\ndir = \"sessions\"\nkeep_results = true\n".to_owned()
        + &entry(
            "files",
            "grants.files = [{ host = \".\", guest = \"/workspace\" }]\nlimits = { result_kib = 1 }",
        );
    let script = json!([calls(&[("c1", "read_file", json!({"path": "long.txt"}))]), says("ok")]);
    let setup = Setup::new(&config, &script);
    fs::write(setup.path("long.txt"), "line after line\n".repeat(500)).unwrap();
    assert_eq!(setup.run(&["--allow-unpinned"]).code, 0);
    let (folders, sessions): (Vec<_>, Vec<_>) =
        files(&setup).into_iter().partition(|path| path.is_dir());
    let ([folder], [file]) = (&folders[..], &sessions[..]) else { panic!("{:?}", files(&setup)) };
    let text = fs::read_to_string(file).unwrap();
    let end = text.lines().find(|line| line.contains("\"call_end\"")).unwrap();
    let end: Value = serde_json::from_str(end).unwrap();
    let kept = end["receipt"]["spilled"]["path"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert!(std::path::Path::new(kept).starts_with(folder), "{kept}");
    assert!(fs::read_to_string(kept).unwrap().matches("line after line").count() > 100);
}

#[test]
fn a_folder_that_was_asked_for_and_cannot_be_made_refuses_the_run() {
    let setup = Setup::new("[session]\ndir = \"answers.json\"\n", &json!([says("hi")]));
    let ran = setup.run(&[]);
    assert_eq!((ran.code, ran.err.contains("[session] dir")), (2, true), "{ran:?}");
    // Nobody asked for the default one.
    let setup = Setup::new("", &json!([says("hi")]));
    let mut command = cofferdam();
    command.env("COFFERDAM_STATE_DIR", setup.path("answers.json"));
    command.args(["run", "--config"]).arg(setup.path("cofferdam.toml")).arg("go");
    let ran = run(&mut command);
    assert_eq!((ran.code, ran.err.contains("no session is kept")), (0, true), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_a_session() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = Setup::new(HERE, &json!([says("hi")]));
    setup.run(&[]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files(&setup)[0]), mode(&setup.path("sessions"))), (0o600, 0o700));
}

/// A run in a process of its own, whose events are read as they come.
struct Running {
    child: Child,
    seen: Arc<Mutex<Vec<Value>>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Running {
    fn start(setup: &Setup, args: &[&str]) -> Self {
        let mut command = cofferdam();
        command.args(["run", "--json", "--allow-unpinned", "--config"]);
        command.arg(setup.path("cofferdam.toml")).args(args);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (out, into) = (child.stdout.take().unwrap(), seen.clone());
        let reader = Some(thread::spawn(move || read_events(out, &into)));
        Self { child, seen, reader }
    }

    /// Waits until an event has been seen; false if the run ended before it.
    fn wait_for(&self, matches: impl Fn(&Value) -> bool) -> bool {
        loop {
            if self.seen.lock().unwrap().iter().any(&matches) {
                return true;
            }
            if self.reader.as_ref().is_none_or(thread::JoinHandle::is_finished) {
                return self.seen.lock().unwrap().iter().any(&matches);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the process at once, and returns the events that it had printed.
    fn kill(mut self) -> Vec<Value> {
        // SIGKILL. It may have ended by itself.
        let _ = self.child.kill();
        self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn read_events(out: ChildStdout, into: &Mutex<Vec<Value>>) {
    // The last line may be cut as well.
    let lines = BufReader::new(out).lines().map_while(Result::ok);
    for event in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
        into.lock().unwrap().push(event);
    }
}

#[test]
fn a_session_has_one_writer() {
    let script = json!([calls(&[("c1", "nap", json!({"ms": 60_000}))])]);
    let setup = Setup::new(&(HERE.to_owned() + &entry("unruly", "")), &script);
    let running = Running::start(&setup, &["go"]);
    assert!(running.wait_for(|event| event["type"] == "tool_execution_start"));
    let ran = setup.run(&["--continue", "--allow-unpinned"]);
    assert_eq!((ran.code, ran.err.contains("open in another process")), (2, true), "{ran:?}");
    assert_eq!(session(&setup, &["show", "latest"]).code, 0, "reading needs no lock");
    running.kill();
    fs::write(setup.path("answers.json"), json!([says("ok")]).to_string()).unwrap();
    let ran = setup.run(&["--continue", "--allow-unpinned"]);
    assert_eq!(ran.code, 0, "the lock went with its process: {ran:?}");
}

/// Calls that take their time, finish at once, report, trap and are prepared: six batches of five.
fn busy_script() -> Value {
    let batch = |turn: usize| {
        let id = |name: &str| format!("{name}{turn}");
        let ids = ["a", "b", "c", "d", "e"].map(id);
        calls(&[
            (&ids[0], "nap", json!({"ms": 30 + 13 * turn})),
            (&ids[1], "calc", json!({"expressions": ["2^64"]})),
            (&ids[2], "chatter", json!({"lines": 5})),
            (&ids[3], "crash", json!({"message": "on purpose"})),
            (&ids[4], "nap", json!({"ms": 10})),
        ])
    };
    let mut answers: Vec<Value> = (0..6).map(batch).collect();
    answers.push(says("done"));
    answers.into()
}

/// A number that differs from one kill to the next.
fn chance(round: u64, below: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    // Multiply-mix of splitmix64: a clock alone would repeat with the rhythm of the test.
    let mut x = now.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)) % below
}

/// `COFFERDAM_KILLS` says how many, each of a session of its own.
#[test]
fn no_confirmed_result_is_lost_when_the_process_is_killed() {
    let kills = std::env::var("COFFERDAM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let setup =
        Setup::new(&(HERE.to_owned() + &entry("calc", "") + &entry("unruly", "")), &busy_script());
    let mut in_batches = 0;
    for round in 0..kills {
        in_batches += usize::from(survives_a_kill(&setup, round));
        fs::remove_dir_all(setup.path("sessions")).unwrap();
    }
    println!("{in_batches} of {kills} kills came while calls were open");
}

/// Kills a run and goes on with its session. Whether calls were open at the kill.
fn survives_a_kill(setup: &Setup, round: u64) -> bool {
    let running = Running::start(setup, &["go"]);
    assert!(running.wait_for(|event| event["type"] == "agent_start"), "it never began");
    thread::sleep(Duration::from_micros(chance(round, 700_000)));
    let seen = running.kill();
    let left = fs::read(&files(setup)[0]).unwrap();
    let ran = setup.run(&["--json", "--allow-unpinned", "--continue"]);
    assert_eq!(ran.code, 0, "round {round}: {ran:?}\n{}", String::from_utf8_lossy(&left));
    let after = lines(setup);
    let whole = left.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let text = fs::read(&files(setup)[0]).unwrap();
    assert_eq!(text[..whole], left[..whole], "round {round}: earlier lines stay as they were");
    let transcript = messages(&after);
    for event in seen.iter().filter(|event| event["type"] == "message_end") {
        assert!(transcript.contains(&event["message"]), "round {round}: {event} is lost");
    }
    for event in seen.iter().filter(|event| event["type"] == "tool_execution_end") {
        // Runs of this script have one call of each id until the second begins.
        let result = transcript.iter().find(|m| m["tool_call_id"] == event["tool_call_id"]);
        let result = result.unwrap_or_else(|| panic!("round {round}: {event} is lost"));
        assert_eq!(result["content"], event["result"]["content"], "round {round}: {event}");
    }
    every_call_is_answered_once_in_its_order(&transcript, round);
    let played = session(setup, &["replay", "latest"]);
    assert_eq!(played.code, 0, "round {round}: {played:?}");
    let count = |kind| seen.iter().filter(|event| event["type"] == kind).count();
    count("tool_execution_start") > count("tool_execution_end")
}

fn every_call_is_answered_once_in_its_order(transcript: &[Value], round: u64) {
    let mut open: Vec<&Value> = Vec::new();
    for message in transcript {
        if message["role"] == "tool_result" {
            assert_eq!(open.first(), Some(&&message["tool_call_id"]), "round {round}: {message}");
            open.remove(0);
            continue;
        }
        assert_eq!(open, Vec::<&Value>::new(), "round {round}: before {message}");
        let blocks = message["content"].as_array().unwrap().iter();
        open = blocks.filter(|b| b["type"] == "tool_call").map(|b| &b["id"]).collect();
    }
    assert_eq!(open, Vec::<&Value>::new(), "round {round}");
}

/// A limit on the size of files stands for a full disk: writing beyond it fails.
#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_run_and_nothing_earlier_is_lost() {
    let long = |id: &str| (id.to_owned(), json!({"message": "x".repeat(3_000)}));
    let batch = |turn: usize| {
        let list = [long(&format!("a{turn}")), long(&format!("b{turn}"))];
        calls(&list.each_ref().map(|(id, arguments)| (id.as_str(), "crash", arguments.clone())))
    };
    let mut answers: Vec<Value> = (0..20).map(batch).collect();
    answers.push(says("done"));
    let setup = Setup::new(&(HERE.to_owned() + &entry("unruly", "")), &answers.into());
    // The plugin is compiled while there is room.
    let ran = Setup::new(&entry("unruly", ""), &json!([says("hi")])).run(&["--allow-unpinned"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mut command = Command::new("bash");
    // In units of 1024 bytes. Ignored, the signal leaves the error.
    command.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""]);
    let binary = cofferdam();
    command.envs(binary.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.arg(binary.get_program()).args(["run", "--json", "--allow-unpinned", "--config"]);
    let ran = run(command.arg(setup.path("cofferdam.toml")).arg("go"));
    assert_eq!(ran.code, 1, "{ran:?}");
    let problem = ran.err.lines().last().unwrap();
    for want in ["write the transcript", ".jsonl", "too large", "is kept"] {
        assert!(problem.contains(want), "{want}: {problem}");
    }
    let text = fs::read_to_string(&files(&setup)[0]).unwrap();
    assert!(text.ends_with('\n') && text.len() <= 64 << 10, "{}", text.len());
    let before = lines(&setup);
    for event in ran.json_lines().iter().filter(|event| event["type"] == "message_end") {
        assert!(messages(&before).contains(&event["message"]), "{event}");
    }
    fs::write(setup.path("answers.json"), json!([says("there is room again")]).to_string())
        .unwrap();
    let ran = setup.run(&["--allow-unpinned", "--continue"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    every_call_is_answered_once_in_its_order(&messages(&lines(&setup)), 0);
}
