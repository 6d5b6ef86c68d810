//! A hostile guest that no test runs does not build: each file has its row in the kit, and the kit is
//! made from the lists that the tests run.

use std::path::Path;

fn main() {
    let folder = Path::new("guests/hostile");
    println!("cargo::rerun-if-changed={}", folder.display());
    let kit = std::fs::read_to_string(folder.join("kit.json")).unwrap_or_default();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for name in files.filter_map(|file| file.file_name().into_string().ok()) {
        let known = ["README.md", "kit.json"].contains(&&*name);
        if !known && !kit.contains(&format!("\"file\":\"{name}\"")) {
            println!(
                "cargo::error=no test runs tests/guests/hostile/{name}: add a row to host/sandbox/tests/guest/hostile, \
                 or remove it"
            );
        }
    }
}
