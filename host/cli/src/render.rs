//! How things look: lines for people, JSON for programs.

pub(crate) mod fold;
mod json;
mod lines;
mod paint;
mod receipt;

pub(crate) use cofferdam_app::receipt::summary;
pub(crate) use json::JsonLines;
pub(crate) use lines::{Lines, answer, changes, ended_early, partial_line, preview, retry, text};
pub(crate) use paint::Paint;
pub(crate) use receipt::receipt_table;

use cofferdam_sandbox::text::{harmless, is_unseen};
use serde_json::Value;
use std::io::{self, Write};

/// Where rendered lines go. A reader that went away ends the output, not the process: what was
/// asked for goes on to its end and its exit code.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Output {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Output {
    /// Writes one line, whole. Whatever is in it does not drive a terminal.
    pub(crate) fn line(self, line: &str) {
        self.write(&format!("{}\n", harmless(line)));
    }

    /// Writes one line with the colours of [`Paint`] in it. What is painted is made harmless first:
    /// a plugin's text must not choose its own colour.
    pub(crate) fn painted(self, line: &str) {
        self.write(&format!("{}\n", paint::harmless_but_colours(line)));
    }

    /// Writes a question: text whose last line is left open.
    pub(crate) fn question(self, text: &str) {
        self.write(&harmless(text));
    }

    /// Writes one value as a line of JSON that is pure where people could look at it.
    pub(crate) fn json(self, value: &Value) {
        self.write(&format!("{}\n", pure_json(&value.to_string())));
    }

    fn write(self, text: &str) {
        let written = match self {
            Output::Out => write(&mut io::stdout().lock(), text),
            Output::Err => write(&mut io::stderr().lock(), text),
        };
        // Nobody reads any more, and there is nobody left to tell.
        drop(written);
    }
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// The same JSON with the characters written out that JSON allows and a terminal obeys, such as
/// escapes of 8 bits. They can stand in strings only, where each is the same as its escape.
pub(crate) fn pure_json(json: &str) -> String {
    let mut pure = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                pure.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            pure.push(c);
        }
    }
    pure
}

#[cfg(test)]
mod tests {
    use super::pure_json;

    #[test]
    fn json_is_the_same_and_drives_no_terminal() {
        let value = serde_json::json!({"a\u{9b}2J": ["\u{202e}x\u{e0041}\x1b[31m\n", "日本"]});
        let pure = pure_json(&value.to_string());
        assert_eq!(pure, r#"{"a\u009b2J":["\u202ex\udb40\udc41\u001b[31m\n","日本"]}"#);
        let again: serde_json::Value = serde_json::from_str(&pure).expect("JSON");
        assert_eq!(again, value);
    }
}
