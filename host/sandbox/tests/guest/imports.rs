//! Imports that guests of the tests share, as pieces of the frame.

use super::Guest;

/// Progress reports: `$report` takes the address and size of one text.
pub(crate) fn with_progress(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "cofferdam:plugin/progress@0.1.0" (instance $progress
    (export "blob" (type $p-blob (eq $blob)))
    (export "custom" (type $p-custom (eq $custom)))
    (type $p-content' (variant (case "text" string) (case "image" $p-blob) (case "other" $p-custom)))
    (export "content" (type $p-content (eq $p-content')))
    (export "report" (func (param "content" (list $p-content)) (param "details" (option string))))))"#,
        lowered: r#"(core func $report (canon lower (func $progress "report") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "report" (func $report)))"#,
        core_imports: r#"(import "host" "report" (func $report-raw (param i32 i32 i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Log lines: `$log` takes a level, and the address and size of a text.
pub(crate) fn with_log(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "cofferdam:plugin/log@0.1.0" (instance $log
    (type $level' (enum "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "write" (func (param "level" $level) (param "message" string)))))"#,
        lowered: r#"(core func $log (canon lower (func $log "write") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "log" (func $log)))"#,
        core_imports: r#"(import "host" "log" (func $log (param i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Cancellation: `$is-cancelled` and `$remaining-ms`.
pub(crate) fn with_cancellation(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "cofferdam:plugin/cancellation@0.1.0" (instance $cancellation
    (export "is-cancelled" (func (result bool)))
    (export "remaining-ms" (func (result u64)))))"#,
        lowered: r#"(core func $is-cancelled (canon lower (func $cancellation "is-cancelled")))
  (core func $remaining-ms (canon lower (func $cancellation "remaining-ms")))
  (core instance $host (export "is-cancelled" (func $is-cancelled)) (export "remaining-ms" (func $remaining-ms)))"#,
        core_imports: r#"(import "host" "is-cancelled" (func $is-cancelled (result i32)))
    (import "host" "remaining-ms" (func $remaining-ms (result i64)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Time: `$after` makes a pollable for so many nanoseconds, `$block` waits for it, `$drop` ends it.
pub(crate) fn with_clock(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable' (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable'))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (export "pollable" (type $c-pollable (eq $pollable)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $c-pollable))))))"#,
        lowered: r#"(core func $after (canon lower (func $clock "subscribe-duration")))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $drop (canon resource.drop $pollable))
  (core instance $host
    (export "after" (func $after)) (export "block" (func $block)) (export "drop" (func $drop)))"#,
        core_imports: r#"(import "host" "after" (func $after (param i64) (result i32)))
    (import "host" "block" (func $block (param i32)))
    (import "host" "drop" (func $drop (param i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Leaving: `$exit` takes 0 for success and 1 for failure.
pub(crate) fn with_exit(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))"#,
        lowered: r#"(core func $exit (canon lower (func $exit "exit")))
  (core instance $host (export "exit" (func $exit)))"#,
        core_imports: r#"(import "host" "exit" (func $exit (param i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Random bytes: `$random` takes a number of them and where to put address and size.
pub(crate) fn with_random(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))"#,
        lowered: r#"(core func $random (canon lower (func $random "get-random-bytes") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host (export "random" (func $random)))"#,
        core_imports: r#"(import "host" "random" (func $random (param i64 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Standard output and error: `$stdout` and `$stderr` make a stream, `$write` takes a stream, the
/// address and size of the bytes, and where to put the result.
pub(crate) fn with_stdio(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $io-error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $stream' (sub resource)))
    (export "error" (type $s-error (eq $io-error)))
    (type $stream-error' (variant (case "last-operation-failed" (own $s-error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $stream')) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $stream))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (export "output-stream" (type $o-stream (eq $stream))) (export "get-stdout" (func (result (own $o-stream))))))
  (import "wasi:cli/stderr@0.2.0" (instance $stderr
    (export "output-stream" (type $e-stream (eq $stream))) (export "get-stderr" (func (result (own $e-stream))))))"#,
        lowered: r#"(core func $stdout (canon lower (func $stdout "get-stdout")))
  (core func $stderr (canon lower (func $stderr "get-stderr")))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host
    (export "stdout" (func $stdout)) (export "stderr" (func $stderr)) (export "write" (func $write)))"#,
        core_imports: r#"(import "host" "stdout" (func $stdout (result i32)))
    (import "host" "stderr" (func $stderr (result i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}
