//! Colour, where there is somebody to see it.

use cofferdam_sandbox::text::harmless;
use std::io::IsTerminal as _;

/// Whether text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// For terminals.
    Colour,
    /// For files, programs and people who set `NO_COLOR`.
    Plain,
}

impl Paint {
    /// What standard output is for. An empty `NO_COLOR` counts as none (no-color.org).
    pub(crate) fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if std::io::stdout().is_terminal() && !unwanted { Self::Colour } else { Self::Plain }
    }

    /// For what went wrong.
    pub(crate) fn red(self, text: &str) -> String {
        self.with(RED, text)
    }

    /// For what went right.
    pub(crate) fn green(self, text: &str) -> String {
        self.with(GREEN, text)
    }

    fn with(self, colour: &str, text: &str) -> String {
        match self {
            Self::Colour => format!("{colour}{text}{PLAIN}"),
            Self::Plain => text.into(),
        }
    }
}

/// A text with our colours in it, and nothing else that drives a terminal.
pub(super) fn harmless_but_colours(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut fit = harmless(parts.next().unwrap_or_default());
    for part in parts {
        let ours = [RED, GREEN, PLAIN].into_iter().find_map(|code| {
            let rest = part.strip_prefix(code.trim_start_matches('\x1b'))?;
            Some((code, rest))
        });
        let (code, rest) = ours.unwrap_or(("\\u{1b}", part));
        fit.push_str(code);
        fit.push_str(&harmless(rest));
    }
    fit
}

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_colours_are_live() {
        let line = format!(
            "a {} \x1b[2J\x1b]0;x\x07 {}\u{9b}",
            Paint::Colour.red("b"),
            Paint::Colour.green("c")
        );
        assert_eq!(
            harmless_but_colours(&line),
            "a \x1b[31mb\x1b[0m \\u{1b}[2J\\u{1b}]0;x\\u{7} \x1b[32mc\x1b[0m\\u{9b}"
        );
        assert_eq!(harmless_but_colours(""), "");
    }
}
