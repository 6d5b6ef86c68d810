//! Arguments on their way to a tool: what is parsed, coerced, refused, and at what cost.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::Toolset;
use cofferdam_agent::args::{ArgsError, parse};
use cofferdam_agent::testing::FnTool;
use cofferdam_agent::toolset::Rules;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn toolset(schema: Value, rules: Rules) -> Toolset {
    Toolset::new([FnTool::text("t", "").with_parameters(schema).shared()], rules)
}

/// What becomes of one field with this schema.
fn field(schema: Value, value: Value) -> Result<Value, String> {
    let schema = json!({"type": "object", "properties": {"f": schema}, "required": ["f"]});
    let checked = arguments(&toolset(schema, Rules::Lenient), json!({"f": value}))?;
    Ok(checked["f"].clone())
}

fn arguments(toolset: &Toolset, value: Value) -> Result<Value, String> {
    assert!(toolset.refused().is_empty(), "{:?}", toolset.refused());
    let arguments = Arc::new(value.as_object().unwrap().clone());
    let checked = toolset.validate("t", &arguments).unwrap();
    checked.map(|valid| Value::Object((*valid).clone())).map_err(|error| error.to_string())
}

fn refusal(schema: Value, rules: Rules) -> String {
    let toolset = toolset(schema, rules);
    assert!(toolset.is_empty());
    toolset.refused()[0].reason.clone()
}

#[test]
fn coercion_takes_the_only_reading_and_loses_nothing() {
    let list = |item: Value| json!({"type": "array", "items": item});
    let int = || json!({"type": "integer"});
    let cases = [
        (int(), json!("41"), json!(41)),
        (int(), json!("4.0"), json!(4.0)),
        (json!({"type": "number"}), json!("-1.5"), json!(-1.5)),
        (json!({"type": "boolean"}), json!("true"), json!(true)),
        (json!({"type": "boolean"}), json!("FALSE"), json!(false)),
        (json!({"type": "string"}), json!(5), json!("5")),
        (json!({"type": "string"}), json!(true), json!("true")),
        (json!({"type": ["string", "integer"]}), json!(5), json!(5)),
        (json!({"type": ["integer", "null"]}), json!("7"), json!(7)),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!("7"), json!(7)),
        (list(int()), json!("[1, \"2\"]"), json!([1, 2])),
        (list(int()), json!("3"), json!([3])),
        (list(json!({"type": "string"})), json!("one"), json!(["one"])),
        (json!({"type": "object"}), json!("{\"a\": 1}"), json!({"a": 1})),
        (json!({"enum": [1, 2]}), json!("2"), json!(2)),
        (json!({"enum": ["1", "2"]}), json!(2), json!("2")),
        (json!({"const": true}), json!("true"), json!(true)),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(field(schema.clone(), value.clone()), Ok(expected), "{value} for {schema}");
    }
}

#[test]
fn what_would_lose_something_is_left_to_the_validator() {
    let cases = [
        (json!({"type": "integer"}), json!("3.5")),
        (json!({"type": "integer"}), json!("007")),
        (json!({"type": "integer"}), json!("12345678901234567890123")),
        (json!({"type": "integer"}), json!("")),
        (json!({"type": "integer"}), json!(null)),
        (json!({"type": "number"}), json!("0.12345678901234567")),
        (json!({"type": "boolean"}), json!(1)),
        (json!({"type": "string"}), json!(null)),
        (json!({"type": "string"}), json!(["a"])),
        (json!({"type": ["integer", "boolean"]}), json!("maybe")),
        (json!({"enum": ["a", "b"]}), json!("c")),
    ];
    for (schema, value) in cases {
        assert!(field(schema.clone(), value.clone()).is_err(), "{value} for {schema}");
    }
}

#[test]
fn a_null_for_an_optional_field_means_that_it_is_absent() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": ["integer", "null"]},
            "c": {"type": "integer"},
        },
        "required": ["c"],
    });
    let toolset = toolset(schema, Rules::Portable);
    let checked = arguments(&toolset, json!({"a": null, "b": null, "c": "1"}));
    assert_eq!(checked, Ok(json!({"b": null, "c": 1})));
    assert!(arguments(&toolset, json!({"c": null})).is_err());
}

