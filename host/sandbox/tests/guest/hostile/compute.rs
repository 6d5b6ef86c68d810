//! Guests that compute, wait or crash.

use super::{End, FAST, Hostile, LOOP, TIME, hostile};
use crate::guest::Guest;
use crate::guest::imports::{with_cancellation, with_clock};

const NO_FUEL: &[&str] = &["wall_ms=300", "fuel=off"];

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hostile("loop", "Computes for ever.", Guest::call(LOOP), TIME).limits(FAST),
        hostile("loop-uncounted", "Computes for ever, without fuel.", Guest::call(LOOP), TIME).limits(NO_FUEL),
        hostile("loop-fuel", "Computes until its fuel is used up.", Guest::call(LOOP),
            End::Call("fuel-limit", "used up its fuel of 1000000")).limits(&["fuel=1000000"]),
        hostile("start-loop", "Computes for ever in its start function.",
            Guest { functions: "(func $forever (loop $again (br $again))) (start $forever)", ..Guest::default() },
            End::Load("stopped after 300 ms")).limits(FAST),
        hostile("start-trap", "Crashes in its start function.",
            Guest { functions: "(func $crash unreachable) (start $crash)", ..Guest::default() }, End::Load("the plugin crashed")),
        hostile("list-loop", "Computes for ever when asked for its tools.",
            Guest { list: "(loop $again (br $again))", ..Guest::default() }, End::Load("stopped after 300 ms")).limits(FAST),
        hostile("list-trap", "Crashes when asked for its tools.",
            Guest { list: "unreachable", ..Guest::default() }, End::Load("crashed")),
        hostile("realloc-loop", "Computes for ever in its allocator, while the host hands over the arguments.",
            Guest { realloc: "(loop $again (br $again))", ..Guest::default() }, TIME).limits(FAST),
        hostile("post-loop", "Answers, and then computes for ever in its post-return function.",
            Guest { functions: "(func (export \"after\") (param i32) (loop $again (br $again)))",
                lift: " (post-return (core func $plugin \"after\"))", ..Guest::default() }, TIME).limits(FAST),
        hostile("post-trap", "Answers, and then crashes in its post-return function.",
            Guest { functions: "(func (export \"after\") (param i32) unreachable)",
                lift: " (post-return (core func $plugin \"after\"))", ..Guest::default() }, End::Call("trap", "crashed")),
        hostile("sleep", "Waits for 100 seconds.",
            with_clock(Guest::call("(call $block (call $after (i64.const 100000000000))) unreachable")), TIME).limits(FAST),
        hostile("sleep-ages", "Waits for 584 years.",
            with_clock(Guest::call("(call $block (call $after (i64.const -1))) unreachable")), TIME).limits(FAST),
        hostile("sleep-often", "Waits for a microsecond, again and again.",
            with_clock(Guest::call("(local $p i32) (loop $again
        (local.set $p (call $after (i64.const 1000))) (call $block (local.get $p)) (call $drop (local.get $p))
        (br $again)) unreachable")), TIME).limits(FAST),
        hostile("cancel-deaf", "Asks whether it was cancelled, and goes on regardless.",
            with_cancellation(Guest::call("(loop $again (drop (call $is-cancelled)) (br $again)) unreachable")), TIME).limits(FAST),
        hostile("fill-loop", "Fills the whole of its memory, again and again: no instruction between can be interrupted.",
            Guest::call("(drop (memory.grow (i32.const 1000)))
      (loop $again
        (memory.fill (i32.const 65536) (i32.const 7) (i32.const 65536000))
        (br $again))
      unreachable"), TIME).limits(FAST),
        hostile("copy-loop", "Moves half of its memory over the other half, again and again.",
            Guest::call("(drop (memory.grow (i32.const 1000)))
      (loop $again
        (memory.copy (i32.const 65536) (i32.const 32833536) (i32.const 32768000))
        (br $again))
      unreachable"), TIME).limits(FAST),
        hostile("stack-bomb", "Calls itself without end.",
            Guest { functions: "(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))",
                call: "(call $deeper (i32.const 0))", ..Guest::default() },
            End::Call("trap", "ran out of stack")),
        hostile("unreachable", "Crashes.", Guest::call("unreachable"), End::Call("trap", "the plugin crashed")),
        hostile("wild-load", "Reads outside of its memory.",
            Guest::call("(i32.load (i32.const -8))"), End::Call("trap", "out of bounds")),
        hostile("wild-call", "Calls a function that is not there.",
            Guest { functions: "(type $any (func (result i32))) (table $t 1 funcref)",
                call: "(call_indirect $t (type $any) (i32.const 0))", ..Guest::default() },
            End::Call("trap", "the plugin crashed")),
        hostile("divide", "Divides by zero.",
            Guest::call("(i32.div_u (i32.const 1) (i32.const 0))"), End::Call("trap", "divide by zero")),
        hostile("fuel-then-trap", "Computes for a while and crashes.",
            Guest::call("(local $n i32) (loop $again
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 100000)))) unreachable"), End::Call("trap", "crashed")),
        hostile("trap-sometimes", "Crashes if its arguments hold a number above zero, and answers otherwise.",
            Guest::call("(if (call $number (local.get $args) (local.get $args-size)) (then unreachable))
      (call $answer (local.get $args) (local.get $args-size))"), End::Answer("")),
    ]
}
