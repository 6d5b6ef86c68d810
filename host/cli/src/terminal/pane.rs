//! The terminal's own rows: finished ones go up into its scrollback, as of any program, and the live
//! ones stay below them and are drawn over again.
//!
//! Only moves relative to the cursor are used. An inline viewport of ratatui has one height for good
//! and asks the terminal where its cursor is, an answer that comes among the keys or not at all; here
//! nothing has to be known of what is above. Each frame is one write.

use crate::render::fold::columns;
use cofferdam_sandbox::text::is_unseen;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The live rows, and where the cursor stands in them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Frame {
    pub(super) rows: Vec<Line<'static>>,
    /// Row and column.
    pub(super) cursor: (usize, usize),
}

/// The rows on the screen.
pub(super) struct Pane<W> {
    out: W,
    /// Columns of the terminal when it was last drawn.
    width: usize,
    shown: Frame,
}

impl<W: Write> Pane<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, width: 0, shown: Frame::default() }
    }

    /// Puts finished rows above the live ones, and shows those of the frame. `width` is how many
    /// columns the terminal has.
    pub(super) fn draw(
        &mut self,
        done: &[Line<'static>],
        frame: Frame,
        width: usize,
    ) -> io::Result<()> {
        if done.is_empty() && frame == self.shown && width == self.width {
            return Ok(());
        }
        // As one change where the terminal knows that, and without a cursor that flies about.
        let mut text = String::from("\x1b[?2026h\x1b[?25l");
        self.go_to_top(&mut text, width);
        if width != self.width {
            // A terminal remembers which of its rows it has wrapped, unless they are cleared.
            text.push_str("\x1b[J");
        }
        for row in done {
            push_row(&mut text, row);
            text.push_str("\r\n");
        }
        // A live row that is wider than thought must not become two.
        text.push_str("\x1b[?7l");
        for (at, row) in frame.rows.iter().enumerate() {
            if at > 0 {
                text.push_str("\r\n");
            }
            push_row(&mut text, row);
        }
        text.push_str("\x1b[J\x1b[?7h\r");
        let (row, column) = frame.cursor;
        move_by(&mut text, frame.rows.len().saturating_sub(row + 1), 'A');
        move_by(&mut text, column, 'C');
        text.push_str("\x1b[?25h\x1b[?2026l");
        (self.shown, self.width) = (frame, width);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Begins anew on an empty screen.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.shown = Frame::default();
        self.out.write_all(b"\x1b[H\x1b[2J")
    }

    /// To where the live rows begin. A terminal that became narrower has wrapped them.
    fn go_to_top(&self, text: &mut String, width: usize) {
        let rows_of = |columns: usize| match width {
            0 => 1,
            width if width < self.width => columns.max(1).div_ceil(width),
            _ => 1,
        };
        let (row, column) = self.shown.cursor;
        let above: usize =
            self.shown.rows.iter().take(row).map(|row| rows_of(row_columns(row))).sum();
        let wrapped = rows_of(column + 1) - 1;
        move_by(text, above + wrapped, 'A');
        text.push('\r');
    }
}

fn row_columns(row: &Line<'_>) -> usize {
    row.spans.iter().map(|span| columns(&span.content)).sum()
}

fn move_by(text: &mut String, cells: usize, direction: char) {
    if cells > 0 {
        // A String takes everything.
        let _ = write!(text, "\x1b[{cells}{direction}");
    }
}

/// A row, and nothing behind it. Whatever its text is, only what stands here drives the terminal.
fn push_row(text: &mut String, row: &Line<'_>) {
    for span in &row.spans {
        let style = row.style.patch(span.style);
        push_style(text, style);
        for c in span.content.chars() {
            match is_unseen(c) {
                true => text.extend(c.escape_unicode()),
                false => text.push(c),
            }
        }
        if style != Style::new() {
            text.push_str("\x1b[0m");
        }
    }
    text.push_str("\x1b[K");
}

