//! What the host offers, behind one set of functions: the real imports in a component, a local
//! stand-in of the same shape elsewhere, so that a plugin's tests run as plain `cargo test`.

#[cfg(target_family = "wasm")]
mod component;
#[cfg(not(target_family = "wasm"))]
pub(crate) mod local;

#[cfg(target_family = "wasm")]
pub(crate) use component::*;
#[cfg(not(target_family = "wasm"))]
pub(crate) use local::*;
