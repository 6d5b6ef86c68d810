//! Compiling a component, on a thread of its own with a stack of a known size.
//!
//! Nothing can interrupt the compiler. Its input is bounded in size, and in the size of its
//! largest function; a compilation that takes longer than the limit is left behind.

use crate::engine::Sandbox;
use crate::error::LoadError;
use crate::text::visible;
use std::time::Duration;
use tokio::sync::oneshot;
use wasmtime::Engine;
use wasmtime::component::Component;

const STACK_BYTES: usize = 16 << 20;

/// Compiles a component for an engine.
pub(crate) async fn compile(
    sandbox: &Sandbox,
    engine: &Engine,
    bytes: Vec<u8>,
    seconds_max: u64,
) -> Result<Component, LoadError> {
    let (sender, receiver) = oneshot::channel();
    let engine = engine.clone();
    std::thread::Builder::new()
        .name("cofferdam-compile".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // Nobody waits any more if this fails.
            let _ = sender.send(Component::from_binary(&engine, &bytes));
        })
        .map_err(|error| {
            LoadError::Sandbox(format!("start a thread to compile the plugin: {error}"))
        })?;
    // The timer is the sandbox's own, so that any executor may poll this.
    let waited = sandbox
        .runtime()
        .spawn(
            async move { tokio::time::timeout(Duration::from_secs(seconds_max), receiver).await },
        )
        .await;
    match waited {
        Ok(Ok(Ok(compiled))) => {
            compiled.map_err(|error| LoadError::Compile(visible(&format!("{error:#}"), 500)))
        }
        Ok(Ok(Err(_))) => Err(LoadError::Compile("the compiler gave up on it".into())),
        Ok(Err(_)) => Err(LoadError::CompileTime(seconds_max)),
        Err(error) => Err(LoadError::Sandbox(format!("wait for the compiler: {error}"))),
    }
}
