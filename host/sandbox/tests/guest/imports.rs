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
        lowered: r#"(core func $report (canon lower (func $progress "report") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
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
        lowered: r#"(core func $log (canon lower (func $log "write") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
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
        lowered: r#"(core func $random (canon lower (func $random "get-random-bytes") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
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
    (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core instance $host
    (export "stdout" (func $stdout)) (export "stderr" (func $stderr)) (export "write" (func $write)))"#,
        core_imports: r#"(import "host" "stdout" (func $stdout (result i32)))
    (import "host" "stderr" (func $stderr (result i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Leaving with a number: `$exit` takes it.
pub(crate) fn with_exit_code(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:cli/exit@0.2.0" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))"#,
        lowered: r#"(core func $exit (canon lower (func $exit "exit-with-code")))
  (core instance $host (export "exit" (func $exit)))"#,
        core_imports: r#"(import "host" "exit" (func $exit (param i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// The store: `$kv-write` takes address and size of key and value, and where to put the result.
pub(crate) fn with_key_value(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "cofferdam:plugin/key-value@0.1.0" (instance $store
    (type $error' (variant (case "denied") (case "over-quota") (case "other" string)))
    (export "error" (type $kv-error (eq $error')))
    (export "write" (func (param "key" string) (param "value" (list u8)) (result (result (error $kv-error)))))))"#,
        lowered: r#"(core func $kv-write (canon lower (func $store "write") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core instance $host (export "kv-write" (func $kv-write)))"#,
        core_imports: r#"(import "host" "kv-write" (func $kv-write (param i32 i32 i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Sockets: `$tcp` takes a family, and where to put the result.
pub(crate) fn with_tcp(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:sockets/network@0.2.0" (instance $network
    (type $code' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
      "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit" "address-not-bindable"
      "address-in-use" "remote-unreachable" "connection-refused" "connection-reset" "connection-aborted"
      "datagram-too-large" "name-unresolvable" "temporary-resolver-failure" "permanent-resolver-failure"))
    (export "error-code" (type (eq $code')))
    (type $family' (enum "ipv4" "ipv6"))
    (export "ip-address-family" (type (eq $family')))))
  (alias export $network "error-code" (type $code))
  (alias export $network "ip-address-family" (type $family))
  (import "wasi:sockets/tcp@0.2.0" (instance $tcp (export "tcp-socket" (type (sub resource)))))
  (alias export $tcp "tcp-socket" (type $socket))
  (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $create
    (export "error-code" (type $c-code (eq $code)))
    (export "ip-address-family" (type $c-family (eq $family)))
    (export "tcp-socket" (type $c-socket (eq $socket)))
    (export "create-tcp-socket" (func (param "address-family" $c-family) (result (result (own $c-socket) (error $c-code)))))))"#,
        lowered: r#"(core func $tcp (canon lower (func $create "create-tcp-socket") (memory (core memory $libc "memory"))))
  (core instance $host (export "tcp" (func $tcp)))"#,
        core_imports: r#"(import "host" "tcp" (func $tcp (param i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}

/// Requests, as raw functions of `wasi:http` and of the streams and pollables that go with it.
pub(crate) fn with_http(guest: Guest) -> Guest {
    Guest {
        imports: r#"(import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $io-error))
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable' (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable'))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "input-stream" (type $stream' (sub resource)))
    (export "error" (type $s-error (eq $io-error)))
    (type $stream-error' (variant (case "last-operation-failed" (own $s-error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]input-stream.blocking-read"
      (func (param "self" (borrow $stream')) (param "len" u64) (result (result (list u8) (error $stream-error)))))))
  (alias export $streams "input-stream" (type $stream))
  (import "wasi:http/types@0.2.0" (instance $http
    (export "pollable" (type $h-pollable (eq $pollable)))
    (export "input-stream" (type $h-stream (eq $stream)))
    (export "fields" (type $fields (sub resource)))
    (export "outgoing-request" (type $request (sub resource)))
    (export "request-options" (type $options (sub resource)))
    (export "incoming-response" (type $response (sub resource)))
    (export "incoming-body" (type $body (sub resource)))
    (export "future-incoming-response" (type $future (sub resource)))
    (type $scheme' (variant (case "HTTP") (case "HTTPS") (case "other" string)))
    (export "scheme" (type $scheme (eq $scheme')))
    (type $dns' (record (field "rcode" (option string)) (field "info-code" (option u16))))
    (export "DNS-error-payload" (type $dns (eq $dns')))
    (type $tls' (record (field "alert-id" (option u8)) (field "alert-message" (option string))))
    (export "TLS-alert-received-payload" (type $tls (eq $tls')))
    (type $size' (record (field "field-name" (option string)) (field "field-size" (option u32))))
    (export "field-size-payload" (type $size (eq $size')))
    (type $code' (variant (case "DNS-timeout") (case "DNS-error" $dns) (case "destination-not-found")
      (case "destination-unavailable") (case "destination-IP-prohibited") (case "destination-IP-unroutable")
      (case "connection-refused") (case "connection-terminated") (case "connection-timeout")
      (case "connection-read-timeout") (case "connection-write-timeout") (case "connection-limit-reached")
      (case "TLS-protocol-error") (case "TLS-certificate-error") (case "TLS-alert-received" $tls)
      (case "HTTP-request-denied") (case "HTTP-request-length-required") (case "HTTP-request-body-size" (option u64))
      (case "HTTP-request-method-invalid") (case "HTTP-request-URI-invalid") (case "HTTP-request-URI-too-long")
      (case "HTTP-request-header-section-size" (option u32)) (case "HTTP-request-header-size" (option $size))
      (case "HTTP-request-trailer-section-size" (option u32)) (case "HTTP-request-trailer-size" $size)
      (case "HTTP-response-incomplete") (case "HTTP-response-header-section-size" (option u32))
      (case "HTTP-response-header-size" $size) (case "HTTP-response-body-size" (option u64))
      (case "HTTP-response-trailer-section-size" (option u32)) (case "HTTP-response-trailer-size" $size)
      (case "HTTP-response-transfer-coding" (option string)) (case "HTTP-response-content-coding" (option string))
      (case "HTTP-response-timeout") (case "HTTP-upgrade-failed") (case "HTTP-protocol-error") (case "loop-detected")
      (case "configuration-error") (case "internal-error" (option string))))
    (export "error-code" (type $code (eq $code')))
    (export "[constructor]fields" (func (result (own $fields))))
    (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request))))
    (export "[method]outgoing-request.set-scheme"
      (func (param "self" (borrow $request)) (param "scheme" (option $scheme)) (result (result))))
    (export "[method]outgoing-request.set-authority"
      (func (param "self" (borrow $request)) (param "authority" (option string)) (result (result))))
    (export "[method]outgoing-request.set-path-with-query"
      (func (param "self" (borrow $request)) (param "path-with-query" (option string)) (result (result))))
    (export "[constructor]request-options" (func (result (own $options))))
    (export "[method]request-options.set-connect-timeout"
      (func (param "self" (borrow $options)) (param "duration" (option u64)) (result (result))))
    (export "[method]request-options.set-first-byte-timeout"
      (func (param "self" (borrow $options)) (param "duration" (option u64)) (result (result))))
    (export "[method]request-options.set-between-bytes-timeout"
      (func (param "self" (borrow $options)) (param "duration" (option u64)) (result (result))))
    (export "[method]future-incoming-response.subscribe"
      (func (param "self" (borrow $future)) (result (own $h-pollable))))
    (export "[method]future-incoming-response.get"
      (func (param "self" (borrow $future)) (result (option (result (result (own $response) (error $code)))))))
    (export "[method]incoming-response.consume"
      (func (param "self" (borrow $response)) (result (result (own $body)))))
    (export "[method]incoming-body.stream"
      (func (param "self" (borrow $body)) (result (result (own $h-stream)))))))
  (alias export $http "outgoing-request" (type $request))
  (alias export $http "request-options" (type $options))
  (alias export $http "future-incoming-response" (type $future))
  (alias export $http "error-code" (type $code))
  (import "wasi:http/outgoing-handler@0.2.0" (instance $handler
    (export "outgoing-request" (type $o-request (eq $request)))
    (export "request-options" (type $o-options (eq $options)))
    (export "future-incoming-response" (type $o-future (eq $future)))
    (export "error-code" (type $o-code (eq $code)))
    (export "handle" (func (param "request" (own $o-request)) (param "options" (option (own $o-options)))
      (result (result (own $o-future) (error $o-code)))))))"#,
        lowered: r#"(core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $read (canon lower (func $streams "[method]input-stream.blocking-read") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $new-fields (canon lower (func $http "[constructor]fields")))
  (core func $new-request (canon lower (func $http "[constructor]outgoing-request")))
  (core func $set-scheme (canon lower (func $http "[method]outgoing-request.set-scheme") (memory (core memory $libc "memory"))))
  (core func $set-authority (canon lower (func $http "[method]outgoing-request.set-authority") (memory (core memory $libc "memory"))))
  (core func $set-path (canon lower (func $http "[method]outgoing-request.set-path-with-query") (memory (core memory $libc "memory"))))
  (core func $new-options (canon lower (func $http "[constructor]request-options")))
  (core func $connect-timeout (canon lower (func $http "[method]request-options.set-connect-timeout")))
  (core func $first-byte-timeout (canon lower (func $http "[method]request-options.set-first-byte-timeout")))
  (core func $between-bytes-timeout (canon lower (func $http "[method]request-options.set-between-bytes-timeout")))
  (core func $subscribe (canon lower (func $http "[method]future-incoming-response.subscribe")))
  (core func $get (canon lower (func $http "[method]future-incoming-response.get") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $consume (canon lower (func $http "[method]incoming-response.consume") (memory (core memory $libc "memory"))))
  (core func $body-stream (canon lower (func $http "[method]incoming-body.stream") (memory (core memory $libc "memory"))))
  (core func $handle (canon lower (func $handler "handle") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core instance $host
    (export "block" (func $block)) (export "read" (func $read)) (export "new-fields" (func $new-fields))
    (export "new-request" (func $new-request)) (export "set-scheme" (func $set-scheme))
    (export "set-authority" (func $set-authority)) (export "set-path" (func $set-path)) (export "new-options" (func $new-options))
    (export "connect-timeout" (func $connect-timeout)) (export "first-byte-timeout" (func $first-byte-timeout))
    (export "between-bytes-timeout" (func $between-bytes-timeout)) (export "subscribe" (func $subscribe))
    (export "get" (func $get)) (export "consume" (func $consume)) (export "body-stream" (func $body-stream))
    (export "handle" (func $handle)))"#,
        core_imports: r#"(import "host" "block" (func $block (param i32)))
    (import "host" "read" (func $read (param i32 i64 i32)))
    (import "host" "new-fields" (func $new-fields (result i32)))
    (import "host" "new-request" (func $new-request (param i32) (result i32)))
    (import "host" "set-scheme" (func $set-scheme (param i32 i32 i32 i32 i32) (result i32)))
    (import "host" "set-authority" (func $set-authority (param i32 i32 i32 i32) (result i32)))
    (import "host" "set-path" (func $set-path (param i32 i32 i32 i32) (result i32)))
    (import "host" "new-options" (func $new-options (result i32)))
    (import "host" "connect-timeout" (func $connect-timeout (param i32 i32 i64) (result i32)))
    (import "host" "first-byte-timeout" (func $first-byte-timeout (param i32 i32 i64) (result i32)))
    (import "host" "between-bytes-timeout" (func $between-bytes-timeout (param i32 i32 i64) (result i32)))
    (import "host" "subscribe" (func $subscribe (param i32) (result i32)))
    (import "host" "get" (func $get (param i32 i32)))
    (import "host" "consume" (func $consume (param i32 i32)))
    (import "host" "body-stream" (func $body-stream (param i32 i32)))
    (import "host" "handle" (func $handle (param i32 i32 i32 i32)))"#,
        with: r#"(with "host" (instance $host))"#,
        ..guest
    }
}
