//! The hostile guests: one bad behaviour each. `tests/guests/hostile/*.wat` are made from this list
//! and can be run by any host of the contract.

use super::Guest;
use super::imports::{
    with_cancellation, with_clock, with_exit, with_log, with_progress, with_random, with_stdio,
};

/// A hostile guest and what becomes of it.
pub(crate) struct Hostile {
    /// The name of its file.
    pub(crate) name: &'static str,
    /// What it does, in a sentence.
    pub(crate) does: &'static str,
    /// The guest.
    pub(crate) guest: Guest,
    /// Limits in force, as `KEY=VALUE`.
    pub(crate) limits: &'static [&'static str],
    /// How it ends.
    pub(crate) end: End,
}

/// How a hostile guest ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The plugin is not loaded, with these words.
    Load(&'static str),
    /// Its call fails: what ended it, and a part of the message.
    Call(&'static str, &'static str),
    /// Its call answers.
    Answer,
    /// Its tool is refused, with these words.
    Tool(&'static str),
}

const FAST: &[&str] = &["wall_ms=100"];
const NO_FUEL: &[&str] = &["wall_ms=100", "fuel=off"];
const LOOP: &str = "(loop $again (br $again)) unreachable";
const TIME: End = End::Call("time-limit", "stopped after 100 ms (limit wall_ms)");

fn hostile(
    name: &'static str,
    does: &'static str,
    guest: Guest,
    limits: &'static [&'static str],
    end: End,
) -> Hostile {
    Hostile { name, does, guest, limits, end }
}

