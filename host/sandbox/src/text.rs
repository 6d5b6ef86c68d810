//! Text from outside, made fit for people, terminals and models: bounded, and without live escapes.

/// At most `bytes_max` bytes of a text, cut on a character boundary.
pub fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// At most the last `bytes_max` bytes of a text, cut on a character boundary.
pub fn tail(text: &str, bytes_max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..]
}

/// A text on one line: control characters and other invisible ones written out, and cut.
pub fn visible(text: &str, bytes_max: usize) -> String {
    let shown = cut(text, bytes_max);
    let mut line = String::with_capacity(shown.len());
    for c in shown.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push(' '),
            c if is_unseen(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    if shown.len() < text.len() {
        line.push('…');
    }
    line
}

/// A text of several lines, with the escapes that would drive a terminal written out.
pub fn harmless(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => lines.push(c),
            c if is_unseen(c) => lines.extend(c.escape_unicode()),
            c => lines.push(c),
        }
    }
    lines
}

/// Whether a character must not reach a person as it is: control characters, those of 8 bits
/// included, and those that reorder or hide what is around them.
pub fn is_unseen(c: char) -> bool {
    c.is_control() || INVISIBLE.iter().any(|range| range.contains(&c))
}

/// Characters that are not seen or change the order of others. Joiners that belong to emoji and
/// scripts are among them: a name that looks like another one does more harm than a broken emoji.
const INVISIBLE: [std::ops::RangeInclusive<char>; 14] = [
    // Soft hyphen.
    '\u{ad}'..='\u{ad}',
    // Arabic letter mark.
    '\u{61c}'..='\u{61c}',
    // Fillers of Hangul.
    '\u{115f}'..='\u{1160}',
    '\u{3164}'..='\u{3164}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{180e}'..='\u{180e}',
    // Zero-width characters and marks of direction.
    '\u{200b}'..='\u{200f}',
    // Separators of lines and paragraphs, embeddings and overrides.
    '\u{2028}'..='\u{202e}',
    // Word joiner, invisible operators, isolates, deprecated formats.
    '\u{2060}'..='\u{206f}',
    // Byte order mark.
    '\u{feff}'..='\u{feff}',
    // Annotations.
    '\u{fff9}'..='\u{fffb}',
    // Musical formats.
    '\u{1d173}'..='\u{1d17a}',
    // Tags, which repeat ASCII unseen, and variation selectors beyond the common ones.
    '\u{e0000}'..='\u{e007f}',
    '\u{e0100}'..='\u{e01ef}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        for (text, max, expected) in [("aé", 2, "a"), ("aé", 3, "aé"), ("é", 1, ""), ("", 5, "")]
        {
            assert_eq!(cut(text, max), expected);
        }
        for (text, max, expected) in [("éa", 2, "a"), ("éa", 3, "éa"), ("é", 1, ""), ("", 5, "")]
        {
            assert_eq!(tail(text, max), expected);
        }
    }

    #[test]
    fn nothing_drives_a_terminal() {
        assert_eq!(visible("a\x1b[31m\n\u{202e}b", 100), "a\\u{1b}[31m\\n\\u{202e}b");
        assert_eq!(visible("abc", 2), "ab…");
        assert_eq!(harmless("a\n\tb\x07"), "a\n\tb\\u{7}");
        for odd in
            ['\u{9b}', '\u{200d}', '\u{2028}', '\u{2066}', '\u{e0041}', '\u{ad}', '\x7f', '\r']
        {
            assert_eq!(harmless(&odd.to_string()), odd.escape_unicode().to_string());
        }
        assert_eq!(harmless("naïve 日本 ⚠\u{fe0f}"), "naïve 日本 ⚠\u{fe0f}");
    }
}
