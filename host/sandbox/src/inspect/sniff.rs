//! What a file is if it is no component, told by its first bytes.

use super::Refused;
use crate::text::visible;
use wasmparser::{Parser, Payload};

const BUILD: &str =
    "build a component, with cargo build --target wasm32-wasip2 or cargo component build";

/// What the file is, if it is not WebAssembly of a version that this host reads.
pub(super) fn not_wasm(bytes: &[u8]) -> Option<Refused> {
    let refused =
        |what: &str, advice: &str| Some(Refused { what: what.into(), advice: advice.into() });
    match bytes {
        [] => refused("this file is empty", "build it or fetch it again"),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] | [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => None,
        [0, b'a', b's', b'm', a, b, 1, 0, ..] => refused(
            &format!("this is a component in the pre-standard format {a:#x}{b:02x}"),
            "build it with current tools",
        ),
        [0, b'a', b's', b'm', ..] => refused(
            "this begins like WebAssembly but is cut, or of a version that this host does not read",
            "build it or fetch it again",
        ),
        [0x1f, 0x8b, ..] => {
            refused("this is a gzip archive", "unpack it and give the .wasm file inside")
        }
        [b'P', b'K', 3 | 5 | 7, ..] => {
            refused("this is a zip archive", "unpack it and give the .wasm file inside")
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            refused("this is a zstd archive", "unpack it and give the .wasm file inside")
        }
        [0x7f, b'E', b'L', b'F', ..] => refused(
            "this is an ELF file: a native program, or a component compiled ahead of time, which no host may take from strangers",
            BUILD,
        ),
        [b'M', b'Z', ..] => refused("this is a Windows program", BUILD),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => {
            refused("this is a native program or a Java class", BUILD)
        }
        _ => Some(text(bytes)),
    }
}

/// What a file is that begins like nothing binary.
fn text(bytes: &[u8]) -> Refused {
    let refused = |what: String, advice: &str| Refused { what, advice: advice.into() };
    let head = &bytes[..bytes.len().min(512)];
    let Some(head) = readable(head) else {
        return refused("this is no WebAssembly: an unknown binary format".into(), BUILD);
    };
    let lower = head.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let is = |starts: &[&str]| starts.iter().any(|start| lower.starts_with(start));
    if is(&["<!doctype html", "<html", "<head", "<body"]) {
        return refused(
            "this is an HTML page, not a plugin".into(),
            "check the address that it came from",
        );
    }
    if is_wasm_text(bytes) {
        return refused(
            "this is WebAssembly text".into(),
            "a .wat file is taken by `cofferdam plugin call`; elsewhere give the binary, which wasm-tools parse makes",
        );
    }
    if is(&["version https://git-lfs"]) {
        return refused(
            "this is a pointer of Git LFS, not the file itself".into(),
            "run git lfs pull",
        );
    }
    let first = head.lines().next().unwrap_or_default();
    refused(format!("this is a text file that begins with `{}`", visible(first, 60)), BUILD)
}

/// Whether a file is WebAssembly text, after comments and space.
pub(super) fn is_wasm_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut rest = text.trim_start();
    while rest.starts_with(";;") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest.strip_prefix('(').map(str::trim_start).is_some_and(|word| {
        word.starts_with("component") || word.starts_with("module") || word.starts_with(';')
    })
}

/// The head of a file as text, if it is text up to a character that the cut may have split.
fn readable(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    text.chars().all(|c| !c.is_control() || c.is_whitespace()).then_some(text)
}

/// A core module is one step away from a plugin, so say which step.
pub(super) fn core_module(bytes: &[u8]) -> Refused {
    let mut wasi = false;
    let mut unwrapped = false;
    for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
        match payload {
            Payload::ImportSection(section) => {
                wasi |= section
                    .into_imports()
                    .map_while(Result::ok)
                    .any(|import| import.module == "wasi_snapshot_preview1");
            }
            Payload::CustomSection(section) => {
                unwrapped |= section.name().starts_with("component-type");
            }
            _ => {}
        }
    }
    let (what, advice) = match (unwrapped, wasi) {
        (true, _) => (
            "this is a core module that was built for a component and never made one",
            "build it with cargo build --target wasm32-wasip2, or run wasm-tools component new",
        ),
        (false, true) => ("this is a core module (wasm32-wasip1), not a component", BUILD),
        (false, false) => ("this is a core module, not a component", BUILD),
    };
    Refused { what: what.into(), advice: advice.into() }
}

#[cfg(test)]
mod tests {
    use super::super::inspect;

    #[test]
    fn odd_files() {
        for (bytes, part) in [
            (&b""[..], "is empty"),
            (b"\0asm", "is cut"),
            (b"\0asm\x02\0\0\0", "is cut, or of a version"),
            (b"\0asm\x0a\0\x01\0", "pre-standard"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"PK\x03\x04", "zip archive"),
            (b"\x7fELF", "ELF"),
            (b"MZ\x90", "Windows"),
            (b"<!DOCTYPE html><html>", "HTML"),
            (b"\n  <html lang=en>", "HTML"),
            (b"(module)", "WebAssembly text"),
            (b";; a comment\n (component)", "WebAssembly text"),
            (b"#!/bin/sh\nrm", "begins with `#!/bin/sh`"),
            (b"\x00\x01\x02", "unknown binary"),
            (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        ] {
            let refused = inspect(bytes).expect_err("no plugin");
            assert!(refused.what.contains(part), "{}", refused.what);
            assert!(!refused.advice.is_empty());
        }
    }
}
