//! What must hold for whatever bytes come from outside: one function each, which panics if it does
//! not.
//!
//! The same functions are fuzz targets (`tests/fuzz/fuzz_targets`) and tests of every build
//! (`tests/properties.rs`, with [`drive`]). A file in `tests/fuzz/corpus/NAME` is an input of the
//! property `NAME`; what a fuzzer has found is kept there.

mod answers;
mod arguments;
mod config;
pub mod drive;
mod grants;
mod plugin;
mod secrets;
mod sessions;
mod texts;
mod transcript;

/// A property of bytes.
pub type Property = fn(&[u8]);

/// Calls a macro with the name of every property.
#[macro_export]
macro_rules! for_each_property {
    ($each:ident) => {
        $each! {
            address
            answer
            argument_text
            config
            declarations
            grants
            guest_json
            http
            http_grammar
            inspect
            key_value
            limits
            mask
            mask_pieces
            preview
            replay
            schema
            script
            session
            text
            wat
        }
    };
}

pub use answers::answer;
pub use arguments::{argument_text, guest_json, preview, schema};
pub use config::{config, limits, script};
pub use grants::{address, grants, http, http_grammar};
pub use plugin::{declarations, inspect, key_value, wat};
pub use secrets::{mask, mask_pieces};
pub use sessions::session;
pub use texts::text;
pub use transcript::replay;

macro_rules! table {
    ($($name:ident)+) => {
        /// Every property with its name.
        pub const ALL: &[(&str, Property)] = &[$((stringify!($name), $name),)+];
    };
}

for_each_property!(table);
