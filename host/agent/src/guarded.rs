//! Panics of what an embedder plugs in, caught where they cost one call and not the run.

use futures::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs something to its end; a panic becomes its message, also one before there is a future.
pub(crate) async fn guarded<F: Future>(begin: impl FnOnce() -> F) -> Result<F::Output, String> {
    AssertUnwindSafe(async { begin().await }).catch_unwind().await.map_err(|panic| message(&*panic))
}

pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic without a message".to_owned()
    }
}