#[test]
fn issues_are_few_and_say_where_what_and_what_is_there() {
    let item =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let schema =
        json!({"type": "object", "properties": {"list": {"type": "array", "items": item}}});
    let toolset = toolset(schema, Rules::Portable);
    let long = "x".repeat(5_000);
    let bad: Vec<Value> = (0..50).map(|_| json!({"n": long})).collect();
    let received = Arc::new(json!({"list": bad}).as_object().unwrap().clone());
    let Err(ArgsError::Invalid { issues }) = toolset.validate("t", &received).unwrap() else {
        panic!("valid");
    };
    assert_eq!(issues.len(), 5);
    assert_eq!(issues[0].path, "list.0.n");
    assert_eq!(issues[0].keyword, "type");
    let line = issues[0].to_string();
    assert!(line.starts_with("list.0.n: expected type integer, got \"xxx"), "{line}");
    assert!(line.len() < 200, "{line}");
}

#[test]
fn the_closest_alternative_is_told() {
    let shape = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]},
    ]});
    let error = field(shape, json!({"kind": "square", "size": 2})).unwrap_err();
    assert!(error.contains("the field \"side\""), "{error}");
}

/// Each level refers twice to the next.
fn chain(levels: usize, keyword: &str) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        defs.insert(format!("l{level}"), json!({keyword: [next, next]}));
    }
    defs.insert(format!("l{levels}"), json!({"type": "integer"}));
    json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/l0"}}, "$defs": defs})
}

#[test]
fn schemas_whose_check_would_be_unbounded_work_are_refused() {
    for keyword in ["anyOf", "allOf"] {
        let reason = refusal(chain(25, keyword), Rules::Lenient);
        assert!(reason.contains("multiplied out"), "{reason}");
    }
    assert!(!toolset(chain(8, "anyOf"), Rules::Lenient).is_empty());
    let long = json!({"type": "object", "description": "x".repeat(70_000)});
    assert!(refusal(long, Rules::Lenient).contains("bytes"));
    let mut deep = json!({"type": "integer"});
    for _ in 0..80 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert!(refusal(deep, Rules::Lenient).contains("levels"));
}

#[test]
fn arguments_that_a_recursive_schema_would_multiply_are_refused_at_once() {
    let node = json!({"anyOf": [
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}}, "required": ["b"]},
    ]});
    let schema = json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}});
    assert!(refusal(schema.clone(), Rules::Portable).contains("itself"));
    let toolset = toolset(schema, Rules::Lenient);
    let nested = |levels: usize, last: Value| {
        (0..levels).fold(last, |inner, _| json!({"next": inner, "c": 1}))
    };
    let began = Instant::now();
    let error = arguments(&toolset, json!({"f": nested(100, json!({"a": 1}))})).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(error.contains("alternatives"), "{error}");
    let fine = json!({"next": {"next": {"a": 1}, "b": 2}, "a": 3});
    assert!(arguments(&toolset, json!({"f": fine})).is_ok());
}

#[test]
fn nothing_is_fetched_and_patterns_are_linear() {
    let with = |schema: Value| json!({"type": "object", "properties": {"f": schema}});
    for reference in ["https://example.com/a.json", "file:///etc/passwd", "other.json#/a"] {
        let reason = refusal(with(json!({"$ref": reference})), Rules::Portable);
        assert!(reason.contains("only pointers"), "{reason}");
    }
    assert!(refusal(with(json!({"pattern": "^(?=a)b"})), Rules::Portable).contains("compile"));
    assert!(
        refusal(with(json!({"pattern": "(a{1000}){1000}"})), Rules::Portable).contains("compile")
    );
    assert!(
        field(json!({"type": "string", "pattern": "^(a+)+$"}), json!("a".repeat(5_000) + "b"))
            .is_err()
    );
    assert!(field(json!({"type": "string", "format": "email"}), json!("nobody")).is_err());
}

