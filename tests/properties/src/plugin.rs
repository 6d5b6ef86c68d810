//! Plugin files, and what plugins declare.

use crate::texts::is_harmless;
use arbitrary::{Arbitrary, Result, Unstructured};
use cofferdam_agent::testing::FnTool;
use cofferdam_agent::tool::Execution;
use cofferdam_agent::toolset::{Rules, Toolset};
use cofferdam_sandbox::testing::{Declared, check_tools, stored_values};
use cofferdam_sandbox::{component_bytes, inspect as inspected, sha256_hex};

/// Any file is a plugin or is refused in words, and nothing that it says drives a terminal.
pub fn inspect(bytes: &[u8]) {
    match inspected(bytes) {
        Ok(inspection) => {
            assert_eq!(inspection.size_bytes, bytes.len() as u64);
            assert_eq!(inspection.sha256, sha256_hex(bytes));
            let names = inspection.exports.iter().chain(&inspection.imports);
            assert!(names.into_iter().all(|name| is_harmless(name)));
            assert!(is_harmless(&format!("{:?}", inspection.metadata)));
        }
        Err(refused) => {
            assert!(!refused.what.is_empty() && !refused.advice.is_empty());
            assert!(is_harmless(&refused.to_string()), "{refused}");
        }
    }
}

/// Text becomes a binary or is refused in words.
pub fn wat(bytes: &[u8]) {
    match component_bytes(bytes, true) {
        Ok(binary) if *binary != *bytes => {
            assert!(binary.starts_with(b"\0asm"));
            inspect(&binary);
        }
        Ok(_) => {}
        Err(refused) => assert!(is_harmless(&refused.to_string()), "{refused}"),
    }
}

/// Every tool is offered, with a name that every provider takes, or refused in words.
pub fn declarations(bytes: &[u8]) {
    let Ok(tools) = tools(&mut Unstructured::new(bytes)) else { return };
    let count = tools.len();
    let (offered, refused) = check_tools(tools);
    assert!(offered.len() + refused.len() <= count);
    for tool in &refused {
        assert!(is_harmless(&tool.name) && !tool.reason.is_empty());
        assert!(is_harmless(&tool.reason), "{}", tool.reason);
    }
    let tools = offered.iter().map(|spec| {
        let declared = &spec.declaration;
        assert!(is_harmless(declared.label.as_deref().unwrap_or_default()), "{declared:?}");
        FnTool::text(&declared.name, "").with_parameters(declared.parameters.clone()).shared()
    });
    for refused in Toolset::new(tools, Rules::Portable).refused() {
        assert!(is_harmless(&refused.reason), "{}", refused.reason);
    }
}

fn tools(u: &mut Unstructured<'_>) -> Result<Vec<Declared>> {
    let mut tools = Vec::new();
    while !u.is_empty() && tools.len() < 300 {
        let text = |u: &mut Unstructured<'_>, usual: &str| -> Result<String> {
            Ok(if u.ratio(1, 2)? { usual.to_owned() } else { String::arbitrary(u)? })
        };
        tools.push(Declared {
            name: text(u, "tool")?,
            label: u.arbitrary()?,
            description: text(u, "does")?,
            parameters: text(u, r#"{"type":"object","properties":{"a":{"type":"string"}}}"#)?,
            execution: match u.int_in_range(0..=2)? {
                0 => Execution::Parallel,
                1 => Execution::Sequential,
                _ => Execution::Exclusive(u.arbitrary()?),
            },
            meta: u.arbitrary()?,
        });
    }
    Ok(tools)
}

/// A damaged file of a key-value store is no store.
pub fn key_value(bytes: &[u8]) {
    if let Some(values) = stored_values(bytes) {
        let held: usize = values.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(held <= bytes.len());
    }
}
