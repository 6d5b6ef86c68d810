//! How long does it take from an abort to the end event of a call, whatever the guest does? And how
//! far is the limit on wall time overshot?

use crate::Effort;
use crate::scene::{guests, load, load_file, sample};
use crate::table::Quantity::{self, Micros};
use crate::table::{Row, Samples};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::config::Guards;
use cofferdam_agent::event::{Event, Observer};
use cofferdam_agent::progress::Progress;
use cofferdam_agent::testing::{ScriptedModel, answer};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, Settings, Toolset};
use cofferdam_sandbox::{Grants, Limits, Plugin, Sandbox, SandboxConfig};
use futures::executor::block_on;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Of wall time, in the limit that is overshot.
const WALL_MS: u64 = 20;
/// Of wall time for a guest that copies, so that it has touched every page before: until then, the system makes
/// the pages, and a copy takes several times as long.
const WARM_WALL_MS: u64 = 150;
/// For the guest that copies 64 MiB: a page more than that, and one for the frame.
const MEMORY_MIB: u64 = 66;

pub(crate) fn ask(effort: Effort) -> Vec<Row> {
    let sandbox = Sandbox::new(SandboxConfig::default()).unwrap();
    let load = |guest| {
        let limits = Limits { memory_mib: MEMORY_MIB, ..Limits::default() };
        load(&sandbox, &guest, limits)
    };
    let (spinning, sleeping, copying) =
        (load(guests::spinning()), load(guests::sleeping()), load(guests::copying()));
    let nothing = json!({});
    let call = |plugin| Call { plugin, tool: "run", arguments: &nothing, before_ms: 3 };
    let mut rows = aborted("spinning", call(&spinning), effort.times(500), 200.0);
    rows.extend(aborted("sleeping", call(&sleeping), effort.times(500), 500.0));
    rows.extend(on_the_network(&sandbox, effort));
    // Until every page of the memory has been touched, a copy takes several times as long.
    let copies = Call { before_ms: 150, ..call(&copying) };
    rows.extend(aborted("copying 64 MiB", copies, effort.times(100), 15_000.0));
    for (doing, guest, wall_ms, most_ms, times) in [
        ("spinning", guests::spinning(), WALL_MS, 2.0, 200),
        ("sleeping", guests::sleeping(), WALL_MS, 2.0, 200),
        ("copying 64 MiB", guests::copying(), WARM_WALL_MS, 15.0, 50),
    ] {
        let past = overshoot(&sandbox, &guest, wall_ms, effort.times(times));
        let question = format!("wall limit overshot, {doing}: p99");
        rows.push(Row::new(question, past).at_most(Micros(most_ms * 1e3)));
    }
    let first = overshoot(&sandbox, &guests::copying(), WALL_MS, effort.times(50));
    rows.push(Row::new("  copying them for the first time: p99", first));
    rows
}

/// What is aborted, and how long after it began.
#[derive(Clone, Copy)]
struct Call<'a> {
    plugin: &'a Plugin,
    tool: &'a str,
    arguments: &'a Value,
    before_ms: u64,
}

fn aborted(doing: &str, call: Call<'_>, times: usize, p99_max: f64) -> Vec<Row> {
    // Threads apart from those of the guests, as in the binary.
    let runtime = Runtime::new().unwrap();
    let mut samples = Samples::default();
    for turn in 0..times {
        samples.push(abort_once(&runtime, call, turn));
    }
    vec![
        Row::new(format!("abort to end event, {doing}: median"), samples.median()),
        Row::new(format!("abort to end event, {doing}: p99"), samples.percentile(99.0))
            .at_most(Micros(p99_max)),
    ]
}

fn abort_once(runtime: &Runtime, call: Call<'_>, turn: usize) -> Duration {
    let calls = answer::calls([("c1", call.tool, call.arguments.clone())]);
    let toolset = Toolset::new(call.plugin.tools(None, None).unwrap(), Rules::Portable);
    let settings = Settings::new(Arc::new(ScriptedModel::new([calls]))).with_toolset(toolset);
    let mut config = AgentConfig::new(settings);
    config.guards = Guards::NONE;
    let agent = Agent::new(config);
    let ended = Arc::new(Ended::default());
    agent.subscribe(ended.clone()).detach();
    let running = runtime.spawn({
        let agent = agent.clone();
        async move { agent.prompt("go").await }
    });
    while agent.pending_tool_calls().is_empty() {
        std::thread::yield_now();
    }
    // Odd, so that it falls on every part of a tick.
    let before = Duration::from_micros(1_000 * call.before_ms + 137 * (turn as u64 % 8));
    std::thread::sleep(before);
    let began = Instant::now();
    agent.abort();
    block_on(running).unwrap().unwrap();
    let ended = *ended.0.lock().unwrap();
    ended.unwrap().duration_since(began)
}

#[derive(Default)]
struct Ended(Mutex<Option<Instant>>);

impl Observer for Ended {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        if let Event::ToolExecutionEnd { end, .. } = event {
            *self.0.lock().unwrap() = Some(Instant::now());
            assert_eq!(end.ended_by.as_deref(), Some("aborted"), "{:?}", end.result);
        }
        Box::pin(std::future::ready(()))
    }
}

/// A server that takes connections and never says anything.
fn on_the_network(sandbox: &Sandbox, effort: Effort) -> Vec<Row> {
    let Some(path) = sample("fetch") else {
        eprintln!("left out: fetch is not built (cargo xtask guests)");
        return Vec::new();
    };
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}/", silent.local_addr().unwrap());
    std::thread::spawn(move || {
        let _held: Vec<_> = silent.incoming().collect();
    });
    let mut grants = Grants::default();
    grants.add_pair(&format!("http=GET {origin}")).unwrap();
    let fetch = load_file(sandbox, &path, grants);
    let arguments = &json!({ "url": origin });
    let call = Call { plugin: &fetch, tool: "fetch", arguments, before_ms: 5 };
    aborted("waiting for the network", call, effort.times(200), 500.0)
}

fn overshoot(
    sandbox: &Sandbox,
    guest: &crate::guest::Guest,
    wall_ms: u64,
    times: usize,
) -> Quantity {
    let limits = Limits { wall_ms, memory_mib: MEMORY_MIB, ..Limits::default() };
    let plugin = load(sandbox, guest, limits);
    let mut samples = Samples::default();
    for _ in 0..times {
        let began = Instant::now();
        let call = plugin.call_tool("run", "{}", Progress::default(), AbortSignal::new());
        let outcome = block_on(call);
        let took = began.elapsed();
        assert_eq!(outcome.answer.unwrap_err().ended_by, "time-limit");
        samples.push(took.saturating_sub(Duration::from_millis(wall_ms)));
    }
    samples.percentile(99.0)
}
