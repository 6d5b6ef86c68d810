//! Guests whose tools are not what a host should offer to a model.

use super::{End, Hostile, hostile};
use crate::guest::{Guest, leak};

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        hostile("name-bad", "Offers a tool whose name drives a terminal.",
            Guest { functions: "(data (i32.const 2048) \"\\1b[2\")", ..Guest::default() }, End::Tool("`\\u{1b}[2`")),
        hostile("description-none", "Offers a tool that says nothing about itself.",
            Guest { listed: "(i32.store offset=24 (i32.const 1040) (i32.const 0))", ..Guest::default() }, End::Tool("no description")),
        hostile("description-long", "Offers a tool with a description of a megabyte.",
            Guest { listed: "(drop (memory.grow (i32.const 20))) (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1000000))
      (i32.store offset=20 (i32.const 1040) (i32.const 65536)) (i32.store offset=24 (i32.const 1040) (i32.const 1000000))",
                ..Guest::default() }, End::Tool("longer than 16 KiB")),
        hostile("label-bad", "Offers a tool whose label drives a terminal.",
            Guest { functions: "(data (i32.const 3000) \"\\1b]0;owned\\07\")",
                listed: "(i32.store8 offset=8 (i32.const 1040) (i32.const 1))
      (i32.store offset=12 (i32.const 1040) (i32.const 3000)) (i32.store offset=16 (i32.const 1040) (i32.const 10))",
                ..Guest::default() }, End::Tool("its label")),
        hostile("meta-long", "Offers a tool with a remark of a megabyte.",
            Guest { listed: "(drop (memory.grow (i32.const 20))) (memory.fill (i32.const 65536) (i32.const 97) (i32.const 1000000))
      (i32.store offset=48 (i32.const 1040) (i32.const 1500)) (i32.store offset=52 (i32.const 1040) (i32.const 1))
      (i32.store (i32.const 1508) (i32.const 65536)) (i32.store (i32.const 1512) (i32.const 1000000))",
                ..Guest::default() }, End::Tool("meta")),
        hostile("tools-many", "Offers ten thousand tools of the same name.",
            Guest { listed: "(drop (memory.grow (i32.const 20)))
      (loop $again
        (memory.copy (i32.add (i32.const 65536) (i32.mul (local.get 0) (i32.const 56))) (i32.const 1040) (i32.const 56))
        (local.set 0 (i32.add (local.get 0) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get 0) (i32.const 10000))))
      (i32.store (i32.const 1024) (i32.const 65536)) (i32.store (i32.const 1028) (i32.const 10000))",
                list: "(local i32)", ..Guest::default() }, End::Answer("")),
        hostile("schema-bad", "Offers a tool whose schema is no JSON.",
            Guest { functions: "(data (i32.const 2058) \"[[[[\")", ..Guest::default() }, End::Tool("its schema is no JSON")),
        hostile("schema-remote", "Offers a tool whose schema is to be fetched from a server.",
            Guest::with_schema(r#"{"type":"object","properties":{"x":{"$ref":"http://127.0.0.1:9/schema.json"}}}"#),
            End::Tool("only references within it")),
        hostile("schema-base", "Offers a tool whose schema moves its own address to a server.",
            Guest::with_schema(r##"{"$id":"http://127.0.0.1:9/a/","type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}"##),
            End::Answer("")),
        hostile("schema-deep", "Offers a tool whose schema is nested ten thousand deep.",
            Guest::with_schema(leak(format!(r#"{{"type":"object","not":{}{{}}{}}}"#, r#"{"not":"#.repeat(10_000), "}".repeat(10_000)))),
            End::Tool("")),
        hostile("schema-self", "Offers a tool whose schema refers to itself and nothing else.",
            Guest::with_schema(r##"{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}"##), End::Tool("")),
        hostile("schema-pattern", "Offers a tool with a pattern that takes other engines ages, and arguments that show it.",
            Guest::with_schema(r#"{"type":"object","properties":{"x":{"type":"string","pattern":"^(a+)+$"}}}"#),
            End::Call("invalid-arguments", "")).arguments(r#"{"x":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}"#),
        hostile("schema-pattern-huge", "Offers a tool with a pattern of a billion states.",
            Guest::with_schema(r#"{"type":"object","properties":{"x":{"type":"string","pattern":"((a{1,1000}){1,1000}){1,1000}"}}}"#),
            End::Tool("")),
        hostile("schema-pattern-back", "Offers a tool with a pattern that refers back to what it matched.",
            Guest::with_schema(r#"{"type":"object","properties":{"x":{"type":"string","pattern":"^(.+)\\1$"}}}"#),
            End::Tool("")),
        hostile("schema-choices", "Offers a tool with choices of choices, twenty deep: a million ways to be wrong.",
            Guest::with_schema(&choices(20)), End::Tool("")),
        hostile("schema-items", "Offers a tool that takes lists whose items must all differ.",
            Guest::with_schema(r#"{"type":"object","properties":{"x":{"type":"array","uniqueItems":true,"items":{"type":"array","items":{}}}}}"#),
            End::Answer("")),
    ]
}

/// Nested `anyOf`, of which each level is asked twice.
fn choices(depth: usize) -> String {
    let mut definitions = String::from(r#""d0":{"type":"string"}"#);
    for level in 1..=depth {
        let below = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, level - 1);
        definitions += &format!(
            r#","d{level}":{{"anyOf":[{{"allOf":[{below},{below}]}},{{"allOf":[{below},{below}]}}]}}"#
        );
    }
    format!(
        r##"{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/d{depth}"}}}},"$defs":{{{definitions}}}}}"##
    )
}
