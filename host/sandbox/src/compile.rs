//! Compiling a component: in a process of its own where the embedder offers one, else on a thread.
//!
//! Nothing can interrupt the compiler. A process is killed when its time is over and takes its
//! memory along; a thread is left behind. In both cases the input is bounded in size and in the size
//! of its largest function, and the product in size.

mod child;

pub use child::{CompilerCommand, serve_compiler};

use crate::engine::Sandbox;
use crate::error::LoadError;
use crate::limits::Limits;
use crate::plugin::within_compiled;
use crate::text::visible;
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::sync::oneshot;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Deep nesting in a component is deep recursion in the compiler.
const STACK_BYTES: usize = 16 << 20;

/// Compiled code that this process, or its child, has just made.
pub(crate) enum Artifact {
    Bytes(Vec<u8>),
    File(NamedTempFile),
}

/// Compiles a component for an engine that counts fuel, or for one that does not.
pub(crate) async fn compile(
    sandbox: &Sandbox,
    engine: &Engine,
    bytes: Vec<u8>,
    limits: &Limits,
) -> Result<Artifact, LoadError> {
    let work = match &sandbox.config().compiler {
        Some(command) => {
            let request = child::Request::new(sandbox.config(), limits);
            child::compile(command.clone(), request, bytes)
        }
        None => on_a_thread(engine.clone(), bytes),
    };
    // The timer is the sandbox's own, so that any executor may poll this.
    let seconds_max = limits.compile_seconds;
    let work = OnDrop(sandbox.runtime().spawn(async move {
        match tokio::time::timeout(Duration::from_secs(seconds_max), work).await {
            Ok(compiled) => compiled,
            Err(_) => Err(LoadError::CompileTime(seconds_max)),
        }
    }));
    let artifact = work
        .await
        .map_err(|error| LoadError::Sandbox(format!("wait for the compiler: {error}")))??;
    within_compiled(artifact.size(), limits)?;
    Ok(artifact)
}

type Work = futures::future::BoxFuture<'static, Result<Artifact, LoadError>>;

/// A task that ends with whoever waits for it.
struct OnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Future for OnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for OnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn on_a_thread(engine: Engine, bytes: Vec<u8>) -> Work {
    Box::pin(async move {
        let (sender, receiver) = oneshot::channel();
        with_stack(move || {
            // Nobody waits any more if this fails.
            let _ = sender.send(engine.precompile_component(&bytes));
        })
        .map_err(|error| {
            LoadError::Sandbox(format!("start a thread to compile the plugin: {error}"))
        })?;
        match receiver.await {
            Ok(Ok(code)) => Ok(Artifact::Bytes(code)),
            Ok(Err(error)) => Err(refused(&format!("{error:#}"))),
            Err(_) => Err(LoadError::Compile("the compiler gave up on it".into())),
        }
    })
}

fn with_stack(
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("cofferdam-compile".into()).stack_size(STACK_BYTES).spawn(work)
}

fn refused(problem: &str) -> LoadError {
    const OFF: [&str; 3] = ["not enabled", "must be enabled", " feature (at"];
    let mut told = visible(problem, 500);
    if OFF.iter().any(|part| problem.contains(part)) {
        told.push_str(
            "; this host takes no async, threads, exceptions, garbage collection or 64-bit memory: build it without \
             them, for WASI 0.2",
        );
    }
    LoadError::Compile(told)
}

impl Artifact {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.as_file().metadata().map_or(0, |found| found.len()),
        }
    }

    /// The component of this code.
    #[expect(unsafe_code, reason = "compiled code is trusted like the host itself")]
    pub(crate) fn load(&self, engine: &Engine) -> Result<Component, LoadError> {
        match self {
            // SAFETY: the bytes are what the compiler in this process has just answered.
            Self::Bytes(bytes) => unsafe { Component::deserialize(engine, bytes) }
                .map_err(|error| LoadError::Sandbox(format!("load the compiled code: {error:#}"))),
            Self::File(file) => map(engine, file.path()),
        }
    }
}

/// The component of a file of compiled code, mapped and not copied. The file comes from this
/// process, its child, or the cache, which vouches for it.
#[expect(unsafe_code, reason = "compiled code is trusted like the host itself")]
pub(crate) fn map(engine: &Engine, code: &Path) -> Result<Component, LoadError> {
    // SAFETY: the file was made by the engine's compiler on behalf of this user, lies in a folder or
    // is a file that only this user can write to, and is replaced as a whole and never changed in
    // place.
    unsafe { Component::deserialize_file(engine, code) }
        // A folder may lie on a file system whose files must not be run.
        .or_else(|_| unsafe { Component::deserialize(engine, std::fs::read(code)?) })
        .map_err(|error| LoadError::Sandbox(format!("map the compiled code: {error:#}")))
}

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn what_is_switched_off_is_told_with_what_to_do() {
        for problem in [
            "`backpressure.inc` requires the component model async feature (at offset 0x5b5)",
            "async component functions require the component model async feature (at offset 0x157)",
            "exceptions proposal not enabled (at offset 0x147)",
            "threads must be enabled for shared memories",
        ] {
            assert!(refused(problem).to_string().ends_with("for WASI 0.2"), "{problem}");
        }
        assert!(!refused("type mismatch").to_string().contains("WASI"));
    }
}
