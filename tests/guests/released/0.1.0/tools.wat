;; The guest that the self-test runs: one tool, `run`, that does whatever it is told, good or bad.
;;
;; Its arguments are three numbers and a text, as in `11 1 0|127.0.0.1:8080`: what to do, how much,
;; how much again, and with what, up to a quotation mark, so that it may stand in JSON. It answers
;; with a text, or fails where the host refuses it.
;;
;;    0  answer the text                  9  answer with n bytes
;;    1  compute for ever                10  open n resources
;;    2  report, and sleep n milliseconds 11  n requests to an authority; answer the last body
;;    3  grow memory to n pages          12  answer the first environment variable's value
;;    4  grow a table to n elements      13  keep n bytes in the key-value store
;;    5  n reports of m bytes            14  answer how many bytes are kept there
;;    6  n log lines of m bytes          15  answer a configuration value
;;    7  n bytes to standard output (m = 0) or error (m = 1)
;;    8  n random numbers of 8 bytes     16  answer what a file holds
;;   17  write n bytes to a new file     18  make a hard link of a file
;;   19  report, wait to be cancelled, and then compute for ever
;;   20  report what a file holds, write it to standard error, and crash
;;   21  make n directories              22  call itself without end
(component
  ;; cofferdam:plugin/types, as far as tools need them.
  (type $pairs (list (tuple string string)))
  (type $tool-call (record (field "id" string) (field "name" string) (field "arguments" string) (field "meta" $pairs)))
  (type $blob (record (field "media-type" string) (field "data" (list u8))))
  (type $custom (record (field "kind" string) (field "data" string)))
  (type $content (variant (case "text" string) (case "image" $blob) (case "other" $custom)))
  (type $tool-result (record
    (field "content" (list $content)) (field "details" (option string)) (field "is-error" bool)
    (field "terminate" (option bool)) (field "meta" $pairs)))
  (type $failure-kind (enum "rejected" "denied" "unavailable" "other"))
  (type $failure (record (field "kind" $failure-kind) (field "code" (option string)) (field "message" string)))
  (type $execution (variant (case "parallel") (case "sequential") (case "exclusive" (list string))))
  (type $tool (record
    (field "name" string) (field "label" (option string)) (field "description" string) (field "parameters" string)
    (field "execution" $execution) (field "meta" $pairs)))

  ;; What the host offers.
  (import "cofferdam:plugin/progress@0.1.0" (instance $progress
    (export "blob" (type $p-blob (eq $blob)))
    (export "custom" (type $p-custom (eq $custom)))
    (type $p-content' (variant (case "text" string) (case "image" $p-blob) (case "other" $p-custom)))
    (export "content" (type $p-content (eq $p-content')))
    (export "report" (func (param "content" (list $p-content)) (param "details" (option string))))))
  (import "cofferdam:plugin/cancellation@0.1.0" (instance $cancellation
    (export "is-cancelled" (func (result bool)))))
  (import "cofferdam:plugin/log@0.1.0" (instance $log
    (type $level' (enum "debug" "info" "warn" "error"))
    (export "level" (type $level (eq $level')))
    (export "write" (func (param "level" $level) (param "message" string)))))
  (import "cofferdam:plugin/config@0.1.0" (instance $config
    (export "read" (func (param "key" string) (result (option string))))))
  (import "cofferdam:plugin/key-value@0.1.0" (instance $kv
    (type $kv-error' (variant (case "denied") (case "over-quota") (case "other" string)))
    (export "error" (type $kv-error (eq $kv-error')))
    (export "read" (func (param "key" string) (result (result (option (list u8)) (error $kv-error)))))
    (export "write" (func (param "key" string) (param "value" (list u8)) (result (result (error $kv-error)))))))
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable' (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable'))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (export "pollable" (type $c-pollable (eq $pollable)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $c-pollable))))))
  (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $io-error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $out' (sub resource)))
    (export "input-stream" (type $in' (sub resource)))
    (export "error" (type $s-error (eq $io-error)))
    (type $stream-error' (variant (case "last-operation-failed" (own $s-error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]input-stream.blocking-read"
      (func (param "self" (borrow $in')) (param "len" u64) (result (result (list u8) (error $stream-error)))))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $out')) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $output-stream))
  (alias export $streams "input-stream" (type $input-stream))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (export "output-stream" (type $o-out (eq $output-stream))) (export "get-stdout" (func (result (own $o-out))))))
  (import "wasi:cli/stderr@0.2.0" (instance $stderr
    (export "output-stream" (type $e-out (eq $output-stream))) (export "get-stderr" (func (result (own $e-out))))))
  (import "wasi:cli/environment@0.2.0" (instance $environment
    (export "get-environment" (func (result (list (tuple string string)))))))
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-u64" (func (result u64)))))
  (import "wasi:filesystem/types@0.2.0" (instance $files
    (export "descriptor" (type $descriptor' (sub resource)))
    (export "output-stream" (type $f-out (eq $output-stream)))
    (type $path-flags' (flags "symlink-follow"))
    (export "path-flags" (type $path-flags (eq $path-flags')))
    (type $open-flags' (flags "create" "directory" "exclusive" "truncate"))
    (export "open-flags" (type $open-flags (eq $open-flags')))
    (type $descriptor-flags' (flags "read" "write" "file-integrity-sync" "data-integrity-sync"
      "requested-write-sync" "mutate-directory"))
    (export "descriptor-flags" (type $descriptor-flags (eq $descriptor-flags')))
    (type $file-error' (enum "access" "would-block" "already" "bad-descriptor" "busy" "deadlock" "quota" "exist"
      "file-too-large" "illegal-byte-sequence" "in-progress" "interrupted" "invalid" "io" "is-directory" "loop"
      "too-many-links" "message-size" "name-too-long" "no-device" "no-entry" "no-lock" "insufficient-memory"
      "insufficient-space" "not-directory" "not-empty" "not-recoverable" "unsupported" "no-tty" "no-such-device"
      "overflow" "not-permitted" "pipe" "read-only" "invalid-seek" "text-file-busy" "cross-device"))
    (export "error-code" (type $file-error (eq $file-error')))
    (export "[method]descriptor.open-at" (func (param "self" (borrow $descriptor'))
      (param "path-flags" $path-flags) (param "path" string) (param "open-flags" $open-flags)
      (param "flags" $descriptor-flags) (result (result (own $descriptor') (error $file-error)))))
    (export "[method]descriptor.read" (func (param "self" (borrow $descriptor')) (param "length" u64)
      (param "offset" u64) (result (result (tuple (list u8) bool) (error $file-error)))))
    (export "[method]descriptor.write-via-stream" (func (param "self" (borrow $descriptor')) (param "offset" u64)
      (result (result (own $f-out) (error $file-error)))))
    (export "[method]descriptor.create-directory-at" (func (param "self" (borrow $descriptor'))
      (param "path" string) (result (result (error $file-error)))))
    (export "[method]descriptor.link-at" (func (param "self" (borrow $descriptor'))
      (param "old-path-flags" $path-flags) (param "old-path" string)
      (param "new-descriptor" (borrow $descriptor')) (param "new-path" string)
      (result (result (error $file-error)))))))
  (alias export $files "descriptor" (type $descriptor))
  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (export "descriptor" (type $p-descriptor (eq $descriptor)))
    (export "get-directories" (func (result (list (tuple (own $p-descriptor) string)))))))
  (import "wasi:http/types@0.2.0" (instance $http
    (export "fields" (type $fields (sub resource)))
    (export "outgoing-request" (type $request' (sub resource)))
    (export "request-options" (type $options' (sub resource)))
    (export "future-incoming-response" (type $future' (sub resource)))
    (export "incoming-response" (type $response (sub resource)))
    (export "incoming-body" (type $body (sub resource)))
    (export "pollable" (type $h-pollable (eq $pollable)))
    (export "input-stream" (type $h-in (eq $input-stream)))
    (type $scheme' (variant (case "HTTP") (case "HTTPS") (case "other" string)))
    (export "scheme" (type $scheme (eq $scheme')))
    (type $dns' (record (field "rcode" (option string)) (field "info-code" (option u16))))
    (export "DNS-error-payload" (type $dns (eq $dns')))
    (type $alert' (record (field "alert-id" (option u8)) (field "alert-message" (option string))))
    (export "TLS-alert-received-payload" (type $alert (eq $alert')))
    (type $size' (record (field "field-name" (option string)) (field "field-size" (option u32))))
    (export "field-size-payload" (type $size (eq $size')))
    (type $http-error' (variant
      (case "DNS-timeout") (case "DNS-error" $dns) (case "destination-not-found") (case "destination-unavailable")
      (case "destination-IP-prohibited") (case "destination-IP-unroutable") (case "connection-refused")
      (case "connection-terminated") (case "connection-timeout") (case "connection-read-timeout")
      (case "connection-write-timeout") (case "connection-limit-reached") (case "TLS-protocol-error")
      (case "TLS-certificate-error") (case "TLS-alert-received" $alert) (case "HTTP-request-denied")
      (case "HTTP-request-length-required") (case "HTTP-request-body-size" (option u64))
      (case "HTTP-request-method-invalid") (case "HTTP-request-URI-invalid") (case "HTTP-request-URI-too-long")
      (case "HTTP-request-header-section-size" (option u32)) (case "HTTP-request-header-size" (option $size))
      (case "HTTP-request-trailer-section-size" (option u32)) (case "HTTP-request-trailer-size" $size)
      (case "HTTP-response-incomplete") (case "HTTP-response-header-section-size" (option u32))
      (case "HTTP-response-header-size" $size) (case "HTTP-response-body-size" (option u64))
      (case "HTTP-response-trailer-section-size" (option u32)) (case "HTTP-response-trailer-size" $size)
      (case "HTTP-response-transfer-coding" (option string)) (case "HTTP-response-content-coding" (option string))
      (case "HTTP-response-timeout") (case "HTTP-upgrade-failed") (case "HTTP-protocol-error") (case "loop-detected")
      (case "configuration-error") (case "internal-error" (option string))))
    (export "error-code" (type $http-error'' (eq $http-error')))
    (export "[constructor]fields" (func (result (own $fields))))
    (export "[constructor]outgoing-request" (func (param "headers" (own $fields)) (result (own $request'))))
    (export "[method]outgoing-request.set-scheme"
      (func (param "self" (borrow $request')) (param "scheme" (option $scheme)) (result (result))))
    (export "[method]outgoing-request.set-authority"
      (func (param "self" (borrow $request')) (param "authority" (option string)) (result (result))))
    (export "[method]outgoing-request.set-path-with-query"
      (func (param "self" (borrow $request')) (param "path-with-query" (option string)) (result (result))))
    (export "[method]future-incoming-response.subscribe"
      (func (param "self" (borrow $future')) (result (own $h-pollable))))
    (export "[method]future-incoming-response.get" (func (param "self" (borrow $future'))
      (result (option (result (result (own $response) (error $http-error'')))))))
    (export "[method]incoming-response.consume"
      (func (param "self" (borrow $response)) (result (result (own $body)))))
    (export "[method]incoming-body.stream"
      (func (param "self" (borrow $body)) (result (result (own $h-in)))))))
  (alias export $http "outgoing-request" (type $request))
  (alias export $http "request-options" (type $options))
  (alias export $http "future-incoming-response" (type $future))
  (alias export $http "error-code" (type $http-error))
  (import "wasi:http/outgoing-handler@0.2.0" (instance $handler
    (export "outgoing-request" (type $h-request (eq $request)))
    (export "request-options" (type $h-options (eq $options)))
    (export "future-incoming-response" (type $h-future (eq $future)))
    (export "error-code" (type $h-error (eq $http-error)))
    (export "handle" (func (param "request" (own $h-request)) (param "options" (option (own $h-options)))
      (result (result (own $h-future) (error $h-error)))))))

  ;; One memory, and an allocator that never frees: the instance serves one call.
  (core module $libc
    (memory (export "memory") 1)
    (global $heap (mut i32) (i32.const 32768))
    (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
      (local $at i32) (local $end i32)
      (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
      (local.set $end (i32.add (local.get $at) (local.get $size)))
      (global.set $heap (local.get $end))
      (if (i32.gt_u (local.get $end) (i32.shl (memory.size) (i32.const 16)))
        (then (if (i32.eq (i32.const -1) (memory.grow (i32.add (i32.const 1) (i32.shr_u
            (i32.sub (local.get $end) (i32.shl (memory.size) (i32.const 16))) (i32.const 16)))))
          (then unreachable))))
      (local.get $at)))
  (core instance $libc (instantiate $libc))

  (core func $report (canon lower (func $progress "report") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $is-cancelled (canon lower (func $cancellation "is-cancelled")))
  (core func $log (canon lower (func $log "write") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $config (canon lower (func $config "read") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $kv-read (canon lower (func $kv "read") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $kv-write (canon lower (func $kv "write") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $after (canon lower (func $clock "subscribe-duration")))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $read (canon lower (func $streams "[method]input-stream.blocking-read")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $stdout (canon lower (func $stdout "get-stdout")))
  (core func $stderr (canon lower (func $stderr "get-stderr")))
  (core func $environment (canon lower (func $environment "get-environment")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $random (canon lower (func $random "get-random-u64")))
  (core func $open (canon lower (func $files "[method]descriptor.open-at")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $read-file (canon lower (func $files "[method]descriptor.read")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $write-file (canon lower (func $files "[method]descriptor.write-via-stream") (memory $libc "memory")))
  (core func $link (canon lower (func $files "[method]descriptor.link-at")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $create-directory (canon lower (func $files "[method]descriptor.create-directory-at")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $directories (canon lower (func $preopens "get-directories")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $fields (canon lower (func $http "[constructor]fields")))
  (core func $request (canon lower (func $http "[constructor]outgoing-request")))
  (core func $set-scheme (canon lower (func $http "[method]outgoing-request.set-scheme")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $set-authority (canon lower (func $http "[method]outgoing-request.set-authority")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $set-path (canon lower (func $http "[method]outgoing-request.set-path-with-query")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $subscribe (canon lower (func $http "[method]future-incoming-response.subscribe")))
  (core func $get (canon lower (func $http "[method]future-incoming-response.get")
    (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core func $consume (canon lower (func $http "[method]incoming-response.consume") (memory $libc "memory")))
  (core func $body (canon lower (func $http "[method]incoming-body.stream") (memory $libc "memory")))
  (core func $handle (canon lower (func $handler "handle") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (core instance $host
    (export "report" (func $report)) (export "is-cancelled" (func $is-cancelled)) (export "log" (func $log))
    (export "config" (func $config)) (export "kv-read" (func $kv-read)) (export "kv-write" (func $kv-write))
    (export "after" (func $after)) (export "block" (func $block)) (export "read" (func $read))
    (export "write" (func $write)) (export "stdout" (func $stdout)) (export "stderr" (func $stderr))
    (export "environment" (func $environment)) (export "random" (func $random)) (export "open" (func $open))
    (export "read-file" (func $read-file)) (export "write-file" (func $write-file)) (export "link" (func $link))
    (export "create-directory" (func $create-directory))
    (export "directories" (func $directories)) (export "fields" (func $fields)) (export "request" (func $request))
    (export "set-scheme" (func $set-scheme)) (export "set-authority" (func $set-authority))
    (export "set-path" (func $set-path))
    (export "subscribe" (func $subscribe)) (export "get" (func $get)) (export "consume" (func $consume))
    (export "body" (func $body)) (export "handle" (func $handle)))

  ;; Below 4096: the answers of the tool. From 4096: what host functions answer. From 8192: 16 KiB of
  ;; bytes to hand over. From 32768: the heap.
  (core module $plugin
    (import "libc" "memory" (memory 1))
    (import "libc" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
    (import "host" "report" (func $report (param i32 i32 i32 i32 i32)))
    (import "host" "is-cancelled" (func $is-cancelled (result i32)))
    (import "host" "log" (func $log (param i32 i32 i32)))
    (import "host" "config" (func $config (param i32 i32 i32)))
    (import "host" "kv-read" (func $kv-read (param i32 i32 i32)))
    (import "host" "kv-write" (func $kv-write (param i32 i32 i32 i32 i32)))
    (import "host" "after" (func $after (param i64) (result i32)))
    (import "host" "block" (func $block (param i32)))
    (import "host" "read" (func $read (param i32 i64 i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))
    (import "host" "stdout" (func $stdout (result i32)))
    (import "host" "stderr" (func $stderr (result i32)))
    (import "host" "environment" (func $environment (param i32)))
    (import "host" "random" (func $random (result i64)))
    (import "host" "open" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
    (import "host" "read-file" (func $read-file (param i32 i64 i64 i32)))
    (import "host" "write-file" (func $write-file (param i32 i64 i32)))
    (import "host" "link" (func $link (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "host" "create-directory" (func $create-directory (param i32 i32 i32 i32)))
    (import "host" "directories" (func $directories (param i32)))
    (import "host" "fields" (func $fields (result i32)))
    (import "host" "request" (func $request (param i32) (result i32)))
    (import "host" "set-scheme" (func $set-scheme (param i32 i32 i32 i32 i32) (result i32)))
    (import "host" "set-authority" (func $set-authority (param i32 i32 i32 i32) (result i32)))
    (import "host" "set-path" (func $set-path (param i32 i32 i32 i32) (result i32)))
    (import "host" "subscribe" (func $subscribe (param i32) (result i32)))
    (import "host" "get" (func $get (param i32 i32)))
    (import "host" "consume" (func $consume (param i32 i32)))
    (import "host" "body" (func $body (param i32 i32)))
    (import "host" "handle" (func $handle (param i32 i32 i32 i32)))

    (table $table 1 funcref)
    (global $at (mut i32) (i32.const 0))
    (global $end (mut i32) (i32.const 0))
    (data (i32.const 2048) "run" "A tool." "{\22type\22:\22object\22}")
    (data (i32.const 2100) "none" "denied" "over-quota" "written" "refused" "linked" "k" "/")

    (func (export "list-tools") (result i32)
      (i32.store (i32.const 1024) (i32.const 1040)) (i32.store (i32.const 1028) (i32.const 1))
      (i32.store offset=0 (i32.const 1040) (i32.const 2048)) (i32.store offset=4 (i32.const 1040) (i32.const 3))
      (i32.store offset=20 (i32.const 1040) (i32.const 2051)) (i32.store offset=24 (i32.const 1040) (i32.const 7))
      (i32.store offset=28 (i32.const 1040) (i32.const 2058)) (i32.store offset=32 (i32.const 1040) (i32.const 17))
      (i32.const 1024))

    ;; Answers with one text.
    (func $answer (param $at i32) (param $size i32) (result i32)
      (i32.store offset=4 (i32.const 1200) (local.get $at)) (i32.store offset=8 (i32.const 1200) (local.get $size))
      (i32.store (i32.const 1132) (i32.const 1200)) (i32.store (i32.const 1136) (i32.const 1))
      (i32.const 1128))
    (func $done (result i32) (call $answer (i32.const 2100) (i32.const 0)))
    (func $none (result i32) (call $answer (i32.const 2100) (i32.const 4)))
    ;; Fails, as an honest plugin does that was refused something.
    (func $refused (result i32)
      (i32.store8 (i32.const 1128) (i32.const 1)) (i32.store8 (i32.const 1132) (i32.const 1))
      (i32.store (i32.const 1148) (i32.const 2127)) (i32.store (i32.const 1152) (i32.const 7))
      (i32.const 1128))
    ;; Answers with a number.
    (func $answer-number (param $n i32) (result i32)
      (local $at i32)
      (local.set $at (i32.const 4000))
      (loop $next
        (local.set $at (i32.sub (local.get $at) (i32.const 1)))
        (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.rem_u (local.get $n) (i32.const 10))))
        (local.set $n (i32.div_u (local.get $n) (i32.const 10)))
        (br_if $next (local.get $n)))
      (call $answer (local.get $at) (i32.sub (i32.const 4000) (local.get $at))))

    ;; The next number of the arguments.
    (func $number (result i32)
      (local $digit i32) (local $value i32) (local $seen i32)
      (block $stop (loop $next
        (br_if $stop (i32.ge_u (global.get $at) (global.get $end)))
        (local.set $digit (i32.sub (i32.load8_u (global.get $at)) (i32.const 48)))
        (if (i32.lt_u (local.get $digit) (i32.const 10))
          (then
            (local.set $seen (i32.const 1))
            (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10)) (local.get $digit))))
          (else (br_if $stop (local.get $seen))))
        (global.set $at (i32.add (global.get $at) (i32.const 1)))
        (br $next)))
      (local.get $value))

    ;; So many bytes of text, on the heap.
    (func $text (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $size)))
      (memory.fill (local.get $at) (i32.const 97) (local.get $size))
      (local.get $at))

    (func $spin (result i32) (loop $again (br $again)) unreachable)

    ;; Shows one text as progress.
    (func $show (param $at i32) (param $size i32)
      (i32.store offset=4 (i32.const 4096) (local.get $at))
      (i32.store offset=8 (i32.const 4096) (local.get $size))
      (call $report (i32.const 4096) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))

    (func $sleep (param $ms i32) (result i32)
      (call $show (i32.const 2100) (i32.const 0))
      (call $block (call $after (i64.mul (i64.extend_i32_u (local.get $ms)) (i64.const 1000000))))
      (call $done))

    (func $memory (param $pages i32) (result i32)
      (if (i32.eq (i32.const -1) (memory.grow (i32.sub (local.get $pages) (memory.size)))) (then unreachable))
      (call $done))

    (func $elements (param $n i32) (result i32)
      (if (i32.eq (i32.const -1)
          (table.grow $table (ref.null func) (i32.sub (local.get $n) (table.size $table))))
        (then unreachable))
      (call $done))

    (func $reports (param $n i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (call $text (local.get $size)))
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (call $show (local.get $at) (local.get $size))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $done))

    (func $lines (param $n i32) (param $size i32) (result i32)
      (local $at i32)
      (local.set $at (call $text (local.get $size)))
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (call $log (i32.const 1) (local.get $at) (local.get $size))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $done))

    ;; Writes n bytes to a stream. Zero if the host took them all.
    (func $pour (param $stream i32) (param $n i32) (result i32)
      (local $size i32)
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (local.set $size (select (i32.const 4096) (local.get $n) (i32.gt_u (local.get $n) (i32.const 4096))))
        (call $write (local.get $stream) (i32.const 8192) (local.get $size) (i32.const 4096))
        (if (i32.load8_u (i32.const 4096)) (then (return (i32.const 1))))
        (local.set $n (i32.sub (local.get $n) (local.get $size)))
        (br $next)))
      (i32.const 0))

    (func $stdio (param $n i32) (param $error i32) (result i32)
      (local $stream i32)
      (if (local.get $error)
        (then (local.set $stream (call $stderr))) (else (local.set $stream (call $stdout))))
      (if (result i32) (call $pour (local.get $stream) (local.get $n))
        (then (call $refused)) (else (call $done))))

    (func $draws (param $n i32) (result i32)
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (drop (call $random))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $done))

    (func $resources (param $n i32) (result i32)
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (drop (call $after (i64.const 1000000000000)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $done))

    ;; One request. Zero if a whole body came; its first part is at 4200 (address) and 4204 (size).
    (func $fetch (param $at i32) (param $size i32) (result i32)
      (local $request i32) (local $future i32) (local $stream i32) (local $first i32)
      (local.set $request (call $request (call $fields)))
      (drop (call $set-scheme (local.get $request) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0)))
      (drop (call $set-path (local.get $request) (i32.const 1) (i32.const 2141) (i32.const 1)))
      (if (call $set-authority (local.get $request) (i32.const 1) (local.get $at) (local.get $size))
        (then (return (i32.const 1))))
      (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (i32.const 1))))
      (local.set $future (i32.load offset=8 (i32.const 4096)))
      (call $block (call $subscribe (local.get $future)))
      ;; option of a result of a result, the inner one at 16 because an error may hold 8-byte numbers
      (call $get (local.get $future) (i32.const 4096))
      (if (i32.or (i32.load8_u offset=8 (i32.const 4096)) (i32.load8_u offset=16 (i32.const 4096)))
        (then (return (i32.const 1))))
      (call $consume (i32.load offset=24 (i32.const 4096)) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (i32.const 1))))
      (call $body (i32.load offset=4 (i32.const 4096)) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (i32.const 1))))
      (local.set $stream (i32.load offset=4 (i32.const 4096)))
      (local.set $first (i32.const 1))
      (loop $next
        (call $read (local.get $stream) (i64.const 16384) (i32.const 4096))
        (if (i32.load8_u (i32.const 4096))
          ;; closed is the end, anything else an error
          (then (return (i32.ne (i32.const 1) (i32.load8_u offset=4 (i32.const 4096))))))
        (if (local.get $first)
          (then
            (i32.store (i32.const 4200) (i32.load offset=4 (i32.const 4096)))
            (i32.store (i32.const 4204) (i32.load offset=8 (i32.const 4096)))
            (local.set $first (i32.const 0))))
        (br $next))
      unreachable)

    (func $fetches (param $n i32) (param $at i32) (param $size i32) (result i32)
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (if (call $fetch (local.get $at) (local.get $size)) (then (return (call $refused))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $answer (i32.load (i32.const 4200)) (i32.load (i32.const 4204))))

    (func $variable (result i32)
      (local $first i32)
      (call $environment (i32.const 4096))
      (if (i32.eqz (i32.load offset=4 (i32.const 4096))) (then (return (call $none))))
      (local.set $first (i32.load (i32.const 4096)))
      (call $answer (i32.load offset=8 (local.get $first)) (i32.load offset=12 (local.get $first))))

    (func $keep (param $n i32) (result i32)
      (local $text i32)
      (local.set $text (call $text (local.get $n)))
      (call $kv-write (i32.const 2140) (i32.const 1) (local.get $text) (local.get $n) (i32.const 4096))
      (if (i32.eqz (i32.load8_u (i32.const 4096))) (then (return (call $answer (i32.const 2120) (i32.const 7)))))
      (if (i32.eqz (i32.load8_u offset=4 (i32.const 4096)))
        (then (return (call $answer (i32.const 2104) (i32.const 6)))))
      (if (i32.eq (i32.const 1) (i32.load8_u offset=4 (i32.const 4096)))
        (then (return (call $answer (i32.const 2110) (i32.const 10)))))
      (call $refused))

    (func $kept (result i32)
      (call $kv-read (i32.const 2140) (i32.const 1) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (call $refused))))
      (if (i32.eqz (i32.load8_u offset=4 (i32.const 4096))) (then (return (call $none))))
      (call $answer-number (i32.load offset=12 (i32.const 4096))))

    (func $value (param $at i32) (param $size i32) (result i32)
      (call $config (local.get $at) (local.get $size) (i32.const 4096))
      (if (i32.eqz (i32.load8_u (i32.const 4096))) (then (return (call $none))))
      (call $answer (i32.load offset=4 (i32.const 4096)) (i32.load offset=8 (i32.const 4096))))

    ;; The first granted directory; it traps if there is none.
    (func $directory (result i32)
      (call $directories (i32.const 4096))
      (if (i32.eqz (i32.load offset=4 (i32.const 4096))) (then unreachable))
      (i32.load (i32.load (i32.const 4096))))

    ;; Opens a file below the first granted directory. Zero if it is refused; the file is then at 4100.
    (func $opened (param $at i32) (param $size i32) (param $how i32) (param $flags i32) (result i32)
      (call $open (call $directory) (i32.const 1) (local.get $at) (local.get $size) (local.get $how)
        (local.get $flags) (i32.const 4096))
      (i32.eqz (i32.load8_u (i32.const 4096))))

    (func $file (param $at i32) (param $size i32) (result i32)
      (if (i32.eqz (call $opened (local.get $at) (local.get $size) (i32.const 0) (i32.const 1)))
        (then (return (call $refused))))
      (call $read-file (i32.load (i32.const 4100)) (i64.const 4096) (i64.const 0) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (call $refused))))
      (call $answer (i32.load offset=4 (i32.const 4096)) (i32.load offset=8 (i32.const 4096))))

    (func $new-file (param $at i32) (param $size i32) (param $n i32) (result i32)
      (if (i32.eqz (call $opened (local.get $at) (local.get $size) (i32.const 9) (i32.const 2)))
        (then (return (call $refused))))
      (call $write-file (i32.load (i32.const 4100)) (i64.const 0) (i32.const 4096))
      (if (i32.load8_u (i32.const 4096)) (then (return (call $refused))))
      (if (result i32) (call $pour (i32.load (i32.const 4100)) (local.get $n))
        (then (call $refused)) (else (call $answer (i32.const 2120) (i32.const 7)))))

    (func $hard-link (param $at i32) (param $size i32) (result i32)
      (local $directory i32)
      (local.set $directory (call $directory))
      (call $link (local.get $directory) (i32.const 0) (local.get $at) (local.get $size)
        (local.get $directory) (i32.const 2134) (i32.const 6) (i32.const 4096))
      (if (result i32) (i32.load8_u (i32.const 4096))
        (then (call $refused)) (else (call $answer (i32.const 2134) (i32.const 6)))))

    (func $cry (param $at i32) (param $size i32) (result i32)
      (if (i32.load8_u (call $file (local.get $at) (local.get $size))) (then (return (i32.const 1128))))
      ;; the answer is a text at 1200
      (local.set $at (i32.load offset=4 (i32.const 1200)))
      (local.set $size (i32.load offset=8 (i32.const 1200)))
      (call $show (local.get $at) (local.get $size))
      (call $write (call $stderr) (local.get $at) (local.get $size) (i32.const 4096))
      unreachable)

    ;; Directories named by two letters.
    (func $new-directories (param $n i32) (result i32)
      (local $directory i32)
      (local.set $directory (call $directory))
      (block $stop (loop $next
        (br_if $stop (i32.eqz (local.get $n)))
        (i32.store8 (i32.const 4300) (i32.add (i32.const 97) (i32.rem_u (local.get $n) (i32.const 26))))
        (i32.store8 (i32.const 4301) (i32.add (i32.const 97) (i32.div_u (local.get $n) (i32.const 26))))
        (call $create-directory (local.get $directory) (i32.const 4300) (i32.const 2) (i32.const 4096))
        (if (i32.load8_u (i32.const 4096)) (then (return (call $refused))))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (br $next)))
      (call $done))

    (func $deeper (param $n i32) (result i32) (i32.add (i32.const 1) (call $deeper (local.get $n))))

    (func $deaf (result i32)
      ;; It asks before it says that it is there.
      (drop (call $is-cancelled))
      (call $show (i32.const 2100) (i32.const 0))
      (loop $again (br_if $again (i32.eqz (call $is-cancelled))))
      (call $spin))

    (func (export "call-tool")
      (param $id i32) (param $id-size i32) (param $name i32) (param $name-size i32)
      (param $args i32) (param $args-size i32) (param $meta i32) (param $meta-size i32) (result i32)
      (local $what i32) (local $n i32) (local $m i32) (local $size i32)
      (global.set $at (local.get $args))
      (global.set $end (i32.add (local.get $args) (local.get $args-size)))
      (local.set $what (call $number))
      (local.set $n (call $number))
      (local.set $m (call $number))
      ;; past the bar
      (global.set $at (i32.add (global.get $at) (i32.const 1)))
      (block $quoted (loop $next
        (br_if $quoted (i32.ge_u (i32.add (global.get $at) (local.get $size)) (global.get $end)))
        (br_if $quoted (i32.eq (i32.const 34) (i32.load8_u (i32.add (global.get $at) (local.get $size)))))
        (local.set $size (i32.add (local.get $size) (i32.const 1)))
        (br $next)))
      (block $22 (block $21 (block $20 (block $19 (block $18 (block $17 (block $16 (block $15 (block $14 (block $13 (block $12 (block $11 (block $10
      (block $9 (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
        (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14 $15 $16 $17 $18 $19 $20 $21 $22 (local.get $what)))
        (return (call $answer (global.get $at) (local.get $size))))
        (return (call $spin)))
        (return (call $sleep (local.get $n))))
        (return (call $memory (local.get $n))))
        (return (call $elements (local.get $n))))
        (return (call $reports (local.get $n) (local.get $m))))
        (return (call $lines (local.get $n) (local.get $m))))
        (return (call $stdio (local.get $n) (local.get $m))))
        (return (call $draws (local.get $n))))
        (return (call $answer (call $text (local.get $n)) (local.get $n))))
        (return (call $resources (local.get $n))))
        (return (call $fetches (local.get $n) (global.get $at) (local.get $size))))
        (return (call $variable)))
        (return (call $keep (local.get $n))))
        (return (call $kept)))
        (return (call $value (global.get $at) (local.get $size))))
        (return (call $file (global.get $at) (local.get $size))))
        (return (call $new-file (global.get $at) (local.get $size) (local.get $n))))
        (return (call $hard-link (global.get $at) (local.get $size))))
        (return (call $deaf)))
        (return (call $cry (global.get $at) (local.get $size))))
        (return (call $new-directories (local.get $n))))
      (call $deeper (i32.const 0))))
  (core instance $plugin (instantiate $plugin (with "libc" (instance $libc)) (with "host" (instance $host))))

  (func $list-tools (result (list $tool))
    (canon lift (core func $plugin "list-tools") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (func $call-tool (param "call" $tool-call) (result (result $tool-result (error $failure)))
    (canon lift (core func $plugin "call-tool") (memory $libc "memory") (realloc (func $libc "realloc"))))
  (instance $tools
    (export "tool-call" (type $tool-call)) (export "blob" (type $blob)) (export "custom" (type $custom))
    (export "content" (type $content)) (export "tool-result" (type $tool-result))
    (export "failure-kind" (type $failure-kind)) (export "failure" (type $failure))
    (export "execution" (type $execution)) (export "tool" (type $tool))
    (export "list-tools" (func $list-tools)) (export "call-tool" (func $call-tool)))
  (export "cofferdam:plugin/tools@0.1.0" (instance $tools)))
