//! Limits in an operator's file are the limits that the plugin is loaded with. That each of them bites
//! at exactly its value is tested where they are enforced.
#![allow(clippy::unwrap_used)]

use cofferdam_app::Config;
use cofferdam_sandbox::Limits;

fn limits_of(line: &str) -> Result<Limits, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cofferdam.toml");
    let text = format!("[[plugins]]\nname = \"a\"\npath = \"a.wasm\"\nlimits = {{ {line} }}\n");
    std::fs::write(&path, text).unwrap();
    let config = Config::read(&path).map_err(|problem| problem.to_string())?;
    Ok(config.plugins[0].limits.clone())
}

#[test]
fn each_limit_is_in_force_as_it_was_written() {
    for key in Limits::KEYS {
        // Within the range of each, and the default of none.
        let limits = limits_of(&format!("{key} = 37")).unwrap();
        for (row, default) in limits.rows().iter().zip(Limits::default().rows()) {
            let wanted = if row.key == *key { "37" } else { &default.value };
            assert_eq!(row.value, wanted, "{} where {key} = 37", row.key);
        }
        let problem = limits_of(&format!("{key} = \"many\"")).unwrap_err();
        assert!(problem.contains("cofferdam.toml:4:") && problem.contains(key), "{problem}");
        let problem = limits_of(&format!("{key}x = 37")).unwrap_err();
        assert!(problem.contains(&format!("did you mean `{key}`?")), "{problem}");
    }
}