/// All of them.
#[rustfmt::skip]
pub(crate) fn all() -> Vec<Hostile> {
    vec![
        hostile("loop", "Computes for ever.", Guest::call(LOOP), FAST, TIME),
        hostile("loop-uncounted", "Computes for ever, without fuel.", Guest::call(LOOP), NO_FUEL, TIME),
        hostile("loop-fuel", "Computes until its fuel is used up.", Guest::call(LOOP), &["fuel=1000000"],
            End::Call("fuel-limit", "used up its fuel of 1000000")),
        hostile("start-loop", "Computes for ever in its start function.",
            Guest { functions: "(func $forever (loop $again (br $again))) (start $forever)", ..Guest::default() },
            FAST, End::Load("stopped after 100 ms")),
        hostile("list-loop", "Computes for ever when asked for its tools.",
            Guest { list: "(loop $again (br $again))", ..Guest::default() }, FAST, End::Load("stopped after 100 ms")),
        hostile("list-trap", "Crashes when asked for its tools.",
            Guest { list: "unreachable", ..Guest::default() }, FAST, End::Load("crashed")),
        hostile("realloc-loop", "Computes for ever in its allocator, while the host hands over the arguments.",
            Guest { realloc: "(loop $again (br $again))", ..Guest::default() }, FAST, TIME),
        hostile("realloc-wild", "Hands out memory that it does not have.",
            Guest { realloc: "(return (i32.const 0x7ffffff8))", ..Guest::default() }, FAST, End::Call("trap", "")),
        hostile("sleep", "Waits for 100 seconds.",
            with_clock(Guest::call("(call $block (call $after (i64.const 100000000000))) unreachable")), FAST, TIME),
        hostile("fill-loop", "Fills the whole of its memory, again and again: no instruction between can be interrupted.",
            Guest::call("(drop (memory.grow (i32.const 1000)))
      (loop $again
        (memory.fill (i32.const 65536) (i32.const 7) (i32.const 65536000))
        (br $again))
      unreachable"), FAST, TIME),
        hostile("memory-bomb", "Grows its memory until it is refused, and then crashes.",
            Guest::call("(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16))))) unreachable"),
            &["wall_ms=10000", "memory_mib=7"], End::Call("memory-limit", "memory limit of 7 MiB reached")),
        hostile("memory-bomb-quiet", "Grows its memory until it is refused, and then answers.",
            Guest::call("(loop $again (br_if $again (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))
      (call $answer (local.get $args) (local.get $args-size))"), &["wall_ms=10000"], End::Answer),
        hostile("memory-start", "Needs more memory than it may have before it runs.",
            Guest { pages: 1025, ..Guest::default() }, FAST, End::Load("limits.memory_mib")),
        hostile("table-bomb", "Grows a table until it is refused, and then crashes.",
            Guest { functions: "(table $t 1 funcref)",
                call: "(loop $again (br_if $again (i32.ne (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000))))) unreachable",
                ..Guest::default() },
            FAST, End::Call("memory-limit", "table limit of 20000 elements")),
        hostile("resource-bomb", "Opens resources and never closes one.",
            with_clock(Guest::call("(loop $again (drop (call $after (i64.const 1))) (br $again)) unreachable")),
            &["wall_ms=10000", "resources=100"], End::Call("memory-limit", "more than 100 resources")),
        hostile("stack-bomb", "Calls itself without end.",
            Guest { functions: "(func $deeper (param i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get 0))))",
                call: "(call $deeper (i32.const 0))", ..Guest::default() },
            FAST, End::Call("trap", "ran out of stack")),
        hostile("list-claim", "Claims that its answer has 200 million parts.",
            Guest::call("(i32.store (i32.const 1132) (i32.const 0)) (i32.store (i32.const 1136) (i32.const 200000000)) (i32.const 1128)"),
            FAST, End::Call("trap", "")),
        hostile("answer-50mb", "Answers with 50 MB that end inside a character.",
            Guest::call("(drop (memory.grow (i32.const 800)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 50000000))
      (i32.store8 (i32.const 50065535) (i32.const 0xc3))
      (call $answer (i32.const 65536) (i32.const 50000000))"),
            &["wall_ms=10000"], End::Call("output-limit", "larger than 8 MiB (limit host_alloc_mib)")),
        hostile("answer-long", "Answers with a megabyte of two-byte characters.",
            Guest::call("(local $at i32)
      (drop (memory.grow (i32.const 20)))
      (local.set $at (i32.const 65536))
      (loop $again
        (i32.store (local.get $at) (i32.const 0xa9c3a9c3))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $again (i32.lt_u (local.get $at) (i32.const 1065536))))
      (call $answer (i32.const 65536) (i32.const 1000000))"),
            &["wall_ms=10000", "result_kib=1"], End::Answer),
        hostile("answer-garbage", "Answers with bytes that are no text.",
            Guest { functions: "(data (i32.const 3000) \"\\ff\\fe\\fd\")",
                call: "(call $answer (i32.const 3000) (i32.const 3))", ..Guest::default() },
            FAST, End::Call("trap", "broke its contract")),
        hostile("answer-wild", "Answers with a text outside of its memory.",
            Guest::call("(call $answer (i32.const -16) (i32.const 4096))"), FAST, End::Call("trap", "")),
        hostile("answer-odd", "Answers with a case that does not exist.",
            Guest::call("(i32.store8 (i32.const 1128) (i32.const 9)) (i32.const 1128)"), FAST, End::Call("trap", "broke its contract")),
        hostile("details-deep", "Answers with JSON that is nested a hundred thousand deep.",
            Guest::call("(drop (memory.grow (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 91) (i32.const 100000))
      (drop (call $answer (local.get $args) (local.get $args-size)))
      (i32.store8 (i32.const 1140) (i32.const 1))
      (i32.store (i32.const 1144) (i32.const 65536)) (i32.store (i32.const 1148) (i32.const 100000))
      (i32.const 1128)"),
            FAST, End::Call("failure", "its details are no JSON")),
        hostile("unreachable", "Crashes.", Guest::call("unreachable"), FAST, End::Call("trap", "the plugin crashed")),
        hostile("wild-load", "Reads outside of its memory.",
            Guest::call("(i32.load (i32.const -8))"), FAST, End::Call("trap", "out of bounds")),
        hostile("divide", "Divides by zero.",
            Guest::call("(i32.div_u (i32.const 1) (i32.const 0))"), FAST, End::Call("trap", "divide by zero")),
        hostile("fuel-then-trap", "Computes for a while and crashes.",
            Guest::call("(local $n i32) (loop $again
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 100000)))) unreachable"), FAST, End::Call("trap", "crashed")),
        hostile("trap-sometimes", "Crashes if its arguments hold a number above zero, and answers otherwise.",
            Guest::call("(if (call $number (local.get $args) (local.get $args-size)) (then unreachable))
      (call $answer (local.get $args) (local.get $args-size))"), FAST, End::Answer),
        hostile("exit-ok", "Leaves with success instead of answering.",
            with_exit(Guest::call("(call $exit (i32.const 0)) unreachable")), FAST, End::Call("exit", "exited with status 0")),
        hostile("exit-failed", "Leaves with failure instead of answering.",
            with_exit(Guest::call("(call $exit (i32.const 1)) unreachable")), FAST, End::Call("exit", "exited with status 1")),
        hostile("exit-list", "Leaves when asked for its tools.",
            with_exit(Guest { list: "(call $exit (i32.const 1))", ..Guest::default() }), FAST, End::Load("exited with status 1")),
        hostile("stdout-flood", "Writes to standard output for ever.",
            with_stdio(Guest::call("(local $s i32) (local.set $s (call $stdout))
      (loop $again (call $write (local.get $s) (i32.const 0) (i32.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            FAST, TIME),
        hostile("stderr-flood", "Writes to standard error for ever.",
            with_stdio(Guest::call("(local $s i32) (local.set $s (call $stderr))
      (loop $again (call $write (local.get $s) (i32.const 0) (i32.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            FAST, TIME),
        hostile("panic-garbage", "Writes bytes that are no text and terminal escapes to standard error, and crashes.",
            with_stdio(Guest { functions: "(data (i32.const 3000) \"thread 'x' panicked at src/lib.rs:1:2:\\0a\\ff\\fe\\1b[31mno such row\\0a\")",
                call: "(call $write (call $stderr) (i32.const 3000) (i32.const 58) (i32.const 1500)) unreachable", ..Guest::default() }),
            FAST, End::Call("trap", "\\u{1b}[31mno such row")),
        hostile("log-flood", "Logs for ever.",
            with_log(Guest::call("(loop $again (call $log (i32.const 1) (i32.const 2048) (i32.const 20)) (br $again)) unreachable")),
            FAST, TIME),
        hostile("progress-flood", "Reports progress for ever.",
            with_progress(Guest { functions: PROGRESS, call: "(loop $again (call $report (local.get $args) (local.get $args-size)) (br $again)) unreachable", ..Guest::default() }),
            &["wall_ms=10000"], End::Call("output-limit", "stopped after 10000 progress reports")),
        hostile("progress-list", "Reports progress when asked for its tools.",
            with_progress(Guest { functions: PROGRESS, list: "(call $report (i32.const 2048) (i32.const 3))", ..Guest::default() }),
            FAST, End::Answer),
        hostile("random-flood", "Asks for random bytes for ever.",
            with_random(Guest::call("(loop $again (call $random (i64.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            &["wall_ms=10000"], End::Call("output-limit", "limit random_kib")),
        hostile("random-claim", "Asks for eight exabytes of random bytes.",
            with_random(Guest::call("(call $random (i64.const 0x7fffffffffffffff) (i32.const 1500)) unreachable")),
            FAST, End::Call("output-limit", "limit random_kib")),
        hostile("cancel-deaf", "Asks whether it was cancelled, and goes on regardless.",
            with_cancellation(Guest::call("(loop $again (drop (call $is-cancelled)) (br $again)) unreachable")), FAST, TIME),
        hostile("name-bad", "Offers a tool whose name drives a terminal.",
            Guest { functions: "(data (i32.const 2048) \"\\1b[2\")", ..Guest::default() }, FAST, End::Tool("`\\u{1b}[2`")),
        hostile("schema-bad", "Offers a tool whose schema is no JSON.",
            Guest { functions: "(data (i32.const 2058) \"[[[[\")", ..Guest::default() }, FAST, End::Tool("its schema is no JSON")),
    ]
}

const PROGRESS: &str = "(func $report (param i32 i32)
      (i32.store offset=4 (i32.const 1300) (local.get 0)) (i32.store offset=8 (i32.const 1300) (local.get 1))
      (call $report-raw (i32.const 1300) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))";
