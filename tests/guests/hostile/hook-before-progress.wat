;; Reports progress before a call, where nobody may, and lets it go on.
;; A plugin with both hooks and no tool.
(component
  ;; The types of cofferdam:plugin/types@0.1.0, as far as hooks need them.
  (type $pairs (list (tuple string string)))
  (type $tool-call (record (field "id" string) (field "name" string) (field "arguments" string) (field "meta" $pairs)))
  (type $hook-context (record (field "plugin" string) (field "assistant-message" string) (field "meta" $pairs)))
  (type $blob (record (field "media-type" string) (field "data" (list u8))))
  (type $custom (record (field "kind" string) (field "data" string)))
  (type $content (variant (case "text" string) (case "image" $blob) (case "other" $custom)))
  (type $tool-result (record
    (field "content" (list $content)) (field "details" (option string)) (field "is-error" bool)
    (field "terminate" (option bool)) (field "meta" $pairs)))
  (type $refusal (record (field "reason" string) (field "terminate" (option bool))))
  (type $question (record (field "title" string) (field "message" string)))
  (type $verdict (variant (case "proceed") (case "rewrite" string) (case "block" $refusal) (case "ask" $question)))
  (type $outcome (record (field "value" $tool-result) (field "ended-by" (option string)) (field "wall-ms" u64)))
  (type $amendment (record
    (field "content" (option (list $content))) (field "details" (option string))
    (field "is-error" (option bool)) (field "terminate" (option bool))))

  (import "cofferdam:plugin/progress@0.1.0" (instance $progress
    (export "blob" (type $p-blob (eq $blob)))
    (export "custom" (type $p-custom (eq $custom)))
    (type $p-content' (variant (case "text" string) (case "image" $p-blob) (case "other" $p-custom)))
    (export "content" (type $p-content (eq $p-content')))
    (export "report" (func (param "content" (list $p-content)) (param "details" (option string))))))

  (core module $libc
    (memory (export "memory") 1)
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

  (core func $report (canon lower (func $progress "report") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core instance $host (export "report" (func $report)))

  (core module $plugin
    (import "libc" "memory" (memory 1))
    (import "host" "report" (func $report-raw (param i32 i32 i32 i32 i32)))
    ;; A verdict at 1024: which case, and its first text.
    (func $verdict (param $case i32) (param $at i32) (param $size i32) (result i32)
      (i32.store8 (i32.const 1028) (local.get $case))
      (i32.store (i32.const 1032) (local.get $at)) (i32.store (i32.const 1036) (local.get $size))
      (i32.const 1024))
    ;; An amendment at 1024 of one text.
    (func $content (param $at i32) (param $size i32) (result i32)
      (i32.store offset=4 (i32.const 1200) (local.get $at)) (i32.store offset=8 (i32.const 1200) (local.get $size))
      (i32.store8 (i32.const 1028) (i32.const 1))
      (i32.store (i32.const 1032) (i32.const 1200)) (i32.store (i32.const 1036) (i32.const 1))
      (i32.const 1024))

    (func (export "before") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
      (call $report-raw (i32.const 1300) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 1024))
    (func (export "after") (param i32) (result i32)
      (i32.const 1024)))
  (core instance $plugin (instantiate $plugin (with "libc" (instance $libc)) (with "host" (instance $host))))

  (func $before (param "call" $tool-call) (param "context" $hook-context) (result (result $verdict (error string)))
    (canon lift (core func $plugin "before") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (func $after (param "call" $tool-call) (param "outcome" $outcome) (param "context" $hook-context)
      (result (result $amendment (error string)))
    (canon lift (core func $plugin "after") (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (instance $before-tool-call
    (export "tool-call" (type $tool-call)) (export "hook-context" (type $hook-context))
    (export "refusal" (type $refusal)) (export "question" (type $question)) (export "verdict" (type $verdict))
    (export "before" (func $before)))
  (instance $after-tool-call
    (export "tool-call" (type $tool-call)) (export "hook-context" (type $hook-context))
    (export "blob" (type $blob)) (export "custom" (type $custom)) (export "content" (type $content))
    (export "tool-result" (type $tool-result)) (export "outcome" (type $outcome)) (export "amendment" (type $amendment))
    (export "after" (func $after)))
  (export "cofferdam:plugin/before-tool-call@0.1.0" (instance $before-tool-call))
  (export "cofferdam:plugin/after-tool-call@0.1.0" (instance $after-tool-call)))
