//! Guests for tests: a frame of a plugin with one tool, `run`, and what fills it.

pub(crate) mod hostile;
pub(crate) mod imports;

/// The parts of a guest. Empty ones take no part.
#[derive(Default, Clone)]
pub(crate) struct Guest {
    /// Component imports.
    pub(crate) imports: &'static str,
    /// Lowered imports, core functions of the component.
    pub(crate) lowered: &'static str,
    /// Imports of the core module.
    pub(crate) core_imports: &'static str,
    /// Further arguments of the core module's instantiation.
    pub(crate) with: &'static str,
    /// Functions, data and start sections of the core module.
    pub(crate) functions: &'static str,
    /// At the beginning of `list-tools`.
    pub(crate) list: &'static str,
    /// At the beginning of the allocator.
    pub(crate) realloc: &'static str,
    /// The body of `call-tool`; answers its arguments if empty.
    pub(crate) call: &'static str,
    /// Pages of memory; one if zero.
    pub(crate) pages: u32,
}

const FRAME: &str = include_str!("frame.wat");

impl Guest {
    /// A guest whose tool does this.
    pub(crate) fn call(call: &'static str) -> Self {
        Self { call, ..Self::default() }
    }

    /// The guest as text.
    pub(crate) fn text(&self) -> String {
        let call = if self.call.is_empty() {
            "(call $answer (local.get $args) (local.get $args-size))"
        } else {
            self.call
        };
        FRAME
            .replace("@IMPORTS@", self.imports)
            .replace("@LOWERED@", self.lowered)
            .replace("@CORE_IMPORTS@", self.core_imports)
            .replace("@WITH@", self.with)
            .replace("@FUNCTIONS@", self.functions)
            .replace("@LIST@", self.list)
            .replace("@REALLOC@", self.realloc)
            .replace("@CALL@", call)
            .replace("@PAGES@", &self.pages.max(1).to_string())
    }
}
