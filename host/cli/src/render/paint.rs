//! Colour, where there is somebody to see it.

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
        self.with("31", text)
    }

    /// For what went right.
    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.into(),
        }
    }
}