fn push_style(text: &mut String, style: Style) {
    for (modifier, code) in [(Modifier::BOLD, "1"), (Modifier::DIM, "2")] {
        if style.add_modifier.contains(modifier) {
            let _ = write!(text, "\x1b[{code}m");
        }
    }
    let code = match style.fg {
        Some(Color::Red) => "31",
        Some(Color::Green) => "32",
        Some(Color::Yellow) => "33",
        Some(Color::Cyan) => "36",
        _ => return,
    };
    let _ = write!(text, "\x1b[{code}m");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Paint;
    use crate::terminal::theme::Theme;

    fn rows(texts: &[&str]) -> Vec<Line<'static>> {
        texts.iter().map(|text| Theme::row(Style::new(), *text)).collect()
    }

    fn frame(texts: &[&str], cursor: (usize, usize)) -> Frame {
        Frame { rows: rows(texts), cursor }
    }

    /// A pane that writes to memory, and the terminal that shows it.
    struct Desk {
        pane: Pane<Vec<u8>>,
        terminal: vt100::Parser,
        width: usize,
    }

    impl Desk {
        fn new(rows: u16, width: u16) -> Self {
            let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
            let terminal = vt100::Parser::new(size(rows), size(width), 5_000);
            Self { pane: Pane::new(Vec::new()), terminal, width: width.into() }
        }

        fn draw(&mut self, done: &[&str], frame: Frame) {
            self.pane.draw(&rows(done), frame, self.width).expect("memory takes everything");
            self.terminal.process(&std::mem::take(&mut self.pane.out));
        }

        fn shown(&self) -> String {
            self.terminal.screen().contents().trim_end().to_owned()
        }

        fn cursor(&self) -> (u16, u16) {
            self.terminal.screen().cursor_position()
        }
    }

    #[test]
    fn finished_rows_go_above_the_live_ones_which_grow_and_shrink() {
        let mut desk = Desk::new(8, 20);
        desk.draw(&["hello"], frame(&["live 1", "> "], (1, 2)));
        assert_eq!(desk.shown(), "hello\nlive 1\n>");
        assert_eq!(desk.cursor(), (2, 2));
        desk.draw(&["done 1"], frame(&["live 2", "live 3", "> x", "hint"], (2, 3)));
        assert_eq!(desk.shown(), "hello\ndone 1\nlive 2\nlive 3\n> x\nhint");
        assert_eq!(desk.cursor(), (4, 3));
        desk.draw(&[], frame(&["> "], (0, 2)));
        assert_eq!(desk.shown(), "hello\ndone 1\n>");
        desk.draw(&["done 2"], Frame::default());
        assert_eq!(desk.shown(), "hello\ndone 1\ndone 2");
    }

    #[test]
    fn whatever_comes_and_goes_every_finished_row_is_there_once_and_the_live_ones_below() {
        let mut seed = 7_u32;
        let mut chance = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        let mut desk = Desk::new(12, 20);
        let mut all: Vec<String> = Vec::new();
        for step in 0..500 {
            let done: Vec<String> = (0..chance(4)).map(|n| format!("done {step} {n}")).collect();
            let live: Vec<String> =
                (0..=chance(10)).map(|n| format!("live {}", n * chance(9))).collect();
            all.extend(done.iter().cloned());
            let row = chance(u32::try_from(live.len()).expect("few"));
            let cursor = (usize::try_from(row).expect("few"), 3);
            let texts = |rows: &[String]| {
                rows.iter().map(|row| Theme::row(Style::new(), row)).collect::<Vec<_>>()
            };
            let frame = Frame { rows: texts(&live), cursor };
            desk.pane.draw(&texts(&done), frame, 20).expect("memory takes everything");
            desk.terminal.process(&std::mem::take(&mut desk.pane.out));
            let shown = desk.shown();
            let shown: Vec<&str> = shown.lines().collect();
            let want: Vec<&str> = all.iter().chain(&live).map(String::as_str).collect();
            assert!(shown.len() >= live.len() && want.ends_with(&shown), "step {step}: {shown:?}");
        }
        desk.draw(&[], Frame::default());
        desk.terminal.screen_mut().set_scrollback(usize::MAX);
        let above = desk.terminal.screen().scrollback();
        for (at, want) in all.iter().take(above).enumerate() {
            desk.terminal.screen_mut().set_scrollback(above - at);
            assert_eq!(desk.terminal.screen().rows(0, 20).next().as_ref(), Some(want), "{at}");
        }
        assert!(above > 500, "{above}");
    }

    #[test]
    fn what_leaves_the_screen_is_in_the_scrollback() {
        let mut desk = Desk::new(4, 20);
        let done: Vec<String> = (1..=9).map(|n| format!("row {n}")).collect();
        for text in &done {
            desk.draw(&[text], frame(&["live", "> "], (1, 2)));
        }
        assert_eq!(desk.shown(), "row 8\nrow 9\nlive\n>");
        desk.terminal.screen_mut().set_scrollback(7);
        assert_eq!(desk.shown(), "row 1\nrow 2\nrow 3\nrow 4");
    }

    #[test]
    fn the_same_frame_is_not_drawn_again() {
        let mut desk = Desk::new(4, 20);
        desk.draw(&[], frame(&["live"], (0, 1)));
        desk.pane.draw(&[], frame(&["live"], (0, 1)), 20).expect("memory");
        assert_eq!(desk.pane.out, b"");
    }

    #[test]
    fn text_drives_nothing_and_ends_where_it_ends() {
        let mut desk = Desk::new(4, 40);
        desk.draw(&["\x1b[2J\u{9b}31m\u{202e}\r\n\x07"], frame(&["> \x1b]0;x\x07"], (0, 0)));
        assert_eq!(
            desk.shown(),
            "\\u{1b}[2J\\u{9b}31m\\u{202e}\\u{d}\\u{a}\\u{7}\n> \\u{1b}]0;x\\u{7}"
        );
        // A live row that is too wide is cut by the terminal, not wrapped.
        desk.draw(&[], frame(&[&"x".repeat(90), "end"], (1, 0)));
        assert!(desk.shown().ends_with("x\nend"), "{}", desk.shown());
    }

    #[test]
    fn no_colour_is_none_at_all() {
        let plain = Theme::new(Paint::Plain);
        let styles =
            [plain.quiet(), plain.person(), plain.good(), plain.bad(), plain.busy(), plain.asks()];
        let mut text = String::new();
        styles.iter().for_each(|style| push_row(&mut text, &Theme::row(*style, "x")));
        assert_eq!(text, "x\x1b[K".repeat(styles.len()));
        let mut text = String::new();
        push_row(&mut text, &Theme::row(Theme::new(Paint::Colour).asks(), "x"));
        assert_eq!(text, "\x1b[1m\x1b[33mx\x1b[0m\x1b[K");
    }
}
