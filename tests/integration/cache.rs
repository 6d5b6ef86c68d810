//! Compiled code that several processes share.

use crate::cofferdam;
use cofferdam_tests::{plugin, run};
use std::process::{Command, Stdio};

fn call(cache: &std::path::Path) -> Command {
    let mut command = cofferdam();
    command
        .env("COFFERDAM_CACHE_DIR", cache)
        .args(["plugin", "call"])
        .arg(plugin("calc"))
        .args(["calc", r#"{"expressions": ["2^64"]}"#])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn answers(ran: &cofferdam_tests::Ran) {
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("18446744073709551616"), "{ran:?}");
}

#[test]
fn processes_at_once_all_succeed_and_leave_one_entry() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("compiled");
    let running: Vec<_> = (0..3).map(|_| call(&cache).spawn().unwrap()).collect();
    for process in running {
        answers(&process.wait_with_output().unwrap().into());
    }
    let names: Vec<String> = std::fs::read_dir(&cache)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert_eq!((count(".cwasm"), count(".index"), names.len() <= 3), (1, 1, true), "{names:?}");
    answers(&run(&mut call(&cache)));
}

#[test]
fn without_a_folder_each_process_compiles() {
    answers(&run(&mut call(std::path::Path::new(""))));
}

#[test]
fn a_folder_that_others_may_enter_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    answers(&run(&mut call(folder.path())));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
