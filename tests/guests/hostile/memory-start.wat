;; Needs more memory than it may have before it runs.
(component
  ;; The types of cofferdam:plugin/types@0.1.0, as far as tools need them.
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

  (core module $libc
    (memory (export "memory") 1025)
    (global $heap (mut i32) (i32.const 4096))
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

  (core module $plugin
    (import "libc" "memory" (memory 1))

    ;; One tool without anything to say about itself, at 2048.
    (data (i32.const 2048) "run" "A tool." "{\22type\22:\22object\22}")
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
    ;; Fails with kind `other` and a message.
    (func $fail (param $at i32) (param $size i32) (result i32)
      (i32.store8 (i32.const 1128) (i32.const 1)) (i32.store8 (i32.const 1132) (i32.const 3))
      (i32.store (i32.const 1148) (local.get $at)) (i32.store (i32.const 1152) (local.get $size))
      (i32.const 1128))
    ;; The first number in a text.
    (func $number (param $at i32) (param $size i32) (result i32)
      (local $digit i32) (local $value i32) (local $seen i32)
      (block $end (loop $next
        (br_if $end (i32.eqz (local.get $size)))
        (local.set $digit (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (local.set $size (i32.sub (local.get $size) (i32.const 1)))
        (if (i32.lt_u (local.get $digit) (i32.const 10))
          (then
            (local.set $seen (i32.const 1))
            (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10)) (local.get $digit))))
          (else (br_if $end (local.get $seen))))
        (br $next)))
      (local.get $value))

    (func (export "call-tool")
      (param $id i32) (param $id-size i32) (param $name i32) (param $name-size i32)
      (param $args i32) (param $args-size i32) (param $meta i32) (param $meta-size i32) (result i32)
      (call $answer (local.get $args) (local.get $args-size))))
  (core instance $plugin (instantiate $plugin (with "libc" (instance $libc)) ))

  (func $list-tools (result (list $tool))
    (canon lift (core func $plugin "list-tools") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (func $call-tool (param "call" $tool-call) (result (result $tool-result (error $failure)))
    (canon lift (core func $plugin "call-tool") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (instance $tools
    (export "tool-call" (type $tool-call)) (export "blob" (type $blob)) (export "custom" (type $custom))
    (export "content" (type $content)) (export "tool-result" (type $tool-result))
    (export "failure-kind" (type $failure-kind)) (export "failure" (type $failure))
    (export "execution" (type $execution)) (export "tool" (type $tool))
    (export "list-tools" (func $list-tools)) (export "call-tool" (func $call-tool)))
  (export "cofferdam:plugin/tools@0.1.0" (instance $tools)))
