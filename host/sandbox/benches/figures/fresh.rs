//! What does a call in a fresh instance cost, with every brake, meter and receipt?

use crate::Effort;
use crate::guest::Guest;
use crate::scene::bare::{Bare, Checks};
use crate::scene::{ARGUMENTS, call, call_here, load};
use crate::table::{Row, Samples};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::progress::Progress;
use cofferdam_sandbox::{Limits, Sandbox, SandboxConfig};
use futures::executor::block_on;
use std::time::Instant;

/// Calls of one kind in a row, so that each kind finds its own code in the caches.
const ROUND: usize = 50;

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let guest = Guest::default();
    let plugin = load(&sandbox, &guest, Limits::default());
    let uncounted = load(&sandbox, &guest, Limits { fuel: None, ..Limits::default() });
    let traps = load(&sandbox, &Guest::call("unreachable"), Limits::default());
    let wasm = wat::parse_str(guest.text()).unwrap();
    let bare = Bare::small(&wasm, sandbox.allocation(), Checks::FuelAndEpoch);

    let [mut base, mut guarded, mut free, mut elsewhere, mut trapped] =
        std::array::from_fn(|_| Samples::default());
    // Kinds take turns, so that whatever else the machine does meets all of them.
    for _ in 0..effort.times(200) {
        round(&mut base, || block_on(bare.call("run", ARGUMENTS)));
        round(&mut guarded, || call_here(&plugin, "run", ARGUMENTS));
        round(&mut free, || call_here(&uncounted, "run", ARGUMENTS));
        round(&mut elsewhere, || block_on(call(&plugin, "run", ARGUMENTS)));
        round(&mut trapped, || {
            let call =
                traps.call_tool_here("run", ARGUMENTS, Progress::default(), AbortSignal::new());
            assert!(block_on(call).answer.is_err());
        });
    }
    let (bare, bare_p99) = (base.median(), base.percentile(99.0));
    vec![
        Row::new("fresh call, small guest: median", guarded.median()).at_most_times(
            1.5,
            "bare engine",
            bare,
        ),
        Row::new("fresh call, small guest: p99", guarded.percentile(99.0))
            .beside("bare engine", bare_p99),
        Row::new("  the same without fuel: median", free.median()).beside("bare engine", bare),
        Row::new("  the same on the sandbox's threads: median", elsewhere.median())
            .beside("bare engine", bare),
        Row::new("  the same that traps: median", trapped.median()).beside("bare engine", bare),
    ]
}

fn round(samples: &mut Samples, call: impl Fn()) {
    for _ in 0..ROUND {
        let began = Instant::now();
        call();
        samples.push(began.elapsed());
    }
}
