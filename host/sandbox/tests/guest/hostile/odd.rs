//! Files that are no plugin, or not quite.

use super::{End, Hostile, hostile_file, hostile_text};
use crate::guest::Guest;

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Hostile> {
    vec![
        file("empty.wasm", "Is empty.", Vec::new(), End::Load("is empty")),
        file("page.wasm", "Is the page that a server shows for a file that it does not have.",
            b"<!DOCTYPE html>\n<html><title>404 Not Found</title></html>\n".to_vec(), End::Load("HTML page")),
        file("magic.wasm", "Begins like WebAssembly and ends there.", b"\0asm".to_vec(), End::Load("is cut")),
        file("garbage.wasm", "Begins like a component and goes on at random.",
            [b"\0asm\x0d\0\x01\0".as_slice(), &[0xa5; 200]].concat(), End::Load("damaged or cut")),
        file("section-claim.wasm", "Has a section that says it has 4 GiB.",
            b"\0asm\x0d\0\x01\0\x07\xff\xff\xff\xff\x0f".to_vec(), End::Load("damaged or cut")),
        text("core-module", "Is a core module.", "(module (memory 1))".into(), End::Load("this is a core module")),
        text("not-text", "Is WebAssembly text that does not parse.", "(component (core module $m".into(), End::Load("does not parse")),
        text("text-deep", "Is WebAssembly text with ten thousand open brackets.", "(component ".to_owned() + &"(".repeat(10_000), End::Load("does not parse")),
        text("nothing", "Is a component without exports.", "(component)".into(), End::Load("it exports nothing")),
        text("other-world", "Is a component of another world.",
            "(component (component $c) (instance $i (instantiate $c)) (export \"wasi:cli/run@0.2.0\" (instance $i)))".into(), End::Load("of another world")),
        text("other-version", "Is a plugin of a later contract.", plugin().replace("cofferdam:plugin/tools@0.1.0", "cofferdam:plugin/tools@0.2.0"), End::Load("0.2.0")),
        text("no-functions", "Exports the interface of tools without its functions.",
            "(component (component $c) (instance $i (instantiate $c)) (export \"cofferdam:plugin/tools@0.1.0\" (instance $i)))".into(),
            End::Load("does not fit this host")),
        text("other-shape", "Exports the functions of tools with another shape.",
            "(component
  (core module $m (func (export \"f\") (result i32) (i32.const 0)))
  (core instance $m (instantiate $m))
  (func $f (result u32) (canon lift (core func $m \"f\")))
  (instance $tools (export \"list-tools\" (func $f)) (export \"call-tool\" (func $f)))
  (export \"cofferdam:plugin/tools@0.1.0\" (instance $tools)))".into(), End::Load("expected `list` found `u32`")),
        text("foreign-loop", "Knows nothing of the contract, and has a function that computes for ever.",
            foreign("(func (export \"f\") (loop (br 0)))", "(func (export \"go-on\") (canon lift (core func $m \"f\")))"),
            End::Call("time-limit", "stopped after 300 ms")).tool("go-on").limits(super::FAST),
        text("foreign-claim", "Knows nothing of the contract, and claims to return four billion numbers.",
            foreign("(memory (export \"memory\") 1)
    (func (export \"f\") (result i32) (i32.store (i32.const 16) (i32.const -1)) (i32.const 12))",
                "(func (export \"numbers\") (result (list u64)) (canon lift (core func $m \"f\") (memory (core memory $m \"memory\"))))"),
            End::Call("trap", "")).tool("numbers"),
        text("foreign-list", "Knows nothing of the contract, and returns a million bytes, each of which the host would make a number.",
            foreign("(memory (export \"memory\") 20)
    (func (export \"f\") (result i32) (i32.store (i32.const 16) (i32.const 1000000)) (i32.const 12))",
                "(func (export \"bytes\") (result (list u8)) (canon lift (core func $m \"f\") (memory (core memory $m \"memory\"))))"),
            End::Call("output-limit", "limit host_alloc_mib")).tool("bytes"),
        text("foreign-types", "Knows nothing of the contract, and has a parameter of a quarter of a million numbers.",
            foreign("(memory (export \"memory\") 1)
    (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 0))
    (func (export \"f\") (param i32))",
                &(doubled_types(18) + " (func (export \"wide\") (param \"all\" $n17)
    (canon lift (core func $m \"f\") (memory (core memory $m \"memory\")) (realloc (core func $m \"realloc\"))))")),
            End::Tool("too many types")).tool("wide"),
        text("import-unknown", "Imports what no host of the contract has.",
            importing("(import \"acme:shell/run@1.0.0\" (instance (export \"run\" (func (param \"command\" string)))))"), End::Load("acme:shell/run@1.0.0")),
        text("import-newer", "Imports a function that the contract does not have.",
            importing("(import \"cofferdam:plugin/log@0.1.0\" (instance (export \"erase\" (func))))"), End::Load("erase")),
        text("import-shape", "Imports a function of the contract with another shape.",
            importing("(import \"cofferdam:plugin/config@0.1.0\" (instance (export \"read\" (func (param \"key\" u32)))))"), End::Load("read")),
        text("import-own", "Imports what it is to export.",
            importing("(import \"cofferdam:plugin/tools@0.1.0\" (instance))"), End::Load("does not provide")),
        text("import-function", "Imports a bare function.", importing("(import \"run\" (func))"), End::Load("does not provide")),
        text("types-deep", "Has two hundred types, each a list of the one before.", importing(&nested_types()), End::Load("")),
        text("types-wide", "Has thirty types, each with twice the one before: a billion in the last.", importing(&doubled_types(30)), End::Load("")),
        text("components-deep", "Has two hundred components, each inside of the one before.",
            importing(&("(component ".repeat(200) + &")".repeat(200))), End::Load("")),
        text("exceptions", "Throws an exception.", importing("(core module (tag) (func (throw 0)))"), End::Load("compile the plugin")),
        text("tail-call", "Calls itself for ever without using stack.",
            Guest { functions: "(func $again (result i32) (return_call $again))", call: "(call $again)", ..Guest::default() }.text(),
            End::Call("time-limit", "")).limits(super::FAST),
        text("async", "Says that its function is asynchronous.",
            plugin().replacen("(core func $plugin \"list-tools\")", "(core func $plugin \"list-tools\") async", 1), End::Load("")),
    ]
}

fn text(name: &'static str, does: &'static str, text: String, end: End) -> Hostile {
    hostile_text(name, does, text, end)
}

fn file(name: &str, does: &'static str, bytes: Vec<u8>, end: End) -> Hostile {
    hostile_file(name.into(), does, bytes, end)
}

/// A guest that answers.
fn plugin() -> String {
    Guest::default().text()
}

/// A guest that answers, with these definitions more.
fn importing(definitions: &str) -> String {
    Guest { imports: crate::guest::leak(definitions.to_owned()), ..Guest::default() }.text()
}

/// A component of another world: a core module `$m`, and what is lifted from it.
fn foreign(core: &str, lifted: &str) -> String {
    format!(
        "(component
  (core module $module {core})
  (core instance $m (instantiate $module))
  {lifted})
"
    )
}

fn nested_types() -> String {
    let mut types = String::from("(type $n0 (list u8))");
    for n in 1..200 {
        types += &format!(" (type $n{n} (list $n{}))", n - 1);
    }
    types
}

fn doubled_types(count: usize) -> String {
    let mut types = String::from("(type $n0 (tuple u8 u8))");
    for n in 1..count {
        types += &format!(" (type $n{n} (tuple $n{0} $n{0}))", n - 1);
    }
    types
}
