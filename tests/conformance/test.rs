//! Plays every recorded scenario and compares with its trace.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use cofferdam_tests::conformance::{Delays, Tools, difference, parse, play};
use cofferdam_tests::root;
use futures::StreamExt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A scenario that hangs fails instead of holding up the others.
const LIMIT: Duration = Duration::from_secs(20);

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

async fn play_one(case: Arc<Case>, delays: Delays) -> Option<String> {
    let problem = match play(case.scenario.clone(), Tools::Native, delays, LIMIT).await {
        Ok(got) => difference(&got, &case.trace)?,
        Err(why) => format!("{why:?}"),
    };
    Some(format!("{} with seed {:?}: {problem}", case.name, delays.seed))
}

/// Plays all scenarios, each with these seeds, on a runtime with so many threads.
fn play_all(workers: usize, seeds: &[Option<u64>]) {
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
            .map(|(case, seed)| tokio::spawn(play_one(case, Delays { seed })))
            .buffer_unordered(AT_A_TIME);
        problems = runs.filter_map(async |run| run.unwrap()).collect().await;
    });
    assert!(problems.is_empty(), "{} differ:\n{}", problems.len(), problems.join("\n"));
}

fn seeds() -> Vec<Option<u64>> {
    [None].into_iter().chain((1..=20).map(Some)).collect()
}

#[test]
fn one_worker_thread() {
    play_all(1, &seeds());
}

#[test]
fn two_worker_threads() {
    play_all(2, &seeds());
}

#[test]
fn eight_worker_threads() {
    play_all(8, &seeds());
}

#[test]
fn no_scenario_is_without_a_trace() {
    assert!(cases().len() >= 99);
}
