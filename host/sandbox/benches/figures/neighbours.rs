//! How long does an unrelated call take beside guests that spin, more of them than workers?

use crate::Effort;
use crate::scene::{ARGUMENTS, call, guests, load};
use crate::table::{Quantity::Micros, Row, Samples};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Limits, Plugin, Sandbox, SandboxConfig};
use futures::executor::block_on;
use std::time::{Duration, Instant};

const SPINNING: usize = 4;

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    let config = SandboxConfig { workers: 2, ..SandboxConfig::default() };
    let sandbox = Sandbox::new(config).unwrap();
    let plugin = load(&sandbox, &guests::typed(), Limits::default());
    let spinning = load(&sandbox, &guests::spinning(), Limits { fuel: None, ..Limits::default() });
    let times = effort.times(2_000);
    let mut alone = measure(&plugin, times);

    let abort = AbortSignal::new();
    let spinners: Vec<_> = (0..SPINNING)
        .map(|_| {
            let (spinning, abort) = (spinning.clone(), abort.clone());
            std::thread::spawn(move || {
                block_on(spinning.call_tool("run", "{}", Progress::default(), abort))
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    let mut beside = measure(&plugin, times);
    abort.cancel();
    for spinner in spinners {
        assert_eq!(spinner.join().unwrap().answer.unwrap_err().ended_by, "aborted");
    }
    let name = "alone";
    vec![
        Row::new("call beside 4 spinning guests on 2 workers: median", beside.median())
            .beside(name, alone.median()),
        Row::new("call beside 4 spinning guests on 2 workers: p99", beside.percentile(99.0))
            .at_most(Micros(1_500.0))
            .beside(name, alone.percentile(99.0)),
    ]
}

fn measure(plugin: &Plugin, times: usize) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..times {
        let began = Instant::now();
        block_on(call(plugin, "run", ARGUMENTS));
        samples.push(began.elapsed());
    }
    samples
}
