//! What the person types: some lines, and what was typed before.

use super::history::History;
use crate::render::fold::columns;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::Widget as _;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};

/// The text that is being typed.
pub(super) struct Input {
    area: TextArea<'static>,
    history: History,
    /// Which message of the history is shown, if one is.
    at: Option<usize>,
    /// What was typed before the history was looked at.
    draft: Vec<String>,
}

impl Input {
    pub(super) fn new(history: History) -> Self {
        Self { area: empty(), history, at: None, draft: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    pub(super) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Takes the text, and leaves nothing.
    pub(super) fn take(&mut self) -> String {
        let text = self.text();
        self.set(Vec::new());
        text
    }

    /// Takes the text as something that was said: it is in the history from now on.
    pub(super) fn say(&mut self) -> String {
        let text = self.take();
        self.remember(&text);
        text
    }

    pub(super) fn remember(&mut self, text: &str) {
        self.history.push(text);
    }

    /// Puts lines before what is there.
    pub(super) fn put_back(&mut self, text: &str) {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        if !self.is_empty() {
            lines.extend(self.area.lines().iter().cloned());
        }
        self.set(lines);
    }

    /// Text from the clipboard. Ends of lines are lines, and nothing else in it is a key.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        self.area.insert_str(text.replace(|c: char| c.is_control() && c != '\n', ""));
        self.at = None;
    }

    /// A key that edits or moves.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => self.area.insert_newline(),
            KeyCode::Char('j') if control => self.area.insert_newline(),
            KeyCode::Char('u') if control => {
                self.area.delete_line_by_head();
            }
            KeyCode::Up if self.is_at(CursorMove::Up) => self.browse(true),
            KeyCode::Down if self.is_at(CursorMove::Down) => self.browse(false),
            // Not typed into the text; the view has its own use for it, or none.
            KeyCode::Tab | KeyCode::Esc => {}
            _ => {
                self.area.input(key);
            }
        }
    }

    /// The rows as they are shown, at most so many, and where the cursor is in them.
    pub(super) fn rows(&self, width: usize, rows_max: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(2);
        let area_width = u16::try_from(width).unwrap_or(u16::MAX);
        let height = self.height(width).min(rows_max.max(1));
        let area = Rect::new(0, 0, area_width, u16::try_from(height).unwrap_or(1));
        let mut buffer = Buffer::empty(area);
        (&self.area).render(area, &mut buffer);
        let row = |y| {
            let (mut text, mut x) = (String::new(), 0);
            while let Some(cell) = buffer.cell((x, y)) {
                text.push_str(cell.symbol());
                // Behind a wide character there is a cell that nobody sees.
                x += u16::try_from(columns(cell.symbol())).unwrap_or(1).max(1);
            }
            text.trim_end().to_owned()
        };
        let cursor = self.area.screen_cursor();
        let above = usize::from(self.area.scroll_offset().0);
        ((0..area.height).map(row).collect(), (cursor.row.saturating_sub(above), cursor.col))
    }

    /// How many rows the text takes.
    fn height(&self, width: usize) -> usize {
        let rows = |line: &String| {
            let (mut rows, mut used) = (1, 0);
            for (at, c) in line.char_indices() {
                let wide = columns(&line[at..at + c.len_utf8()]);
                if used + wide > width {
                    (rows, used) = (rows + 1, 0);
                }
                used += wide;
            }
            rows
        };
        self.area.lines().iter().map(rows).sum()
    }

    /// Whether the cursor cannot go further that way.
    fn is_at(&mut self, way: CursorMove) -> bool {
        let before = self.area.screen_cursor().row;
        let mut moved = self.area.clone();
        moved.move_cursor(way);
        moved.screen_cursor().row == before
    }

    /// Shows the message before, or after, the one that is shown.
    fn browse(&mut self, older: bool) {
        let at = match (self.at, older) {
            (None, true) => self.history.len().checked_sub(1),
            (Some(at), true) => at.checked_sub(1).or(Some(0)),
            (Some(at), false) => Some(at + 1).filter(|at| *at < self.history.len()),
            (None, false) => return,
        };
        if self.at.is_none() {
            self.draft = self.area.lines().to_vec();
        }
        let lines = match at.and_then(|at| self.history.get(at)) {
            Some(message) => message.split('\n').map(str::to_owned).collect(),
            None => std::mem::take(&mut self.draft),
        };
        self.set(lines);
        self.at = at;
    }

    fn set(&mut self, lines: Vec<String>) {
        self.area = empty();
        self.at = None;
        self.area.insert_str(lines.join("\n"));
        self.area.move_cursor(CursorMove::Bottom);
        self.area.move_cursor(CursorMove::End);
    }
}

/// A text area without looks of its own: the terminal's cursor is the cursor.
fn empty() -> TextArea<'static> {
    let mut area = TextArea::default();
    area.set_cursor_line_style(Style::new());
    area.set_cursor_style(Style::new());
    area.set_wrap_mode(WrapMode::Glyph);
    area
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) {
        input.key(KeyEvent::new(code, modifiers));
    }

    fn typed(input: &mut Input, text: &str) {
        text.chars().for_each(|c| press(input, KeyCode::Char(c), KeyModifiers::NONE));
    }

    fn with_history(messages: &[&str]) -> Input {
        let mut history = History::forgetful();
        messages.iter().for_each(|message| history.push(message));
        Input::new(history)
    }

    #[test]
    fn lines_are_typed_and_pasted_and_wrapped() {
        let mut input = with_history(&[]);
        typed(&mut input, "one");
        press(&mut input, KeyCode::Char('j'), KeyModifiers::CONTROL);
        input.paste("two\r\nthree\rfo\x1bur\t5");
        assert_eq!(input.text(), "one\ntwo\nthree\nfour    5");
        assert_eq!(
            input.rows(20, 9),
            (vec!["one".into(), "two".into(), "three".into(), "four    5".into()], (3, 9))
        );
        let (rows, cursor) = input.rows(20, 2);
        assert_eq!((rows, cursor), (vec!["three".into(), "four    5".into()], (1, 9)));
        assert_eq!(input.say(), "one\ntwo\nthree\nfour    5");
        assert!(input.is_empty());
        typed(&mut input, "abcdefghij");
        let (rows, cursor) = input.rows(4, 9);
        assert_eq!((rows, cursor), (vec!["abcd".into(), "efgh".into(), "ij".into()], (2, 2)));
        press(&mut input, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert!(input.is_empty());
        typed(&mut input, "日本語!");
        let (rows, cursor) = input.rows(5, 9);
        assert_eq!((rows, cursor), (vec!["日本".into(), "語!".into()], (1, 3)));
    }

    #[test]
    fn history_is_where_up_and_down_lead_from_the_first_and_last_row() {
        let mut input = with_history(&["first", "second\nwith two"]);
        typed(&mut input, "draft");
        let (up, down) = (KeyCode::Up, KeyCode::Down);
        let mut seen = Vec::new();
        for way in [up, up, up, up, down, down, down, down] {
            press(&mut input, way, KeyModifiers::NONE);
            seen.push(input.text());
        }
        let second = "second\nwith two";
        assert_eq!(seen, [second, second, "first", "first", second, "draft", "draft", "draft"]);
        input.put_back("queued");
        assert_eq!(input.text(), "queued\ndraft");
    }
}
