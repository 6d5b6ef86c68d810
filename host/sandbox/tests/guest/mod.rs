//! Guests for tests: a frame of a plugin with one tool, `run`, or with both hooks, and what fills it.

pub(crate) mod hooks;
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
    /// At the end of `list-tools`, when the one tool is written.
    pub(crate) listed: &'static str,
    /// At the beginning of the allocator.
    pub(crate) realloc: &'static str,
    /// The body of `call-tool`; answers its arguments if empty.
    pub(crate) call: &'static str,
    /// Further options of `call-tool`, such as ` (post-return (core func $plugin "after"))`.
    pub(crate) lift: &'static str,
    /// Pages of memory; one if zero.
    pub(crate) pages: u32,
}

const FRAME: &str = include_str!("frame.wat");

impl Guest {
    /// A guest whose tool does this.
    pub(crate) fn call(call: &'static str) -> Self {
        Self { call, ..Self::default() }
    }

    /// A guest whose tool has this schema.
    pub(crate) fn with_schema(schema: &str) -> Self {
        let data = schema.replace('\\', "\\5c").replace('"', "\\22");
        let functions = leak(format!("(data (i32.const 3000) \"{data}\")"));
        let listed = leak(format!(
            "(i32.store offset=28 (i32.const 1040) (i32.const 3000)) \
             (i32.store offset=32 (i32.const 1040) (i32.const {}))",
            schema.len()
        ));
        Self { functions, listed, pages: 2, ..Self::default() }
    }

    /// The guest as text.
    pub(crate) fn text(&self) -> String {
        let call = if self.call.is_empty() {
            "(call $answer (local.get $args) (local.get $args-size))"
        } else {
            self.call
        };
        let text = FRAME
            .replace("@IMPORTS@", self.imports)
            .replace("@LOWERED@", self.lowered)
            .replace("@CORE_IMPORTS@", self.core_imports)
            .replace("@WITH@", self.with)
            .replace("@FUNCTIONS@", self.functions)
            .replace("@LISTED@", self.listed)
            .replace("@LIST@", self.list)
            .replace("@REALLOC@", self.realloc)
            .replace("@CALL@", call)
            .replace("@LIFT@", self.lift)
            .replace("@PAGES@", &self.pages.max(1).to_string());
        without_blank_lines(&text)
    }
}

/// What tests make at run time, for as long as they run.
pub(crate) fn leak(text: String) -> &'static str {
    text.leak()
}

/// Parts that are empty leave no lines behind.
fn without_blank_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    let mut kept = String::new();
    let mut blank = false;
    for line in lines {
        if !(line.is_empty() && blank) {
            kept.push_str(line);
            kept.push('\n');
        }
        blank = line.is_empty();
    }
    kept
}
