//! What do the checks in compiled code cost where a guest only computes? Fuel is counted unless a
//! plugin's limits say `fuel = off`; the epoch is looked at in any case.

use crate::Effort;
use crate::scene::bare::{Bare, Checks};
use crate::scene::guests::{Kernel, kernels};
use crate::scene::{call_here, load};
use crate::table::{Row, Samples};
use cofferdam_sandbox::{Limits, Sandbox, SandboxConfig};
use futures::executor::block_on;
use std::time::Instant;

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    kernels().iter().flat_map(|kernel| measure(&sandbox, kernel, effort)).collect()
}

fn measure(sandbox: &Sandbox, kernel: &Kernel, effort: Effort) -> [Row; 2] {
    let counted = load(sandbox, &kernel.guest, Limits::default());
    let uncounted = load(sandbox, &kernel.guest, Limits { fuel: None, ..Limits::default() });
    let wasm = wat::parse_str(kernel.guest.text()).unwrap();
    let unchecked = Bare::small(&wasm, sandbox.allocation(), Checks::None);
    let [mut fuel, mut epoch, mut none] = std::array::from_fn(|_| Samples::default());
    for _ in 0..effort.times(30) {
        time(&mut none, || block_on(unchecked.call("run", kernel.amount)));
        time(&mut epoch, || call_here(&uncounted, "run", kernel.amount));
        time(&mut fuel, || call_here(&counted, "run", kernel.amount));
    }
    // The least, because nothing but the machine's other work makes a computation take longer.
    let none = none.least();
    let name = kernel.name;
    [
        Row::new(format!("{name}: with epoch and fuel"), fuel.least()).beside("no checks", none),
        Row::new(format!("{name}: with epoch, fuel off"), epoch.least()).beside("no checks", none),
    ]
}

fn time(samples: &mut Samples, call: impl FnOnce()) {
    let began = Instant::now();
    call();
    samples.push(began.elapsed());
}
