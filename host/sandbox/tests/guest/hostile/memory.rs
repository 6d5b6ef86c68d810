//! Guests that want more memory, tables, instances or resources than they may have.

use super::{End, FAST, Hostile, hostile, hostile_text};
use crate::guest::Guest;
use crate::guest::imports::with_clock;

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hostile("memory-bomb", "Grows its memory until it is refused, and then crashes.",
            Guest::call("(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable"),
            End::Call("memory-limit", "memory limit of 7 MiB reached")).limits(&["memory_mib=7"]),
        hostile("memory-bomb-quiet", "Grows its memory until it is refused, and then answers.",
            Guest::call("(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))
      (call $answer (local.get $args) (local.get $args-size))"), End::Answer("")),
        hostile("memory-bomb-start", "Grows its memory to the limit in its start function, and crashes.",
            Guest { functions: "(func $bomb (loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable) (start $bomb)",
                ..Guest::default() },
            End::Load("memory limit of 64 MiB reached")),
        hostile("memory-touch", "Grows its memory to the limit and writes to every page of it, again and again.",
            Guest { functions: GROW_AND_TOUCH, call: "(call $touch) unreachable", ..Guest::default() },
            End::Call("time-limit", "")).limits(FAST),
        hostile("memory-start", "Needs more memory than it may have before it runs.",
            Guest { pages: 1025, ..Guest::default() }, End::Load("limits.memory_mib")),
        hostile_text("memory-many", "Has fifty memories.", module("(memory 1)".repeat(50)), End::Load("")),
        hostile_text("memory-64", "Has a memory of 64-bit addresses.", module("(memory i64 1)".into()), End::Load("compile the plugin")),
        hostile_text("memory-shared", "Has a memory that threads share.", module("(memory 1 1 shared)".into()), End::Load("compile the plugin")),
        hostile_text("memory-data-outside", "Has initial data beyond the end of its memory.",
            module("(memory 1) (data (i32.const 65530) \"too long for the page\")".into()), End::Load("out of bounds")),
        hostile("table-bomb", "Grows a table until it is refused, and then crashes.",
            Guest { functions: "(table $t 1 funcref)",
                call: "(loop $again (br_if $again (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000))))) unreachable",
                ..Guest::default() },
            End::Call("memory-limit", "table limit of 20000 elements")),
        hostile_text("table-start", "Needs a table of ten million elements before it runs.",
            module("(table 10000000 funcref)".into()), End::Load("")),
        hostile_text("table-many", "Has fifty tables.", module("(table 1 funcref)".repeat(50)), End::Load("tables")),
        hostile_text("instances-many", "Has a thousand core instances.",
            component(&format!("(core module $m) {}", "(core instance (instantiate $m))".repeat(1_000))), End::Load("")),
        hostile("resource-bomb", "Opens resources and never closes one.",
            with_clock(Guest::call("(loop $again (drop (call $after (i64.const 1))) (br $again)) unreachable")),
            End::Call("memory-limit", "more than 100 resources")).limits(&["resources=100"]),
        hostile("resource-forged", "Waits for a resource that it made up.",
            with_clock(Guest::call("(call $block (i32.const 77)) unreachable")), End::Call("trap", "broke its contract")),
        hostile("resource-twice", "Closes a resource twice.",
            with_clock(Guest::call("(local $p i32) (local.set $p (call $after (i64.const 1)))
      (call $drop (local.get $p)) (call $drop (local.get $p)) unreachable")), End::Call("trap", "broke its contract")),
    ]
}

const GROW_AND_TOUCH: &str = "(func $touch (local $at i32)
      (loop $more (br_if $more (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))
      (loop $again
        (i32.store8 (local.get $at) (i32.const 1))
        (local.set $at (i32.add (local.get $at) (i32.const 4096)))
        (if (i32.ge_u (local.get $at) (i32.shl (memory.size) (i32.const 16))) (then (local.set $at (i32.const 0))))
        (br $again)))";

/// A guest that answers, with one more core module that has these parts.
fn module(parts: String) -> String {
    component(&format!("(core module $more {parts})\n  (core instance (instantiate $more))"))
}

/// A guest that answers, with these definitions more.
fn component(parts: &str) -> String {
    let imports = crate::guest::leak(parts.to_owned());
    Guest { imports, ..Guest::default() }.text()
}
