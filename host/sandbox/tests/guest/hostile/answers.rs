//! Guests whose answers are too large, not what they say, or meant for somebody else.

use super::{End, Hostile, hostile};
use crate::guest::Guest;

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hostile("list-claim", "Claims that its answer has 200 million parts.",
            Guest::call("(i32.store (i32.const 1132) (i32.const 0)) (i32.store (i32.const 1136) (i32.const 200000000)) (i32.const 1128)"),
            End::Call("trap", "")),
        hostile("list-claim-tools", "Claims that it has 4 billion tools.",
            Guest { listed: "(i32.store (i32.const 1028) (i32.const -1))", ..Guest::default() }, End::Load("")),
        hostile("answer-50mb", "Answers with 50 MB that end inside a character.",
            Guest::call("(drop (memory.grow (i32.const 800)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 50000000))
      (i32.store8 (i32.const 50065535) (i32.const 0xc3))
      (call $answer (i32.const 65536) (i32.const 50000000))"),
            End::Call("output-limit", "larger than 8 MiB (limit host_alloc_mib)")),
        hostile("answer-50mb-allowed", "Answers with 50 MB that end inside a character, where the host may take that much.",
            Guest::call("(drop (memory.grow (i32.const 800)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 50000000))
      (i32.store8 (i32.const 50065535) (i32.const 0xc3))
      (call $answer (i32.const 65536) (i32.const 50000000))"),
            End::Call("trap", "broke its contract")).limits(&["host_alloc_mib=64"]),
        hostile("answer-long", "Answers with a megabyte of two-byte characters.",
            Guest::call("(local $at i32)
      (drop (memory.grow (i32.const 20)))
      (local.set $at (i32.const 65536))
      (loop $again
        (i32.store (local.get $at) (i32.const 0xa9c3a9c3))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $again (i32.lt_u (local.get $at) (i32.const 1065536))))
      (call $answer (i32.const 65537) (i32.const 1000000))"),
            End::Call("trap", "broke its contract")).limits(&["result_kib=1"]),
        hostile("answer-long-text", "Answers with a megabyte of text that no character boundary cuts at a kibibyte.",
            Guest::call("(local $at i32)
      (drop (memory.grow (i32.const 20)))
      (local.set $at (i32.const 65536))
      (loop $again
        (i32.store (local.get $at) (i32.const 0xa9c3a9c3))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br_if $again (i32.lt_u (local.get $at) (i32.const 1065536))))
      (i32.store8 (i32.const 65535) (i32.const 97))
      (call $answer (i32.const 65535) (i32.const 1000001))"),
            End::Answer("cut by the host: the first 1023 of 1000001 bytes")).limits(&["result_kib=1"]),
        hostile("answer-parts", "Answers with a hundred thousand empty parts.",
            Guest::call("(drop (memory.grow (i32.const 40)))
      (i32.store (i32.const 1132) (i32.const 65536)) (i32.store (i32.const 1136) (i32.const 100000))
      (i32.const 1128)"),
            End::Answer("the first 1000 of 100000 pieces")),
        hostile("answer-overlap", "Answers with a thousand parts that are all the same 56 KiB of its memory.",
            Guest::call("(local $at i32)
      (drop (memory.grow (i32.const 2)))
      (memory.fill (i32.const 8192) (i32.const 97) (i32.const 57344))
      (local.set $at (i32.const 65536))
      (loop $again
        (i32.store offset=4 (local.get $at) (i32.const 8192)) (i32.store offset=8 (local.get $at) (i32.const 57344))
        (local.set $at (i32.add (local.get $at) (i32.const 20)))
        (br_if $again (i32.lt_u (local.get $at) (i32.const 85536))))
      (i32.store (i32.const 1132) (i32.const 65536)) (i32.store (i32.const 1136) (i32.const 1000))
      (i32.const 1128)"),
            End::Call("output-limit", "limit host_alloc_mib")),
        hostile("answer-garbage", "Answers with bytes that are no text.",
            Guest { functions: "(data (i32.const 3000) \"\\ff\\fe\\fd\")",
                call: "(call $answer (i32.const 3000) (i32.const 3))", ..Guest::default() },
            End::Call("trap", "broke its contract")),
        hostile("answer-surrogate", "Answers in UTF-16, with half of a pair.",
            Guest { functions: "(data (i32.const 3000) \"a\\00\\00\\d8b\\00\")", lift: " string-encoding=utf16",
                call: "(call $answer (i32.const 3000) (i32.const 3))", ..Guest::default() },
            End::Call("trap", "broke its contract")),
        hostile("answer-wild", "Answers with a text outside of its memory.",
            Guest::call("(call $answer (i32.const -16) (i32.const 4096))"), End::Call("trap", "")),
        hostile("answer-odd", "Answers with a case that does not exist.",
            Guest::call("(i32.store8 (i32.const 1128) (i32.const 9)) (i32.const 1128)"), End::Call("trap", "broke its contract")),
        hostile("answer-unaligned", "Answers at an odd address.",
            Guest::call("(drop (call $answer (local.get $args) (local.get $args-size))) (i32.const 1129)"), End::Call("trap", "")),
        hostile("answer-escapes", "Answers with text that drives a terminal and turns around what is beside it.",
            Guest { functions: "(data (i32.const 3000) \"\\1b[2J\\1b]0;owned\\07\\e2\\80\\aegnp.exe\\00\\9b\")",
                call: "(i32.store8 (i32.const 3021) (i32.const 32)) (call $answer (i32.const 3000) (i32.const 21))", ..Guest::default() },
            End::Answer("owned")),
        hostile("answer-image", "Answers with an image of a type that drives a terminal.",
            Guest { functions: "(data (i32.const 3000) \"\\1b]0;owned\\07/png\")",
                call: "(drop (call $answer (i32.const 3000) (i32.const 14))) (i32.store8 (i32.const 1200) (i32.const 1))
      (i32.store (i32.const 1212) (i32.const 0)) (i32.store (i32.const 1216) (i32.const 60000)) (i32.const 1128)", ..Guest::default() },
            End::Answer("\\u{1b}]0;owned")),
        hostile("details-deep", "Answers with JSON that is nested a hundred thousand deep.",
            Guest::call("(drop (memory.grow (i32.const 4)))
      (memory.fill (i32.const 65536) (i32.const 91) (i32.const 100000))
      (drop (call $answer (local.get $args) (local.get $args-size)))
      (i32.store8 (i32.const 1140) (i32.const 1))
      (i32.store (i32.const 1144) (i32.const 65536)) (i32.store (i32.const 1148) (i32.const 100000))
      (i32.const 1128)"),
            End::Call("failure", "nested more than 128 levels")),
        hostile("fail-long", "Fails with a message of a megabyte.",
            Guest::call("(drop (memory.grow (i32.const 20)))
      (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1000000))
      (call $fail (i32.const 65536) (i32.const 1000000))"),
            End::Call("failure", "cut by the host: the first 7168 of 1000000 bytes")).limits(&["result_kib=7"]),
        hostile("fail-mute", "Fails without a word.",
            Guest::call("(call $fail (i32.const 0) (i32.const 0))"), End::Call("failure", "without saying why")),
    ]
}
