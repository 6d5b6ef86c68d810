//! Components that know nothing of the contract: their functions as tools, behind the same wall.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::{Outcome, ToolFailure};
use cofferdam_sandbox::{
    Code, Grants, Limits, LoadError, Plugin, PluginSource, Sandbox, SandboxConfig,
};
use serde_json::{Value, json};

const GUEST: &str = r#"(component
  (core module $m
    (memory (export "mem") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    ;; Gives a list or a text back as it came.
    (func (export "echo") (param i32 i32) (result i32)
      (i32.store (i32.const 16) (local.get 0))
      (i32.store (i32.const 20) (local.get 1))
      (i32.const 16))
    (func (export "fail") (param i32 i32) (result i32)
      (i32.store8 (i32.const 16) (i32.const 1))
      (i32.store (i32.const 20) (local.get 0))
      (i32.store (i32.const 24) (local.get 1))
      (i32.const 16))
    (func (export "spin") (loop (br 0)))
    (func (export "trap") unreachable)
    (func (export "one") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
  (type $colour' (enum "red" "green"))
  (export $colour "colour" (type $colour'))
  (type $marks' (flags "bold" "wide"))
  (export $marks "marks" (type $marks'))
  (type $shape' (variant (case "none") (case "side" u32) (case "name" string)))
  (export $shape "shape" (type $shape'))
  (type $all' (record
    (field "yes" bool) (field "tiny" s8) (field "long" s64) (field "huge" u64) (field "half" f64)
    (field "letter" char) (field "text" string) (field "bytes" (list u8))
    (field "pair" (tuple u8 string)) (field "shape" $shape) (field "colour" $colour)
    (field "maybe" (option string)) (field "twice" (option (option u8)))
    (field "came" (result u8 (error string))) (field "marks" $marks)))
  (export $all "all" (type $all'))
  (func (export "add") (param "x" u32) (param "y" u32) (result u32) (canon lift (core func $i "add")))
  (func (export "echo") (param "text" string) (result string)
    (canon lift (core func $i "echo") (memory $i "mem") (realloc (func $i "realloc"))))
  (func (export "keep") (param "items" (list $all)) (result (list $all))
    (canon lift (core func $i "echo") (memory $i "mem") (realloc (func $i "realloc"))))
  (func (export "fail") (param "why" string) (result (result u32 (error string)))
    (canon lift (core func $i "fail") (memory $i "mem") (realloc (func $i "realloc"))))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "trap") (canon lift (core func $i "trap")))
  (func $sum (param "x" u32) (param "y" u32) (result u32) (canon lift (core func $i "add")))
  (type $file' (resource (rep i32)))
  (component $api
    (import "sum" (func $sum (param "x" u32) (param "y" u32) (result u32)))
    (import "file" (type $file (sub resource)))
    (import "open" (func $open (param "file" (own $file)) (result u32)))
    (export "add" (func $sum))
    (export $out "file" (type $file))
    (export "open" (func $open) (func (param "file" (own $out)) (result u32))))
  (func $open (param "file" (own $file')) (result u32) (canon lift (core func $i "one")))
  (instance $math (instantiate $api
    (with "sum" (func $sum)) (with "file" (type $file')) (with "open" (func $open))))
  (export "docs:math/ops@1.0.0" (instance $math)))"#;

async fn load(text: &str, limits: Limits) -> Result<Plugin, LoadError> {
    let sandbox = Sandbox::new(SandboxConfig { slots: 4, ..SandboxConfig::default() }).unwrap();
    let source = PluginSource {
        name: "foreign".into(),
        code: Code::Bytes(text.as_bytes().to_vec()),
        sha256: None,
        accept_text: true,
    };
    Plugin::load(&sandbox, source, limits, Grants::default()).await
}

async fn call(plugin: &Plugin, tool: &str, arguments: Value) -> Outcome {
    let (progress, _updates) = Progress::channel();
    plugin.call_tool(tool, &arguments.to_string(), progress, AbortSignal::new()).await
}

async fn text(plugin: &Plugin, tool: &str, arguments: Value) -> String {
    let result = call(plugin, tool, arguments).await.answer.unwrap();
    match &result.content[0] {
        Content::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    }
}

async fn failure(plugin: &Plugin, tool: &str, arguments: Value) -> ToolFailure {
    call(plugin, tool, arguments).await.answer.unwrap_err()
}

#[tokio::test]
async fn functions_are_tools_with_the_schemas_of_their_types() {
    let plugin = load(GUEST, Limits::default()).await.unwrap();
    let specs = plugin.tool_specs();
    let names: Vec<&str> =
        plugin.tool_specs().iter().map(|tool| tool.declaration.name.as_str()).collect();
    // Two are named `add`: the one in an interface has that before its name.
    assert_eq!(names, ["add", "echo", "keep", "fail", "spin", "trap", "ops-add"]);
    let add = &specs[0].declaration;
    assert_eq!(
        add.parameters,
        json!({
            "type": "object",
            "properties": {
                "x": { "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32 },
                "y": { "type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32 },
            },
            "required": ["x", "y"],
            "additionalProperties": false,
        })
    );
    assert!(add.description.contains("add(x: u32, y: u32) -> u32"), "{}", add.description);
    let keep = &plugin.tool_specs()[2].declaration.parameters["properties"]["items"]["items"];
    assert_eq!(keep["properties"]["colour"], json!({ "type": "string", "enum": ["red", "green"] }));
    assert!(!keep["required"].as_array().unwrap().contains(&json!("maybe")), "{keep}");
    let [refused] = plugin.refused_tools() else { panic!("{:?}", plugin.refused_tools()) };
    assert_eq!(refused.name, "open");
    assert!(refused.reason.contains("`file` is a resource"), "{}", refused.reason);
}

#[tokio::test]
async fn values_of_every_type_cross_the_wall_both_ways() {
    let plugin = load(GUEST, Limits::default()).await.unwrap();
    assert_eq!(text(&plugin, "add", json!({ "x": 2, "y": 40.0 })).await, "42");
    assert_eq!(text(&plugin, "ops-add", json!({ "x": 1, "y": 1 })).await, "2");
    assert_eq!(text(&plugin, "echo", json!({ "text": "grüß dich" })).await, "grüß dich");
    let items = json!([
        {
            "yes": true, "tiny": -128, "long": "-9223372036854775808", "huge": "18446744073709551615",
            "half": 0.5, "letter": "ß", "text": "", "bytes": [0, 255], "pair": [7, "seven"],
            "shape": "none", "colour": "green", "maybe": null, "twice": { "some": null },
            "came": { "ok": 3 }, "marks": ["bold", "wide"],
        },
        {
            "yes": false, "tiny": 127, "long": 1, "huge": 2, "half": -1.0, "letter": "a", "text": "b",
            "bytes": [], "pair": [0, ""], "shape": { "name": "round" }, "colour": "red",
            "maybe": "yes", "twice": { "some": 9 }, "came": { "err": "no" }, "marks": [],
        },
    ]);
    let kept = text(&plugin, "keep", json!({ "items": items })).await;
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), items);
}

#[tokio::test]
async fn an_err_is_a_failure_and_nonsense_is_told() {
    let plugin = load(GUEST, Limits::default()).await.unwrap();
    let failed = failure(&plugin, "fail", json!({ "why": "the moon" })).await;
    assert_eq!((failed.message.as_str(), failed.ended_by.as_str()), ("the moon", "failure"));
    for (tool, arguments, part) in [
        ("add", json!({ "x": -1, "y": 0 }), "`x`: a value of the type u32 is wanted, not -1"),
        ("add", json!({ "x": 1 }), "`y`"),
        ("echo", json!({ "text": 7 }), "type string"),
        ("keep", json!({ "items": [{ "yes": 1 }] }), "`items`: `yes`"),
    ] {
        let failed = failure(&plugin, tool, arguments).await;
        assert!(failed.message.contains(part), "{part}: {}", failed.message);
    }
}

#[tokio::test]
async fn the_wall_is_the_same() {
    let limits = Limits { wall_ms: 200, ..Limits::default() };
    let plugin = load(GUEST, limits).await.unwrap();
    assert_eq!(failure(&plugin, "spin", json!({})).await.ended_by, "time-limit");
    let trapped = call(&plugin, "trap", json!({})).await;
    assert_eq!(trapped.answer.unwrap_err().ended_by, "trap");
    assert!(trapped.receipt.unwrap().to_json()["fuel"].is_u64());
    assert_eq!(
        text(&plugin, "add", json!({ "x": 1, "y": 2 })).await,
        "3",
        "the next call is fresh"
    );
}

#[tokio::test]
async fn types_that_double_do_not_fill_the_host() {
    let mut component = "(component (core module $m (memory (export \"mem\") 1) \
        (func (export \"r\") (param i32 i32 i32 i32) (result i32) unreachable) \
        (func (export \"f\") (param i32) unreachable)) (core instance $i (instantiate $m)) \
        (type $t0 (tuple u8 u8))"
        .to_owned();
    for n in 1..14 {
        let before = n - 1;
        component.push_str(&format!("(type $t{n} (tuple (list $t{before}) (list $t{before})))"));
    }
    component.push_str(
        "(func (export \"big\") (param \"it\" (list $t13)) (canon lift (core func $i \"g\") \
         (memory $i \"mem\") (realloc (func $i \"r\")))))",
    );
    let component = component
        .replace("(func (export \"f\") (param i32)", "(func (export \"g\") (param i32 i32)");
    let plugin = load(&component, Limits::default()).await.unwrap();
    assert_eq!(plugin.tool_specs().len(), 0);
    let reason = &plugin.refused_tools()[0].reason;
    assert!(reason.contains("too many types"), "{reason}");
}

#[tokio::test]
async fn a_command_is_no_tool() {
    let text = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m)) \
        (func $f (canon lift (core func $i \"f\"))) (instance $run (export \"run\" (func $f))) \
        (export \"wasi:cli/run@0.2.0\" (instance $run)))";
    let Err(refused) = load(text, Limits::default()).await else { panic!("loaded") };
    assert!(refused.to_string().contains("another world"), "{refused}");
}

#[tokio::test]
async fn types_of_an_interface_of_its_own_world_are_nothing_to_provide() {
    let text = "(component
        (type $types' (instance (type $p (record (field \"x\" u32) (field \"y\" u32)))
          (export \"pair\" (type (eq $p)))))
        (import \"docs:sums/types@1.0.0\" (instance $types (type $types')))
        (alias export $types \"pair\" (type $pair'))
        (import \"pair\" (type $pair (eq $pair')))
        (core module $m (func (export \"add\") (param i32 i32) (result i32)
          (i32.add (local.get 0) (local.get 1))))
        (core instance $i (instantiate $m))
        (func (export \"add\") (param \"pair\" $pair) (result u32) (canon lift (core func $i \"add\"))))";
    let plugin = load(text, Limits::default()).await.unwrap();
    assert_eq!(self::text(&plugin, "add", json!({ "pair": { "x": 2, "y": 3 } })).await, "5");
}
