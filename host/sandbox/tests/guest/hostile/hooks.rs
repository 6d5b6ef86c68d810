//! Guests that are hooks, and have their say in a way that no host should take.

use super::{End, FAST, Hostile, LOOP, hostile_text};
use crate::guest::Guest;
use crate::guest::hooks::Hooks;
use crate::guest::imports::with_progress;

const TIME: &str = "stopped after 300 ms (limit wall_ms)";

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hook("hook-before-loop", "Computes for ever before a call.", Hooks::before(LOOP), End::Before("failure", TIME)).limits(FAST),
        hook("hook-before-trap", "Crashes before a call.", Hooks::before("unreachable"), End::Before("failure", "crashed")),
        hook("hook-before-progress", "Reports progress before a call, where nobody may, and lets it go on.",
            Hooks { parts: progress(), before: "(call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 1024)", ..Hooks::default() },
            End::Before("proceed", "")),
        hook("hook-before-progress-flood", "Reports progress before a call for ever.",
            Hooks { parts: progress(), before: "(loop $again (call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (br $again)) unreachable", ..Hooks::default() },
            End::Before("failure", "stopped after 50 progress reports")).limits(&["progress_count=50"]),
        hook("hook-rewrite-deep", "Rewrites arguments to JSON that is nested a hundred thousand deep.",
            Hooks::before("(drop (memory.grow (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 91) (i32.const 100000))
      (call $verdict (i32.const 1) (i32.const 65536) (i32.const 100000))"), End::Before("failure", "nested more than 128 levels")),
        hook("hook-rewrite-list", "Rewrites arguments to a list.",
            Hooks { parts: data("[1]"), before: "(call $verdict (i32.const 1) (i32.const 3000) (i32.const 3))", ..Hooks::default() },
            End::Before("failure", "no JSON object")),
        hook("hook-rewrite-twice", "Rewrites arguments to an object that has the same field twice.",
            Hooks { parts: data("{\\22a\\22:1,\\22a\\22:2}"), before: "(call $verdict (i32.const 1) (i32.const 3000) (i32.const 13))", ..Hooks::default() },
            End::Before("rewrite", "{\"a\":2}")),
        hook("hook-reason-long", "Blocks a call for a reason of a megabyte.",
            Hooks::before("(drop (memory.grow (i32.const 20)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1000000))
      (call $verdict (i32.const 2) (i32.const 65536) (i32.const 1000000))"),
            End::Before("block", "cut by the host: the first 7168 of 1000000 bytes")).limits(&["result_kib=7"]),
        hook("hook-ask-escapes", "Asks a person a question that drives a terminal.",
            Hooks { parts: data("\\1b[2J\\1b]0;owned\\07"), before: "(call $verdict (i32.const 3) (i32.const 3000) (i32.const 14))", ..Hooks::default() },
            End::Before("ask", "owned")),
        hook("hook-verdict-odd", "Answers with a verdict that does not exist.",
            Hooks::before("(call $verdict (i32.const 9) (i32.const 0) (i32.const 0))"), End::Before("failure", "broke its contract")),
        hook("hook-after-loop", "Computes for ever after a call.", Hooks::after(LOOP), End::After("failure", TIME)).limits(FAST),
        hook("hook-after-trap", "Crashes after a call.", Hooks::after("unreachable"), End::After("failure", "crashed")),
        hook("hook-after-long", "Replaces a result by a megabyte.",
            Hooks::after("(drop (memory.grow (i32.const 20)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1000000))
      (call $content (i32.const 65536) (i32.const 1000000))"),
            End::After("amend", "cut by the host: the first 7168 of 1000000 bytes")).limits(&["result_kib=7"]),
        hook("hook-after-details-deep", "Replaces the details of a result by JSON that is nested a hundred thousand deep.",
            Hooks::after("(drop (memory.grow (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 91) (i32.const 100000))
      (i32.store8 (i32.const 1040) (i32.const 1))
      (i32.store (i32.const 1044) (i32.const 65536)) (i32.store (i32.const 1048) (i32.const 100000))
      (i32.const 1024)"), End::After("failure", "nested more than 128 levels")),
    ]
}

fn hook(name: &'static str, does: &'static str, hooks: Hooks, end: End) -> Hostile {
    hostile_text(name, does, hooks.text(), end)
}

fn progress() -> Guest {
    with_progress(Guest::default())
}

/// A guest with these bytes at 3000.
fn data(bytes: &str) -> Guest {
    let functions = crate::guest::leak(format!("(data (i32.const 3000) \"{bytes}\")"));
    Guest { functions, ..Guest::default() }
}
