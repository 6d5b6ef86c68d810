//! Guests that make the host talk, write, fetch, keep and leave.

use super::{End, FAST, Hostile, TIME, hostile};
use crate::guest::Guest;
use crate::guest::imports::{
    with_exit, with_exit_code, with_http, with_key_value, with_log, with_progress, with_random,
    with_stdio, with_tcp,
};

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hostile("exit-ok", "Leaves with success instead of answering.",
            with_exit(Guest::call("(call $exit (i32.const 0)) unreachable")), End::Call("exit", "exited with status 0")),
        hostile("exit-failed", "Leaves with failure instead of answering.",
            with_exit(Guest::call("(call $exit (i32.const 1)) unreachable")), End::Call("exit", "exited with status 1")),
        hostile("exit-3", "Leaves with status 3 instead of answering.",
            with_exit_code(Guest::call("(call $exit (i32.const 3)) unreachable")), End::Call("exit", "exited with status 3")),
        hostile("exit-list", "Leaves when asked for its tools.",
            with_exit(Guest { list: "(call $exit (i32.const 1))", ..Guest::default() }), End::Load("exited with status 1")),
        hostile("exit-start", "Leaves in its start function.",
            with_exit(Guest { functions: "(func $leave (call $exit (i32.const 0))) (start $leave)", ..Guest::default() }), End::Load("exited with status 0")),
        hostile("stdout-flood", "Writes to standard output for ever.",
            with_stdio(Guest::call("(local $s i32) (local.set $s (call $stdout))
      (loop $again (call $write (local.get $s) (i32.const 0) (i32.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            TIME).limits(FAST),
        hostile("stderr-flood", "Writes to standard error for ever.",
            with_stdio(Guest::call("(local $s i32) (local.set $s (call $stderr))
      (loop $again (call $write (local.get $s) (i32.const 0) (i32.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            TIME).limits(FAST),
        hostile("stdout-long", "Writes more to standard output at once than the stream takes.",
            with_stdio(Guest::call("(drop (memory.grow (i32.const 20)))
      (call $write (call $stdout) (i32.const 0) (i32.const 1000000) (i32.const 1500)) unreachable")),
            End::Call("trap", "")),
        hostile("panic-garbage", "Writes bytes that are no text and terminal escapes to standard error, and crashes.",
            with_stdio(Guest { functions: "(data (i32.const 3000) \"thread 'x' panicked at src/lib.rs:1:2:\\0a\\ff\\fe\\1b[31mno such row\\0a\")",
                call: "(call $write (call $stderr) (i32.const 3000) (i32.const 58) (i32.const 1500)) unreachable", ..Guest::default() }),
            End::Call("trap", "\\u{1b}[31mno such row")),
        hostile("log-flood", "Logs for ever.",
            with_log(Guest::call("(loop $again (call $log (i32.const 1) (i32.const 2048) (i32.const 20)) (br $again)) unreachable")),
            TIME).limits(FAST),
        hostile("log-level", "Logs at a level that does not exist.",
            with_log(Guest::call("(call $log (i32.const 9) (i32.const 2048) (i32.const 20)) unreachable")),
            End::Call("trap", "broke its contract")),
        hostile("progress-flood", "Reports progress for ever.",
            with_progress(Guest { functions: PROGRESS, call: "(loop $again (call $report (local.get $args) (local.get $args-size)) (br $again)) unreachable", ..Guest::default() }),
            End::Call("output-limit", "stopped after 50 progress reports")).limits(&["progress_count=50"]),
        hostile("progress-huge", "Reports progress of a megabyte, again and again.",
            with_progress(Guest { functions: PROGRESS, call: "(drop (memory.grow (i32.const 20)))
      (loop $again (call $report (i32.const 8192) (i32.const 1000000)) (br $again)) unreachable", ..Guest::default() }),
            End::Call("output-limit", "limit progress_kib")),
        hostile("progress-list", "Reports progress when asked for its tools.",
            with_progress(Guest { functions: PROGRESS, list: "(call $report (i32.const 2048) (i32.const 3))", ..Guest::default() }),
            End::Answer("")),
        hostile("progress-after", "Answers, and then reports progress in its post-return function.",
            with_progress(Guest { functions: PROGRESS_AFTER, lift: " (post-return (core func $plugin \"after\"))", ..Guest::default() }),
            End::Call("trap", "")),
        hostile("progress-details-deep", "Reports progress whose details are nested a hundred thousand deep.",
            with_progress(Guest { functions: PROGRESS, call: "(drop (memory.grow (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 91) (i32.const 100000))
      (call $report-raw (i32.const 1300) (i32.const 0) (i32.const 1) (i32.const 65536) (i32.const 100000))
      (call $answer (local.get $args) (local.get $args-size))", ..Guest::default() }), End::Answer("")),
        hostile("random-flood", "Asks for random bytes for ever.",
            with_random(Guest::call("(loop $again (call $random (i64.const 4096) (i32.const 1500)) (br $again)) unreachable")),
            End::Call("output-limit", "limit random_kib")),
        hostile("random-claim", "Asks for eight exabytes of random bytes.",
            with_random(Guest::call("(call $random (i64.const 0x7fffffffffffffff) (i32.const 1500)) unreachable")),
            End::Call("output-limit", "limit random_kib")),
        hostile("store-flood", "Writes under ever new keys for ever.",
            with_key_value(Guest::call("(loop $again
        (i32.store (i32.const 3000) (i32.add (i32.load (i32.const 3000)) (i32.const 1)))
        (i32.store (i32.const 3008) (i32.or (i32.const 0x40404040) (i32.and (i32.const 0x3f3f3f3f) (i32.load (i32.const 3000)))))
        (call $kv-write (i32.const 3008) (i32.const 4) (i32.const 0) (i32.const 2000) (i32.const 1500))
        (br $again)) unreachable")), TIME).limits(FAST).grants(&["kv=7"]),
        hostile("store-denied", "Writes to a store that it was not granted, and crashes.",
            with_key_value(Guest::call("(call $kv-write (i32.const 2048) (i32.const 3) (i32.const 0) (i32.const 20) (i32.const 1500)) unreachable")),
            End::Call("trap", "grants.kv = true")),
        hostile("socket", "Opens a connection of its own, and crashes where it cannot.",
            with_tcp(Guest::call("(call $tcp (i32.const 0) (i32.const 1500))
      (if (i32.load8_u (i32.const 1500)) (then (return (call $fail (i32.const 2048) (i32.const 3)))))
      (call $answer (local.get $args) (local.get $args-size))")), End::Call("failure", "run")),
        hostile("http-drip", "Fetches from the address in its arguments with time-outs of 600 s, and reads byte by byte for as long as there are any.",
            with_http(Guest { functions: HTTP, call: "(call $fetch (i32.add (local.get $args) (i32.const 7)) (i32.sub (local.get $args-size) (i32.const 9)))
      (call $answer (local.get $args) (local.get $args-size))", ..Guest::default() }), End::Call("trap", "is not granted"))
            .arguments(r#"{"to":"127.0.0.1:9"}"#),
    ]
}

const PROGRESS: &str = "(func $report (param i32 i32)
      (i32.store offset=4 (i32.const 1300) (local.get 0)) (i32.store offset=8 (i32.const 1300) (local.get 1))
      (call $report-raw (i32.const 1300) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))";

const PROGRESS_AFTER: &str = "(func (export \"after\") (param i32)
      (call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))";

/// `$fetch` takes an authority. It crashes where anything fails.
const HTTP: &str = "(func $fetch (param $at i32) (param $size i32)
      (local $request i32) (local $options i32) (local $future i32) (local $poll i32) (local $response i32)
      (local $stream i32)
      (local.set $request (call $new-request (call $new-fields)))
      (drop (call $set-scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
      (if (call $set-authority (local.get $request) (i32.const 1) (local.get $at) (local.get $size)) (then unreachable))
      (i32.store8 (i32.const 1500) (i32.const 47))
      (drop (call $set-path (local.get $request) (i32.const 1) (i32.const 1500) (i32.const 1)))
      (local.set $options (call $new-options))
      (drop (call $connect-timeout (local.get $options) (i32.const 1) (i64.const 600000000000)))
      (drop (call $first-byte-timeout (local.get $options) (i32.const 1) (i64.const 600000000000)))
      (drop (call $between-bytes-timeout (local.get $options) (i32.const 1) (i64.const 600000000000)))
      (call $handle (local.get $request) (i32.const 1) (local.get $options) (i32.const 1504))
      (if (i32.load8_u (i32.const 1504)) (then unreachable))
      (local.set $future (i32.load (i32.const 1512)))
      (local.set $poll (call $subscribe (local.get $future)))
      (call $block (local.get $poll))
      (call $get (local.get $future) (i32.const 1600))
      ;; There is an answer, it was not taken before, and it is one.
      (if (i32.eqz (i32.load8_u (i32.const 1600))) (then unreachable))
      (if (i32.load8_u (i32.const 1608)) (then unreachable))
      (if (i32.load8_u (i32.const 1616)) (then unreachable))
      (local.set $response (i32.load (i32.const 1624)))
      (call $consume (local.get $response) (i32.const 1700))
      (if (i32.load8_u (i32.const 1700)) (then unreachable))
      (call $body-stream (i32.load (i32.const 1704)) (i32.const 1712))
      (if (i32.load8_u (i32.const 1712)) (then unreachable))
      (local.set $stream (i32.load (i32.const 1716)))
      (loop $again
        (call $read (local.get $stream) (i64.const 1) (i32.const 1800))
        (br_if $again (i32.eqz (i32.load8_u (i32.const 1800))))))";
