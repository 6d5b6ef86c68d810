//! Files that change under an agent: what is in force when, and what is told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::Agent;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::hook::{Approval, Approver, Decision};
use cofferdam_agent::message::{Content, Message};
use cofferdam_app::reload::{Reload, Rights};
use cofferdam_app::session::Sessions;
use cofferdam_app::{Config, Options, Pinning, assemble};
use cofferdam_sandbox::{SandboxConfig, component_bytes, sha256_hex};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

const PROBE: &str = include_str!("../src/doctor/probes/probe.wat");

/// A component with one function, `say`, that answers a number.
fn saying(number: u32) -> Vec<u8> {
    let text = format!(
        "(component (core module $m (func (export \"f\") (result i32) i32.const {number})) \
         (core instance $i (instantiate $m)) \
         (func (export \"say\") (result u32) (canon lift (core func $i \"f\"))))"
    );
    component(&text)
}

fn component(text: &str) -> Vec<u8> {
    component_bytes(text.as_bytes(), true).unwrap().into_owned()
}

/// A person who always says the same, and remembers what was asked.
struct Person(bool, Mutex<Vec<String>>);

impl Approver for Person {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        let question = &approval.question;
        let asked = format!("{} {} {}", approval.hook, question.title, question.message);
        self.1.lock().unwrap().push(asked);
        let decision = if self.0 { Decision::Approved } else { Decision::declined() };
        Box::pin(std::future::ready(decision))
    }
}

