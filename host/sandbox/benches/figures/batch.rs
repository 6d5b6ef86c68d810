//! What does a call through the whole loop cost in a batch of 100: validation, events, journal
//! order, wall, receipt?

use crate::Effort;
use crate::scene::bare::{Bare, Checks};
use crate::scene::{ARGUMENTS, guests, load};
use crate::table::Quantity::{self, Micros};
use crate::table::{Row, Samples};
use cofferdam_agent::config::Guards;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::testing::{FnTool, ScriptedModel, answer};
use cofferdam_agent::tool::{Tool, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use cofferdam_sandbox::{Limits, Sandbox, SandboxConfig};
use futures::executor::block_on;
use futures::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

const CALLS: usize = 100;

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let plugin = load(&sandbox, &guests::typed(), Limits::default());
    let sandboxed = plugin.tools(None, None).unwrap().remove(0);
    let native = FnTool::new("run", |call, _, _| {
        let path = call.arguments.get("path").and_then(|path| path.as_str()).unwrap_or_default();
        std::future::ready(Ok(ToolResult::text(path)))
    });
    let native = native.with_parameters(sandboxed.declaration().parameters.clone()).shared();

    let [mut wall, mut unsandboxed] = std::array::from_fn(|_| Samples::default());
    for _ in 0..effort.times(300) {
        run(&sandboxed, &mut wall);
        run(&native, &mut unsandboxed);
    }
    let native = unsandboxed.median();
    let wasm = wat::parse_str(guests::typed().text()).unwrap();
    let bare = Bare::small(&wasm, sandbox.allocation(), Checks::FuelAndEpoch);
    vec![
        Row::new("call through the loop, batch of 100: per call, median", wall.median())
            .at_most(Micros(8.0))
            .beside("native tool", native),
        Row::new("call through the loop, batch of 100: per call, p99", wall.percentile(99.0)),
        Row::new("  the bare engine on two threads: per call", on_two_threads(&bare, effort)),
    ]
}

/// The least that a call can take where two cores share the work.
fn on_two_threads(bare: &Bare<()>, effort: Effort) -> Quantity {
    let calls = effort.times(20_000);
    let work = || (0..calls).for_each(|_| block_on(bare.call("run", ARGUMENTS)));
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    Micros(began.elapsed().as_secs_f64() * 1e6 / (2 * calls) as f64)
}

fn run(tool: &Arc<dyn Tool>, samples: &mut Samples) {
    let arguments = json!({"path": "src/main.rs", "offset": 10, "limit": 200});
    let ids: Vec<String> = (0..CALLS).map(|index| format!("c{index}")).collect();
    let calls = answer::calls(ids.iter().map(|id| (id.as_str(), "run", arguments.clone())));
    let toolset = Toolset::new([tool.clone()], Rules::Portable);
    let settings = Settings::new(Arc::new(ScriptedModel::new([calls]))).with_toolset(toolset);
    let mut config = AgentConfig::new(settings);
    config.guards = Guards::NONE;
    let agent = Agent::new(config);
    agent.subscribe(Arc::new(NoErrors)).detach();
    let began = Instant::now();
    block_on(agent.prompt("go")).unwrap();
    samples.push(began.elapsed() / CALLS as u32);
}

struct NoErrors;

impl Observer for NoErrors {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionEnd { end, .. } = event {
            assert!(!end.is_error, "{:?}", end.result);
        }
        Box::pin(std::future::ready(()))
    }
}
