//! Texts in rows of a terminal: wrapped at spaces, or cut.

use ratatui::text::Span;

/// Columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Columns that a text takes at most: not every terminal takes what is not ASCII for one column wide.
pub(crate) fn columns_at_most(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// A line in rows of at most so many columns, broken at spaces where there are some. A line that grows
/// at its end changes its last row only.
pub(crate) fn folded(line: &str, width: usize) -> Vec<&str> {
    folded_by(columns, line, width)
}

/// The same with another measure.
pub(crate) fn folded_by(columns: fn(&str) -> usize, line: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    // Where the row begins, where it can be broken, and the columns from the row's start to `at`.
    let (mut start, mut space, mut used) = (0, None, 0);
    for (at, c) in line.char_indices() {
        let after = at + c.len_utf8();
        let wide = columns(&line[at..after]);
        if used + wide > width && at > start {
            if c == ' ' {
                rows.push(line[start..at].trim_end_matches(' '));
                (start, space, used) = (after, None, 0);
                continue;
            }
            let next = space.unwrap_or(at);
            rows.push(line[start..next].trim_end_matches(' '));
            (start, space, used) = (next, None, columns(&line[next..at]));
        }
        if c == ' ' {
            space = Some(after);
        }
        used += wide;
    }
    rows.push(&line[start..]);
    rows
}

/// A text in one row, with a mark where it was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (mut kept, mut used) = (0, 0);
    for (at, c) in text.char_indices() {
        used += columns(&text[at..at + c.len_utf8()]);
        if used + 1 > width {
            break;
        }
        kept = at + c.len_utf8();
    }
    format!("{}…", &text[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_at_spaces_or_anywhere_and_lose_nothing_else() {
        for (line, width, rows) in [
            ("", 5, &[""][..]),
            ("one two three", 7, &["one two", "three"]),
            ("one two three", 8, &["one two", "three"]),
            ("one  two", 4, &["one", "two"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a bcdefgh", 4, &["a", "bcde", "fgh"]),
            ("日本語", 4, &["日本", "語"]),
            ("日本", 1, &["日", "本"]),
            ("    let x;", 7, &["    let", "x;"]),
        ] {
            assert_eq!(folded(line, width), rows, "{line:?} in {width}");
        }
    }

    #[test]
    fn a_line_that_grows_changes_its_last_row_only() {
        let line = "A line of words, averyveryverylongone, 日本語 and   spaces to the end.";
        for width in 1..30 {
            let mut before: Vec<&str> = Vec::new();
            for end in (0..=line.len()).filter(|end| line.is_char_boundary(*end)) {
                let rows = folded(&line[..end], width);
                let kept = before.len().saturating_sub(1);
                assert_eq!(rows[..kept], before[..kept], "{width}: {:?}", &line[..end]);
                before = rows;
            }
        }
    }

    #[test]
    fn a_cut_text_says_so() {
        for (text, width, want) in
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("ab", 1, "…")]
        {
            assert_eq!(cut(text, width), want);
        }
    }
}
