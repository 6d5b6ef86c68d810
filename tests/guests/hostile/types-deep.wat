;; Has two hundred types, each a list of the one before.
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

  (type $n0 (list u8)) (type $n1 (list $n0)) (type $n2 (list $n1)) (type $n3 (list $n2)) (type $n4 (list $n3)) (type $n5 (list $n4)) (type $n6 (list $n5)) (type $n7 (list $n6)) (type $n8 (list $n7)) (type $n9 (list $n8)) (type $n10 (list $n9)) (type $n11 (list $n10)) (type $n12 (list $n11)) (type $n13 (list $n12)) (type $n14 (list $n13)) (type $n15 (list $n14)) (type $n16 (list $n15)) (type $n17 (list $n16)) (type $n18 (list $n17)) (type $n19 (list $n18)) (type $n20 (list $n19)) (type $n21 (list $n20)) (type $n22 (list $n21)) (type $n23 (list $n22)) (type $n24 (list $n23)) (type $n25 (list $n24)) (type $n26 (list $n25)) (type $n27 (list $n26)) (type $n28 (list $n27)) (type $n29 (list $n28)) (type $n30 (list $n29)) (type $n31 (list $n30)) (type $n32 (list $n31)) (type $n33 (list $n32)) (type $n34 (list $n33)) (type $n35 (list $n34)) (type $n36 (list $n35)) (type $n37 (list $n36)) (type $n38 (list $n37)) (type $n39 (list $n38)) (type $n40 (list $n39)) (type $n41 (list $n40)) (type $n42 (list $n41)) (type $n43 (list $n42)) (type $n44 (list $n43)) (type $n45 (list $n44)) (type $n46 (list $n45)) (type $n47 (list $n46)) (type $n48 (list $n47)) (type $n49 (list $n48)) (type $n50 (list $n49)) (type $n51 (list $n50)) (type $n52 (list $n51)) (type $n53 (list $n52)) (type $n54 (list $n53)) (type $n55 (list $n54)) (type $n56 (list $n55)) (type $n57 (list $n56)) (type $n58 (list $n57)) (type $n59 (list $n58)) (type $n60 (list $n59)) (type $n61 (list $n60)) (type $n62 (list $n61)) (type $n63 (list $n62)) (type $n64 (list $n63)) (type $n65 (list $n64)) (type $n66 (list $n65)) (type $n67 (list $n66)) (type $n68 (list $n67)) (type $n69 (list $n68)) (type $n70 (list $n69)) (type $n71 (list $n70)) (type $n72 (list $n71)) (type $n73 (list $n72)) (type $n74 (list $n73)) (type $n75 (list $n74)) (type $n76 (list $n75)) (type $n77 (list $n76)) (type $n78 (list $n77)) (type $n79 (list $n78)) (type $n80 (list $n79)) (type $n81 (list $n80)) (type $n82 (list $n81)) (type $n83 (list $n82)) (type $n84 (list $n83)) (type $n85 (list $n84)) (type $n86 (list $n85)) (type $n87 (list $n86)) (type $n88 (list $n87)) (type $n89 (list $n88)) (type $n90 (list $n89)) (type $n91 (list $n90)) (type $n92 (list $n91)) (type $n93 (list $n92)) (type $n94 (list $n93)) (type $n95 (list $n94)) (type $n96 (list $n95)) (type $n97 (list $n96)) (type $n98 (list $n97)) (type $n99 (list $n98)) (type $n100 (list $n99)) (type $n101 (list $n100)) (type $n102 (list $n101)) (type $n103 (list $n102)) (type $n104 (list $n103)) (type $n105 (list $n104)) (type $n106 (list $n105)) (type $n107 (list $n106)) (type $n108 (list $n107)) (type $n109 (list $n108)) (type $n110 (list $n109)) (type $n111 (list $n110)) (type $n112 (list $n111)) (type $n113 (list $n112)) (type $n114 (list $n113)) (type $n115 (list $n114)) (type $n116 (list $n115)) (type $n117 (list $n116)) (type $n118 (list $n117)) (type $n119 (list $n118)) (type $n120 (list $n119)) (type $n121 (list $n120)) (type $n122 (list $n121)) (type $n123 (list $n122)) (type $n124 (list $n123)) (type $n125 (list $n124)) (type $n126 (list $n125)) (type $n127 (list $n126)) (type $n128 (list $n127)) (type $n129 (list $n128)) (type $n130 (list $n129)) (type $n131 (list $n130)) (type $n132 (list $n131)) (type $n133 (list $n132)) (type $n134 (list $n133)) (type $n135 (list $n134)) (type $n136 (list $n135)) (type $n137 (list $n136)) (type $n138 (list $n137)) (type $n139 (list $n138)) (type $n140 (list $n139)) (type $n141 (list $n140)) (type $n142 (list $n141)) (type $n143 (list $n142)) (type $n144 (list $n143)) (type $n145 (list $n144)) (type $n146 (list $n145)) (type $n147 (list $n146)) (type $n148 (list $n147)) (type $n149 (list $n148)) (type $n150 (list $n149)) (type $n151 (list $n150)) (type $n152 (list $n151)) (type $n153 (list $n152)) (type $n154 (list $n153)) (type $n155 (list $n154)) (type $n156 (list $n155)) (type $n157 (list $n156)) (type $n158 (list $n157)) (type $n159 (list $n158)) (type $n160 (list $n159)) (type $n161 (list $n160)) (type $n162 (list $n161)) (type $n163 (list $n162)) (type $n164 (list $n163)) (type $n165 (list $n164)) (type $n166 (list $n165)) (type $n167 (list $n166)) (type $n168 (list $n167)) (type $n169 (list $n168)) (type $n170 (list $n169)) (type $n171 (list $n170)) (type $n172 (list $n171)) (type $n173 (list $n172)) (type $n174 (list $n173)) (type $n175 (list $n174)) (type $n176 (list $n175)) (type $n177 (list $n176)) (type $n178 (list $n177)) (type $n179 (list $n178)) (type $n180 (list $n179)) (type $n181 (list $n180)) (type $n182 (list $n181)) (type $n183 (list $n182)) (type $n184 (list $n183)) (type $n185 (list $n184)) (type $n186 (list $n185)) (type $n187 (list $n186)) (type $n188 (list $n187)) (type $n189 (list $n188)) (type $n190 (list $n189)) (type $n191 (list $n190)) (type $n192 (list $n191)) (type $n193 (list $n192)) (type $n194 (list $n193)) (type $n195 (list $n194)) (type $n196 (list $n195)) (type $n197 (list $n196)) (type $n198 (list $n197)) (type $n199 (list $n198))

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
