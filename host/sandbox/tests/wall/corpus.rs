//! The hostile files, each against what its row says; and the published copies of them.

use crate::ending::end;
use crate::guest::Guest;
use crate::guest::hostile::{self, End, Hostile};
use crate::support::{SANDBOX, call, grants, limits, load, root, source, text};
use cofferdam_sandbox::{Code, Plugin};
use std::path::PathBuf;
use std::time::Instant;

/// Every hostile file ends as its row says, and a good call works afterwards.
#[tokio::test]
async fn every_file_ends_as_its_row_says() {
    let good = load(&Guest::default(), &[]).await;
    let only = std::env::var("HOSTILE").unwrap_or_default();
    let mut wrong = Vec::new();
    for row in hostile::all().iter().filter(|row| row.file.contains(&only)) {
        let started = Instant::now();
        let end = end(row).await;
        let shown: String = end.chars().take(150).collect();
        eprintln!("{:28} {:>8.1} ms  {shown}", row.file, started.elapsed().as_secs_f64() * 1e3);
        let (phase, words) = match row.end {
            End::Load(words) => ("load".into(), words),
            End::Tool(words) => ("tool".into(), words),
            End::Answer(words) => ("answer".into(), words),
            End::Call(ended_by, words) => (ended_by.to_owned(), words),
            End::Before(action, words) => (format!("before {action}"), words),
            End::After(action, words) => (format!("after {action}"), words),
        };
        let fine = end.starts_with(&format!("{phase}: ")) && end.contains(words);
        if !fine {
            wrong.push(format!("{}: {end:.500}, expected {:?}", row.file, row.end));
        }
        assert_eq!(text(&call(&good, "{}").await), "{}", "after {}", row.file);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn folder() -> PathBuf {
    root().join("tests/guests/hostile")
}

/// The published files are those that the tests run, and the kit says what to expect of each.
#[test]
fn the_published_files_are_up_to_date() {
    let rows = hostile::all();
    let mut files: Vec<(String, Vec<u8>)> =
        rows.iter().map(|row| (row.file.clone(), row.published())).collect();
    files.push(("kit.json".into(), kit(&rows)));
    let update = std::env::var_os("UPDATE").is_some();
    for (name, bytes) in &files {
        let path = folder().join(name);
        if update {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
        let found = std::fs::read(&path).unwrap_or_default();
        assert!(found == *bytes, "{} is old; run the tests with UPDATE=1", path.display());
    }
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let known = name == "README.md" || files.iter().any(|(file, _)| *file == name);
        if !known && update {
            std::fs::remove_file(folder().join(&name)).unwrap();
        } else {
            assert!(known, "no test runs {name}: add a row to guest/hostile or remove it");
        }
    }
}

fn kit(rows: &[Hostile]) -> Vec<u8> {
    let rows: Vec<String> = rows.iter().map(|row| format!("  {}", row.to_json())).collect();
    format!("[\n{}\n]\n", rows.join(",\n")).into_bytes()
}

/// A function too large to compile in time is refused before anybody tries. It is made here because
/// a file of five megabytes is no way to say so.
#[tokio::test]
async fn one_function_of_five_megabytes() {
    let body = "(drop (i32.const 1000000))".repeat(900_000);
    let functions = crate::guest::leak(format!("(func {body})"));
    let guest = Guest { functions, ..Guest::default() };
    let code = Code::Bytes(wat::parse_str(guest.text()).unwrap());
    let Err(error) = Plugin::load(&SANDBOX, source(code), limits(&[]), grants::<&str>(&[])).await
    else {
        panic!("it was loaded")
    };
    assert!(error.to_string().contains("limits.function_kib"), "{error}");
}