#[test]
fn portable_declarations() {
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let cases = [
        (json!({"properties": {}}), "\"type\": \"object\""),
        (json!({"type": "object", "anyOf": [{}]}), "at the root"),
        (object(json!({"a b": {}})), "\"a b\""),
        (object(json!({"l": {"type": "array"}})), "no `items`"),
        (object(json!({"l": {"anyOf": [{"type": "array"}]}})), "no `items`"),
        (object(json!({"l": {"type": "array", "prefixItems": [{}]}})), "no `items`"),
        (object(json!({"l": {"type": "array", "items": [{}]}})), "one schema"),
        (json!({"type": "object", "$schema": "http://json-schema.org/draft-04/schema#"}), "draft"),
        (json!({"type": "nonsense"}), "type"),
    ];
    for (schema, expected) in cases {
        let reason = refusal(schema.clone(), Rules::Portable);
        assert!(reason.contains(expected), "{schema}: {reason}");
    }
    // A field may be called `type`.
    let fine = toolset(object(json!({"type": {"type": "string"}})), Rules::Portable);
    assert_eq!(fine.declarations()[0].parameters["required"], json!([]));
    for name in ["", "1st", "a b", "ünïcode", &"x".repeat(64)] {
        let tool = FnTool::text(name, "").shared();
        assert_eq!(Toolset::new([tool], Rules::Portable).refused().len(), 1, "{name:?}");
    }
}

#[test]
fn the_final_text_is_parsed_strictly() {
    let good = [
        ("", json!({})),
        ("  ", json!({})),
        ("{\"a\": 1, \"a\": 2}", json!({"a": 2})),
        ("{\"a\": \"two\nlines\tand\"}", json!({"a": "two\nlines\tand"})),
    ];
    for (text, expected) in good {
        let parsed = parse(text).unwrap_or_else(|malformed| panic!("{malformed:?}"));
        assert_eq!(Value::Object((*parsed).clone()), expected, "{text}");
    }
    let bad = [
        "{\"value\": \"half a bo",
        "{\"n\": 48151",
        "{\"a\": 1}{\"b\": 2}",
        "{\"a\": 1} and more",
        "null",
        "[1]",
        "\"{\\\"a\\\": 1}\"",
        "{\"a\": \"\\ud800\"}",
        "{\"a\": 1,}",
        "{oops",
        // `\n` would become a line break, whatever is made of `\d`.
        r#"{"path": "C:\dir\new"}"#,
        r#"{"u": "\u00"}"#,
    ];
    for text in bad {
        let malformed = parse(text).expect_err(text);
        assert_eq!(malformed.text, text);
    }
    assert!(parse(&("{\"a\":".repeat(200) + "1" + &"}".repeat(200))).is_err());
}

/// Runs where a stack overflow would be as near as in an executor's thread.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    thread.spawn(test).unwrap().join().unwrap();
}

/// A chain of references: each definition is the next one.
fn chained(length: usize, last: Value) -> Value {
    let mut defs = serde_json::Map::new();
    for at in 0..length {
        defs.insert(format!("{at:x}"), json!({"$ref": format!("#/$defs/{:x}", at + 1)}));
    }
    defs.insert(format!("{length:x}"), last);
    json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/0"}}, "$defs": defs})
}

#[test]
fn a_long_chain_of_references_does_not_overflow_the_stack() {
    on_a_small_stack(|| {
        let reason = refusal(chained(2_000, json!({})), Rules::Portable);
        assert!(reason.contains("deeper than 128 levels"), "{reason}");
        // Met from its end, so that each definition is known when the next one is looked at.
        let mut schema = chained(2_000, json!({}));
        let fields: serde_json::Map<String, Value> = (0..2_000)
            .rev()
            .step_by(50)
            .map(|at| (format!("f{at}"), json!({"$ref": format!("#/$defs/{at:x}")})))
            .collect();
        schema["properties"] = Value::Object(fields);
        assert!(refusal(schema, Rules::Portable).contains("deeper than 128 levels"));
        let fine = toolset(chained(100, json!({"type": "integer"})), Rules::Portable);
        assert!(arguments(&fine, json!({"f": 1})).is_ok());
        assert!(arguments(&fine, json!({"f": {}})).is_err());
    });
}

#[test]
fn a_recursive_check_does_not_overflow_the_stack() {
    on_a_small_stack(|| {
        let next = json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/0"}}});
        let toolset = toolset(chained(100, next), Rules::Lenient);
        let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"f": inner}));
        assert!(arguments(&toolset, nested(4)).is_ok());
        let error = arguments(&toolset, nested(120)).unwrap_err();
        assert!(error.contains("beyond the limit"), "{error}");
    });
}

#[test]
fn a_schema_that_is_itself_is_refused() {
    for schema in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "allOf": [{"$ref": "#/$defs/a"}],
               "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
    ] {
        let reason = refusal(schema, Rules::Lenient);
        assert!(reason.contains("for the same value"), "{reason}");
    }
}

