//! Every property, driven for a second, or for as many as `FUZZ_SECONDS` says.

use cofferdam_properties as properties;
use cofferdam_properties::drive::drive;
use std::path::Path;

macro_rules! tests {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                drive(stringify!($name), properties::$name, Path::new(env!("CARGO_TARGET_TMPDIR")));
            }
        )+
    };
}

properties::for_each_property!(tests);

/// A corpus without a property would never be read, a property without a target never be fuzzed.
#[test]
fn each_property_has_its_corpus_and_its_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(fuzz.join(folder)).unwrap().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names
    };
    let mut all: Vec<&str> = properties::ALL.iter().map(|(name, _)| *name).collect();
    all.sort_unstable();
    assert_eq!(names("corpus"), all);
    assert_eq!(names("fuzz_targets"), all);
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in all {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "no [[bin]] for {name}");
    }
}
