//! The compiler as a process: whatever it does, loading a plugin ends with a sentence, and nothing of
//! it is left.
#![allow(missing_docs, clippy::unwrap_used)]

#[allow(dead_code)]
mod guest;

use cofferdam_sandbox::{
    Code, CompilerCommand, Grants, Limits, Plugin, PluginSource, Sandbox, SandboxConfig,
};
use guest::Guest;
use std::ffi::OsString;

fn load(program: &str, args: &[&str]) -> String {
    let compiler = CompilerCommand {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
    };
    let config = SandboxConfig { slots: 2, compiler: Some(compiler), ..SandboxConfig::default() };
    let source = PluginSource {
        name: "guest".into(),
        code: Code::Bytes(Guest::default().text().into_bytes()),
        sha256: None,
        accept_text: true,
    };
    let limits = Limits { compile_seconds: 1, ..Limits::default() };
    let sandbox = Sandbox::new(config).unwrap();
    match block_on(Plugin::load(&sandbox, source, limits, Grants::default())) {
        Ok(_) => "loaded".into(),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn a_compiler_that_fails_is_explained() {
    for (args, expected) in [
        ("exit 1", "the compiler gave up on it (exit status: 1)"),
        ("echo 'error: no such type' >&2; exit 1", "compile the plugin: no such type"),
        ("kill -9 $$", "the compiler gave up on it (signal: 9"),
        ("head -c 100000 /dev/zero >&2; exit 1", "compile the plugin: "),
        ("printf '\\033[2J' >&2; exit 1", r"\u{1b}[2J"),
        ("echo nonsense", "map the compiled code"),
        ("exec 0<&-; echo nonsense", "map the compiled code"),
        ("true", "map the compiled code"),
    ] {
        let said = load("/bin/sh", &["-c", args]);
        assert!(said.contains(expected), "{args}: {said}");
    }
    let said = load("/no/such/program", &[]);
    assert!(said.contains("start the compiler"), "{said}");
}

#[test]
fn a_compiler_that_takes_too_long_is_killed() {
    let unique = format!("{}.5", 1_000_000 + std::process::id());
    let said = load("/bin/sleep", &[&unique]);
    assert!(said.contains("longer than 1 s (`limits.compile_seconds`)"), "{said}");
    // The kernel has killed it; that it is reaped as well may take another moment.
    let gone = (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        !running(&unique)
    });
    assert!(gone, "it is still running");
}

/// Whether a process with this argument runs.
fn running(argument: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|process| {
        std::fs::read(process.path().join("cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes()))
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