#[test]
fn pointers_have_one_root() {
    // Counted from the root, the reference leads to nothing much; a validator that minds `$id` would
    // follow it into 2^20 alternatives.
    let mut inner = chain(20, "anyOf")["$defs"].clone();
    inner["x"] = inner["l0"].clone();
    let schema = json!({
        "type": "object",
        "properties": {"f": {"$id": "https://example.com/inner", "$ref": "#/$defs/x", "$defs": inner}},
        "$defs": {"x": {}},
    });
    let reason = refusal(schema, Rules::Portable);
    assert!(reason.contains("\"$id\" below its root"), "{reason}");
    let field = json!({"type": "object", "properties": {"id": {"type": "string"}}});
    assert!(!toolset(field, Rules::Portable).is_empty(), "a field may be called so");
}

/// Each of these took minutes, or gigabytes.
#[test]
fn the_work_of_a_check_is_bounded() {
    let list = |item: Value| json!({"type": "object", "properties": {"f": {"type": "array", "items": item}}});
    let many = |keyword: &str, one: &dyn Fn(usize) -> Value, count: usize| json!({keyword: (0..count).map(one).collect::<Vec<_>>()});
    let pattern = |n: usize| json!({"pattern": format!("(.{{1,100}}{n})+$")});
    let ones = |count: usize| json!({"f": vec![1; count]});
    let cases = [
        (list(many("allOf", &|n| json!({"maximum": n + 9}), 3_000)), ones(400_000)),
        (list(json!({"enum": (10..9_000).collect::<Vec<_>>()})), ones(400_000)),
        (list(many("allOf", &pattern, 8)), json!({"f": ["a".repeat(4_000_000)]})),
        (
            json!({"type": "object", "properties": {"f": many("allOf", &|_| json!({"uniqueItems": true}), 2_000)}}),
            ones(200_000),
        ),
        (
            json!({"type": "object", "properties": {"f": {"propertyNames": many("allOf", &pattern, 8)}}}),
            json!({"f": {"a".repeat(4_000_000): 1}}),
        ),
    ];
    for (schema, value) in cases {
        let toolset = toolset(schema, Rules::Portable);
        let began = Instant::now();
        let refused = arguments(&toolset, value).is_err_and(|e| e.contains("beyond the limit"));
        assert!(refused, "{:?}", toolset.declarations()[0].parameters.to_string().get(..200));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    let fine = toolset(list(json!({"type": "integer"})), Rules::Portable);
    assert!(arguments(&fine, ones(400_000)).is_ok());
}

#[test]
fn schemas_that_look_again_are_multiplied_out() {
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let nested = |levels: usize| {
            (0..levels).fold(json!({}), |inner, _| json!({"anyOf": [inner], keyword: false}))
        };
        let schema = |levels| json!({"type": "object", "properties": {"f": nested(levels)}});
        assert!(refusal(schema(20), Rules::Portable).contains("multiplied out"));
        assert!(!toolset(schema(3), Rules::Portable).is_empty());
    }
}

#[test]
fn patterns_are_few() {
    let patterns: Vec<Value> =
        (0..500).map(|n| json!({"pattern": format!("[^x]{{200}}{n}")})).collect();
    let schema = json!({"type": "object", "properties": {"f": {"anyOf": patterns}}});
    assert!(refusal(schema, Rules::Portable).contains("500 patterns"));
}

/// The errors of 1,500 alternatives had a copy each of what is wrong: two gigabytes.
#[test]
fn large_arguments_are_not_explained_alternative_by_alternative() {
    let branches: Vec<Value> = (0..1_500).map(|n| json!({"required": [format!("z{n}")]})).collect();
    let schema = json!({"type": "object", "properties": {"f": {"anyOf": branches}}});
    let toolset = toolset(schema, Rules::Portable);
    let fields = |count: usize| {
        let fields = (0..count).map(|n| (format!("k{n}"), json!(1)));
        json!({"f": Value::Object(fields.collect())})
    };
    assert!(arguments(&toolset, fields(900)).unwrap_err().contains("too large to say where"));
    let error = arguments(&toolset, fields(9)).unwrap_err();
    assert!(error.contains("the field"), "{error}");
}
