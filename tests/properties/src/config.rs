//! What an operator writes.

use cofferdam_app::Config;
use cofferdam_providers::scripted::{Script, Scripted};
use cofferdam_sandbox::Limits;
use std::path::Path;

/// A configuration is one or is refused in words.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Config::parse(text, Path::new("folder/cofferdam.toml")) {
        Ok(config) => {
            for plugin in &config.plugins {
                assert!(plugin.path.starts_with("folder") || plugin.path.is_absolute());
                assert!(plugin.limits.check().is_ok());
                assert!(plugin.grants.check().is_ok());
            }
        }
        Err(problem) => assert!(problem.to_string().len() > "folder/cofferdam.toml: ".len()),
    }
}

/// A limit is set within its range or refused; what is printed can be read back.
pub fn limits(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut limits = Limits::default();
    for pair in text.lines() {
        let before = limits.clone();
        match limits.set_pair(pair) {
            Ok(()) => assert!(limits.check().is_ok(), "{pair}"),
            Err(problem) => {
                assert_eq!(limits, before, "a refused limit changes nothing");
                assert!(!problem.to_string().is_empty());
            }
        }
    }
    let mut again = Limits::default();
    for row in limits.rows() {
        again.set(row.key, &row.value).unwrap_or_else(|problem| panic!("{problem}"));
    }
    assert_eq!(again, limits);
    if let Ok(limits) = toml::from_str::<Limits>(&text) {
        assert!(limits.check().is_ok());
    }
}

/// A script can be played or is refused in words.
pub fn script(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Script::parse(text).and_then(Scripted::new) {
        Ok(model) => assert_eq!(model.used(), 0),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
}