struct Scene {
    folder: tempfile::TempDir,
    agent: Option<Agent>,
    reload: Arc<Reload>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    /// A folder with the plugin `p`, before there is an agent.
    fn new(plugin: &[u8]) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let all = told.clone();
        let reload = Reload::new(move |told| all.lock().unwrap().push(told.to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { folder, agent: None, reload, told };
        scene.plugin(plugin);
        scene
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the plugin's file, as a person or a tool would: by another file.
    fn plugin(&self, bytes: &[u8]) {
        std::fs::write(self.path("p.new"), bytes).unwrap();
        std::fs::rename(self.path("p.new"), self.path("p.wasm")).unwrap();
    }

    /// Writes the operator's file: the plugin pinned to these bytes, and what else is said of it.
    fn config(&self, pinned: &[u8], more: &str) {
        let text = format!(
            "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n[[plugins]]\nname = \"p\"\n\
             path = \"p.wasm\"\nsha256 = \"{}\"\n{more}",
            sha256_hex(pinned)
        );
        self.file(&text);
    }

    fn file(&self, text: &str) {
        std::fs::write(self.path("c.new"), text).unwrap();
        std::fs::rename(self.path("c.new"), self.path("cofferdam.toml")).unwrap();
    }

    /// Makes the agent, with a script that calls these tools, one in each answer. `None` is an answer
    /// without a call, which ends a run.
    async fn begin(&mut self, calls: &[Option<(&str, Value)>], person: Option<Arc<Person>>) {
        let answer = |call: &Option<(&str, Value)>| match call {
            Some((tool, arguments)) => json!({
                "content": [{"type": "tool_call", "id": "c", "name": tool, "arguments": arguments}],
                "stop_reason": "tool_use",
            }),
            None => json!({"content": [{"type": "text", "text": "done"}], "stop_reason": "stop"}),
        };
        let script: Vec<Value> = calls.iter().map(answer).collect();
        std::fs::write(self.path("answers.json"), json!(script).to_string()).unwrap();
        let config = Config::read(&self.path("cofferdam.toml")).unwrap();
        let options = Options {
            pinning: Pinning::Required,
            approver: person.map(|person| person as Arc<dyn Approver>),
            sandbox: SandboxConfig { slots: 4, ..SandboxConfig::default() },
            session: Some(Sessions::at(self.path("sessions")).fresh()),
            reload: Some(self.reload.clone()),
            ..Options::default()
        };
        std::fs::create_dir_all(self.path("sessions")).unwrap();
        self.agent = Some(assemble(&config, options).await.unwrap().agent);
    }

    fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    /// One run: the texts of its results.
    async fn run(&self) -> Vec<String> {
        let end = self.agent().prompt("go").await.unwrap();
        let text = |message: &Arc<Message>| match &**message {
            Message::ToolResult(result) => match &result.content[0] {
                Content::Text(text) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        end.messages.iter().filter_map(text).collect()
    }

    /// That something was told with all these words.
    fn told(&self, words: &[&str]) {
        let told = self.told.lock().unwrap();
        let fits = |told: &&String| words.iter().all(|word| told.contains(word));
        assert!(told.iter().any(|one| fits(&one)), "{words:?}: {told:#?}");
    }
}

const SAY: fn() -> Option<(&'static str, Value)> = || Some(("say", json!({})));

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_is_taken_once_its_digest_is_pinned_and_not_before() {
    let (one, two) = (saying(1), saying(2));
    let mut scene = Scene::new(&one);
    scene.config(&one, "");
    scene.begin(&[SAY(), None, SAY(), None, SAY(), None], None).await;
    assert_eq!(scene.run().await, ["1"]);
    scene.plugin(&two);
    assert_eq!(scene.run().await, ["1"], "another file, and nobody pinned it");
    scene.told(&["the plugin `p` in force stays", &sha256_hex(&two), "cofferdam plugin allow"]);
    scene.config(&two, "");
    assert_eq!(scene.run().await, ["2"]);
    scene.told(&["the plugin `p` is another file", &sha256_hex(&two), &sha256_hex(&one)]);
}

/// A plugin that was loaded without a digest is pinned by what was loaded.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_let_in_unpinned_is_not_replaced_unseen() {
    let (one, two) = (saying(1), saying(2));
    let mut scene = Scene::new(&one);
    let unpinned = "[model]\nprovider = \"scripted\"\nscript = \"answers.json\"\n[[plugins]]\nname = \"p\"\n\
                    path = \"p.wasm\"\n";
    scene.config(&one, "");
    scene.begin(&[SAY(), None, SAY(), None], None).await;
    scene.file(unpinned);
    scene.plugin(&two);
    assert_eq!(scene.run().await, ["1"]);
    scene.told(&["in force stays", &sha256_hex(&two)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_half_written_or_bad_changes_nothing_and_is_told() {
    let (one, two) = (saying(1), saying(2));
    let mut scene = Scene::new(&one);
    scene.config(&one, "");
    scene.begin(&[SAY(), None, SAY(), None, SAY(), None, SAY(), None], None).await;
    let half = &two[..two.len() / 2];
    scene.plugin(half);
    scene.config(half, "");
    assert_eq!(scene.run().await, ["1"], "half a component, and it is pinned");
    scene.told(&["the plugin `p` in force stays", "damaged or cut"]);
    scene.plugin(&two);
    scene.file("[[plugins]]\nname = \"p\"\npth = \"p.wasm\"\n");
    assert_eq!(scene.run().await, ["1"], "a mistake in the file");
    scene.told(&["the configuration in force stays", "cofferdam.toml:3", "did you mean `path`?"]);
    std::fs::remove_file(scene.path("cofferdam.toml")).unwrap();
    assert_eq!(scene.run().await, ["1"], "no file at all");
    scene.config(&two, "");
    assert_eq!(scene.run().await, ["2"], "whole again");
}

/// Changes the files while a call runs: the call has reported, and goes on when that is dealt with.
struct Meanwhile<F>(Mutex<Option<F>>);

impl<F: FnOnce() + Send> Observer for Meanwhile<F> {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionUpdate { .. } = event
            && let Some(change) = self.0.lock().unwrap().take()
        {
            change();
        }
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_ends_on_the_old_code_and_the_next_turn_has_the_new() {
    let old = component(PROBE);
    let new = component(&PROBE.replace("\"run\" \"A tool.\"", "\"ran\" \"A tool.\""));
    let mut scene = Scene::new(&old);
    scene.config(&old, "");
    let calls = [
        Some(("run", json!({"task": "5 1 5|"}))),
        Some(("ran", json!({"task": "0 0 0|anew"}))),
        None,
    ];
    scene.begin(&calls, None).await;
    let folder = scene.folder.path().to_owned();
    let digest = sha256_hex(&new);
    let (text, bytes) =
        (std::fs::read_to_string(folder.join("cofferdam.toml")).unwrap(), new.clone());
    let (from, to) = (sha256_hex(&old), digest.clone());
    let change = move || {
        std::fs::write(folder.join("p.wasm"), &bytes).unwrap();
        std::fs::write(folder.join("cofferdam.toml"), text.replace(&from, &to)).unwrap();
    };
    let meanwhile = Arc::new(Meanwhile(Mutex::new(Some(change))));
    let subscription = scene.agent().subscribe(meanwhile);
    let results = scene.run().await;
    drop(subscription);
    assert_eq!(results.len(), 2, "{results:?}");
    assert!(!results[0].contains("no tool"), "{results:?}");
    assert_eq!(results[1], "anew");
    let session =
        std::fs::read_dir(scene.path("sessions")).unwrap().next().unwrap().unwrap().path();
    let session = std::fs::read_to_string(session).unwrap();
    let lines: Vec<Value> =
        session.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted).unwrap();
    let end = place(&|line| line["type"] == "call_end");
    let setup = place(&|line| line["type"] == "setup" && line["plugins"][0]["sha256"] == *digest);
    let next = place(&|line| line["type"] == "call_start" && line["tool_name"] == "ran");
    assert!(end < setup && setup < next, "{end} {setup} {next}");
    assert_eq!(lines[end]["tool_name"], "run");
    assert_eq!(lines[end]["is_error"], false, "{}", lines[end]);
}

const KEEP: fn() -> Option<(&'static str, Value)> = || Some(("run", json!({"task": "13 10 0|"})));

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_grew_wait_until_somebody_agrees_and_those_taken_away_are_gone() {
    let probe = component(PROBE);
    let mut scene = Scene::new(&probe);
    scene.config(&probe, "");
    scene.begin(&[KEEP(), None, KEEP(), None, KEEP(), None, KEEP(), None], None).await;
    let denied = scene.run().await;
    assert_ne!(denied, ["written"]);
    scene.config(&probe, "grants.kv = 64\n");
    assert_eq!(scene.run().await, denied, "nobody agreed");
    scene.told(&["the plugin `p` does not get", "kv=64"]);
    let settings = scene.reload.look(Rights::Agreed).await.expect("agreed to");
    scene.agent().set_settings(settings);
    assert_eq!(scene.run().await, ["written"]);
    scene.config(&probe, "");
    assert_eq!(scene.run().await, denied, "taken away at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_about_rights_that_grew() {
    let probe = component(PROBE);
    for says in [true, false] {
        let mut scene = Scene::new(&probe);
        scene.config(&probe, "");
        let person = Arc::new(Person(says, Mutex::default()));
        scene.begin(&[KEEP(), None, KEEP(), None], Some(person.clone())).await;
        scene.config(&probe, "grants.kv = 64\n");
        assert_eq!(scene.run().await == ["written"], says);
        assert_eq!(scene.run().await == ["written"], says);
        let asked = person.1.lock().unwrap();
        assert_eq!(asked.len(), 1, "once for one change: {asked:?}");
        assert!(asked[0].contains("kv=64") && asked[0].contains("[[plugins]] grants"), "{asked:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_prompts_and_brakes_of_the_file_are_taken_too() {
    let one = saying(1);
    let mut scene = Scene::new(&one);
    scene.config(&one, "");
    scene.begin(&[SAY(), None, SAY(), SAY(), None, SAY(), None], None).await;
    assert_eq!(scene.run().await, ["1"]);
    scene.config(&one, "prefix = \"they_\"\n[approval]\nask = [\"they_*\"]\n[agent]\nsystem_prompt = \"Brief.\"\nmax_turns = 1\n");
    let results = scene.run().await;
    assert!(results[0].contains("say"), "the old name is gone: {results:?}");
    assert_eq!(results.len(), 1, "one turn");
    let settings = scene.agent().settings();
    assert_eq!(&*settings.system_prompt, "Brief.");
    let names: Vec<_> =
        settings.toolset.declarations().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["they_say"]);
    assert_eq!(settings.policy.as_ref().unwrap().before.len(), 1);
    // Two plugins with one name: what is in force stays.
    let twice = std::fs::read_to_string(scene.path("cofferdam.toml")).unwrap();
    scene.file(&format!("{twice}[[plugins]]\nname = \"p\"\npath = \"p.wasm\"\n"));
    assert!(scene.reload.look(Rights::Wait).await.is_none());
    scene.told(&["two plugins are named `p`"]);
}

/// Without a change nothing is read, told or made anew.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_changed_is_nothing_done() {
    let one = saying(1);
    let mut scene = Scene::new(&one);
    scene.config(&one, "");
    scene.begin(&[SAY(), SAY(), None], None).await;
    assert_eq!(scene.run().await, ["1", "1"]);
    assert!(scene.reload.look(Rights::Wait).await.is_none());
    // Another file with the same bytes is looked at, and is the same.
    scene.plugin(&one);
    assert!(scene.reload.look(Rights::Wait).await.is_none());
    assert!(scene.told.lock().unwrap().is_empty());
    assert!(Path::new(&scene.path("p.wasm")).exists());
}
