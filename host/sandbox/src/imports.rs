//! What an embedder offers plugins beside the contract: interfaces of its own, whose functions take
//! a text and answer with one. The embedder needs to know nothing of the engine.

use crate::inspect::is_ours;
use crate::state::State;
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use wasmtime::component::Linker;

/// An interface that an embedder offers to all plugins of a sandbox. Each function is, in WIT,
/// `func(text: string) -> result<string, string>`.
///
/// A plugin that imports the interface is loaded by this sandbox and by no other. The functions can
/// be called while the plugin lists its tools as well, before any grant applies: what they may do
/// for whom is the embedder's to decide.
///
/// ```
/// use cofferdam_sandbox::{HostImport, Sandbox, SandboxConfig};
///
/// let weather = HostImport::new("acme:weather/forecast@1.0.0")
///     .function("read", |caller, city| async move {
///         match city.as_str() {
///             "Oslo" => Ok(format!("rain, {} is told", caller.plugin)),
///             _ => Err(format!("no forecast for {city}")),
///         }
///     });
/// let config = SandboxConfig { imports: vec![weather], ..SandboxConfig::default() };
/// let sandbox = Sandbox::new(config)?;
/// # Ok::<(), cofferdam_sandbox::SandboxError>(())
/// ```
#[derive(Clone)]
pub struct HostImport {
    interface: String,
    functions: Vec<(String, Function)>,
}

type Function =
    Arc<dyn Fn(Caller, String) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Who calls an embedder's function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The operator's name of the plugin.
    pub plugin: Arc<str>,
    /// The call that the plugin serves; none where it lists its tools or repairs arguments.
    pub call_id: Option<Arc<str>>,
}

impl HostImport {
    /// An interface by its full name, such as `acme:weather/forecast@1.0.0`. The contract's own
    /// interfaces and those of WASI cannot be replaced.
    pub fn new(interface: impl Into<String>) -> Self {
        Self { interface: interface.into(), functions: Vec::new() }
    }

    /// Adds a function. Its future runs within the call of the plugin: it counts as the call's wall
    /// time, and is dropped if the call is aborted or runs out of time.
    #[must_use]
    pub fn function<F, A>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Caller, String) -> A + Send + Sync + 'static,
        A: Future<Output = Result<String, String>> + Send + 'static,
    {
        let function: Function = Arc::new(move |caller, text| Box::pin(function(caller, text)));
        self.functions.push((name.into(), function));
        self
    }

    /// The full name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Why the interface cannot be offered, if it cannot.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let name = &self.interface;
        if !name.split_once('/').is_some_and(|(package, _)| package.contains(':')) {
            return Some("it is not of the form `package:name/interface@version`");
        }
        is_ours(name).then_some("the contract and WASI are the host's own")
    }

    /// Offers the functions to what is instantiated with this linker.
    pub(crate) fn link(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&self.interface)?;
        for (name, function) in &self.functions {
            let function = function.clone();
            instance.func_wrap_async(name, move |mut store, (text,): (String,)| {
                let state: &mut State = store.data_mut();
                state.receipt.host_calls.embedder.add(text.len());
                let text = crate::mask::text(&text, &state.terms.secrets).into_owned();
                let answer = function(state.caller(), text);
                Box::new(async move {
                    let answer = answer.await;
                    let bytes = answer.as_ref().map_or_else(String::len, String::len);
                    store.data_mut().receipt.host_calls.embedder.bytes += bytes as u64;
                    Ok((answer,))
                })
            })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HostImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let functions: Vec<&str> = self.functions.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HostImport")
            .field("interface", &self.interface)
            .field("functions", &functions)
            .finish()
    }
}
