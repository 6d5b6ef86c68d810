//! The one macro that makes a plugin out of functions. What it writes does nothing but call
//! `dispatch`.

/// Exports a plugin: any of these parts, each at most once, in any order.
///
/// | part | value | is asked |
/// |---|---|---|
/// | `tools` | an array or `Vec` of [`Tool`](crate::Tool) | what tools there are, and to run one |
/// | `prepare` | `fn(tool: &str, arguments: Value) -> Result<Value>` | to repair the arguments of the plugin's own tools, before they are validated |
/// | `before` | `fn(&HookedCall) -> Result<Verdict>` | what shall become of a call |
/// | `after` | `fn(&HookedCall, &Outcome) -> Result<Amendment>` | what to change about a result |
///
/// ```
/// use cofferdam_plugin::{HookedCall, Result, Verdict, export};
///
/// fn curfew(call: &HookedCall) -> Result<Verdict> {
///     Ok(match call.tool.as_str() {
///         "shell" => Verdict::block("no shell tonight; read_file is fine"),
///         _ => Verdict::Proceed,
///     })
/// }
///
/// export! { before: curfew }
/// ```
#[macro_export]
macro_rules! export {
    ($($part:ident: $value:expr),+ $(,)?) => {
        const _: () = {
            // The type that stands for this plugin in the bindings.
            struct Plugin;
            // Keeps all that the parts name alive for the compiler where nothing is exported.
            #[allow(dead_code)]
            fn plugin() -> Plugin {
                Plugin
            }
            $($crate::__export_part! { $part: $value })+
        };
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __export_part {
    (tools: $tools:expr) => {
        impl $crate::contract::tools::interface::Guest for Plugin {
            fn list_tools() -> ::std::vec::Vec<$crate::contract::tools::interface::Tool> {
                $crate::dispatch::list_tools($tools)
            }
            fn call_tool(
                call: $crate::contract::imports::types::ToolCall,
            ) -> ::std::result::Result<
                $crate::contract::imports::types::ToolResult,
                $crate::contract::imports::types::Failure,
            > {
                $crate::dispatch::call_tool($tools, call)
            }
        }
        // Elsewhere the names of the exports would upset the linker, and nobody would call them.
        #[cfg(target_family = "wasm")]
        $crate::contract::tools::export!(Plugin with_types_in $crate::contract::tools);
    };
    (prepare: $prepare:expr) => {
        impl $crate::contract::preparation::interface::Guest for Plugin {
            fn prepare_arguments(
                tool: ::std::string::String,
                arguments: ::std::string::String,
            ) -> ::std::result::Result<::std::string::String, ::std::string::String> {
                $crate::dispatch::prepare($prepare, tool, arguments)
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::contract::preparation::export!(Plugin with_types_in $crate::contract::preparation);
    };
    (before: $before:expr) => {
        impl $crate::contract::before::interface::Guest for Plugin {
            fn before(
                call: $crate::contract::imports::types::ToolCall,
                context: $crate::contract::imports::types::HookContext,
            ) -> ::std::result::Result<
                $crate::contract::before::interface::Verdict,
                ::std::string::String,
            > {
                $crate::dispatch::before($before, call, context)
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::contract::before::export!(Plugin with_types_in $crate::contract::before);
    };
    (after: $after:expr) => {
        impl $crate::contract::after::interface::Guest for Plugin {
            fn after(
                call: $crate::contract::imports::types::ToolCall,
                outcome: $crate::contract::after::interface::Outcome,
                context: $crate::contract::imports::types::HookContext,
            ) -> ::std::result::Result<
                $crate::contract::after::interface::Amendment,
                ::std::string::String,
            > {
                $crate::dispatch::after($after, call, outcome, context)
            }
        }
        #[cfg(target_family = "wasm")]
        $crate::contract::after::export!(Plugin with_types_in $crate::contract::after);
    };
    ($part:ident: $value:expr) => {
        ::std::compile_error!(::std::concat!(
            "no part of a plugin: ", ::std::stringify!($part),
            "; there are tools, prepare, before, after"
        ));
    };
}
