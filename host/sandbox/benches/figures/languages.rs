//! What do plugins in JavaScript and Python cost, which carry their language's engine?

use crate::Effort;
use crate::scene::bare::Bare;
use crate::scene::{call_here, load_file, sample};
use crate::table::{Quantity::Micros, Row, Samples};
use cofferdam_sandbox::{CacheConfig, Grants, Sandbox, SandboxConfig};
use futures::executor::block_on;
use std::path::Path;
use std::time::{Duration, Instant};

/// A sample, and a call of it that is as small as one can be.
struct Sample {
    language: &'static str,
    name: &'static str,
    tool: &'static str,
    arguments: &'static str,
}

const SAMPLES: [Sample; 2] = [
    Sample {
        language: "JavaScript",
        name: "words",
        tool: "count_words",
        arguments: r#"{"text":"a word is a word"}"#,
    },
    Sample {
        language: "Python",
        name: "stats",
        tool: "describe_numbers",
        arguments: r#"{"numbers":[3,4,5]}"#,
    },
];

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    SAMPLES.iter().flat_map(|sample| language(sample, effort)).collect()
}

fn language(what: &Sample, effort: Effort) -> Vec<Row> {
    let Some(path) = sample(what.name) else {
        eprintln!("left out: {} is not built (cargo xtask guests)", what.name);
        return Vec::new();
    };
    let kept = tempfile::tempdir().unwrap();
    let config = SandboxConfig {
        cache: Some(CacheConfig { dir: kept.path().join("compiled"), size_mib: 1_024 }),
        ..SandboxConfig::default()
    };
    let sandbox = Sandbox::new(config.clone()).unwrap();
    let plugin = load_file(&sandbox, &path, Grants::default());
    let bare = Bare::with_wasi(&std::fs::read(&path).unwrap(), sandbox.allocation());
    let [mut guarded, mut base, mut first] = std::array::from_fn(|_| Samples::default());
    for _ in 0..effort.times(100) {
        for _ in 0..10 {
            let began = Instant::now();
            call_here(&plugin, what.tool, what.arguments);
            guarded.push(began.elapsed());
            let began = Instant::now();
            block_on(bare.call(what.tool, what.arguments));
            base.push(began.elapsed());
        }
    }
    for _ in 0..effort.times(50) {
        first.push(first_answer(&config, &path, what));
    }
    let Sample { language, .. } = what;
    vec![
        Row::new(format!("fresh call, {language}: median"), guarded.median()).at_most_times(
            1.5,
            "bare engine",
            base.median(),
        ),
        Row::new(format!("from kept code to the first answer, {language}: median"), first.median())
            .at_most(Micros(5_000.0)),
    ]
}

/// From compiled code on disk to an answer, in a new sandbox each time, as in a new process.
fn first_answer(config: &SandboxConfig, path: &Path, what: &Sample) -> Duration {
    let sandbox = Sandbox::new(config.clone()).unwrap();
    let began = Instant::now();
    let plugin = load_file(&sandbox, path, Grants::default());
    assert!(plugin.compile_time().is_none(), "it was compiled before");
    call_here(&plugin, what.tool, what.arguments);
    began.elapsed()
}
