//! Plays every recorded scenario, with native tools and hooks and with guests behind the sandbox, and
//! compares with its trace.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use cofferdam_agent::testing::block_on;
use cofferdam_tests::conformance::{Delays, Stage, Tools, Unplayed, difference, parse, play};
use cofferdam_tests::{plugin, root};
use futures::StreamExt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A scenario that hangs fails instead of holding up the others.
const LIMIT: Duration = Duration::from_secs(20);

/// The scenarios that no guest can play.
const UNPLAYABLE: [&str; 1] = ["504-late-progress-after-the-run"];

/// One sandbox for all tests, so that the puppet is compiled once.
static STAGE: LazyLock<Stage> = LazyLock::new(|| block_on(Stage::open(&plugin("puppet"))).unwrap());

/// So that none waits for the others longer than that.
const AT_A_TIME: usize = 64;

struct Case {
    name: String,
    scenario: serde_json::Value,
    trace: Vec<serde_json::Value>,
}

fn cases() -> Vec<Case> {
    let folder = root().join("tests/conformance");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder.join("scenarios"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let case = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let trace = folder.join("traces").join(format!("{name}.jsonl"));
        Case {
            scenario: serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap(),
            trace: parse(&fs::read_to_string(trace).unwrap()),
            name,
        }
    };
    paths.into_iter().map(case).collect()
}

async fn play_one(case: Arc<Case>, tools: Tools, delays: Delays) -> Option<String> {
    let unplayable = matches!(tools, Tools::Wasm(_)) && UNPLAYABLE.contains(&&*case.name);
    let problem = match play(case.scenario.clone(), tools, delays, LIMIT).await {
        Ok(_) if unplayable => "it can be played".into(),
        Ok(got) => difference(&got, &case.trace)?,
        Err(Unplayed::Unplayable(_)) if unplayable => return None,
        Err(why) => format!("{why:?}"),
    };
    Some(format!("{} with seed {:?}: {problem}", case.name, delays.seed))
}

/// Plays all scenarios, each with these seeds, on a runtime with so many threads.
fn play_all(workers: usize, tools: &Tools, seeds: &[Option<u64>]) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .unwrap();
    let mut problems: Vec<String> = Vec::new();
    runtime.block_on(async {
        let cases: Vec<Arc<Case>> = cases().into_iter().map(Arc::new).collect();
        let runs = cases.iter().flat_map(|case| seeds.iter().map(|seed| (case.clone(), *seed)));
        let runs = futures::stream::iter(runs)
            .map(|(case, seed)| tokio::spawn(play_one(case, tools.clone(), Delays { seed })))
            .buffer_unordered(AT_A_TIME);
        problems = runs.filter_map(async |run| run.unwrap()).collect().await;
    });
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
}

/// No delays at all, and so many ways to be slow.
fn seeds(delayed: u64) -> Vec<Option<u64>> {
    [None].into_iter().chain((1..=delayed).map(Some)).collect()
}

fn native(workers: usize) {
    play_all(workers, &Tools::Native, &seeds(20));
}

fn guests(workers: usize) {
    play_all(workers, &Tools::Wasm(STAGE.clone()), &seeds(8));
}

#[test]
fn native_on_one_worker_thread() {
    native(1);
}

#[test]
fn native_on_two_worker_threads() {
    native(2);
}

#[test]
fn native_on_eight_worker_threads() {
    native(8);
}

#[test]
fn guests_on_one_worker_thread() {
    guests(1);
}

#[test]
fn guests_on_two_worker_threads() {
    guests(2);
}

#[test]
fn guests_on_eight_worker_threads() {
    guests(8);
}

#[test]
fn no_scenario_is_without_a_trace() {
    assert!(cases().len() >= 99);
}
