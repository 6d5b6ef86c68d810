//! What is coloured, and how: nothing where colours are unwanted.

use crate::render::Paint;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

/// The styles of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    paint: Paint,
}

impl Theme {
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint }
    }

    /// For what matters less.
    pub(super) fn quiet(self) -> Style {
        self.style(Style::new().dim())
    }

    /// For what the person said.
    pub(super) fn person(self) -> Style {
        self.style(Style::new().bold())
    }

    /// For what went right.
    pub(super) fn good(self) -> Style {
        self.style(Style::new().fg(Color::Green))
    }

    /// For what went wrong.
    pub(super) fn bad(self) -> Style {
        self.style(Style::new().fg(Color::Red))
    }

    /// For what is going on.
    pub(super) fn busy(self) -> Style {
        self.style(Style::new().fg(Color::Cyan))
    }

    /// For what waits for the person.
    pub(super) fn asks(self) -> Style {
        self.style(Style::new().fg(Color::Yellow).bold())
    }

    /// A row of one style.
    pub(super) fn row(style: Style, text: impl Into<String>) -> Line<'static> {
        Line::from(Span::styled(text.into(), style))
    }

    fn style(self, style: Style) -> Style {
        match self.paint {
            Paint::Colour => style,
            Paint::Plain => Style::new(),
        }
    }
}
