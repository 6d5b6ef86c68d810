//! x
use cofferdam_plugin::{Deserialize, JsonSchema, Result, export, tool};

/// Arguments.
#[derive(Deserialize, JsonSchema)]
pub struct Nap {
    /// Milliseconds.
    ms: Option<u64>,
}

fn nap(args: Nap) -> Result<String> {
    std::thread::sleep(std::time::Duration::from_millis(args.ms.unwrap_or(100_000)));
    Ok("done".into())
}

export! { tools: [tool("nap", "naps", nap)] }
