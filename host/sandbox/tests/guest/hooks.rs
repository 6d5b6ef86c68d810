//! Guests that are hooks and nothing else.

use super::{Guest, without_blank_lines};

const FRAME: &str = include_str!("hooks.wat");

/// What both hooks do; nothing said, the first proceeds and the second keeps the result.
#[derive(Default, Clone)]
pub(crate) struct Hooks {
    /// Imports, functions and data, as of a guest with a tool.
    pub(crate) parts: Guest,
    /// The body of `before`.
    pub(crate) before: &'static str,
    /// The body of `after`.
    pub(crate) after: &'static str,
}

impl Hooks {
    pub(crate) fn before(before: &'static str) -> Self {
        Self { before, ..Self::default() }
    }

    pub(crate) fn after(after: &'static str) -> Self {
        Self { after, ..Self::default() }
    }

    pub(crate) fn text(&self) -> String {
        let or_nothing =
            |body: &'static str| if body.is_empty() { "(i32.const 1024)" } else { body };
        let text = FRAME
            .replace("@IMPORTS@", self.parts.imports)
            .replace("@LOWERED@", self.parts.lowered)
            .replace("@CORE_IMPORTS@", self.parts.core_imports)
            .replace("@WITH@", self.parts.with)
            .replace("@FUNCTIONS@", self.parts.functions)
            .replace("@BEFORE@", or_nothing(self.before))
            .replace("@AFTER@", or_nothing(self.after))
            .replace("@PAGES@", &self.parts.pages.max(1).to_string());
        without_blank_lines(&text)
    }
}
