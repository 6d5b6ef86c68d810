//! Text on its way to a person's terminal.

use cofferdam_sandbox::text::{cut, harmless, tail, visible};

/// No escape lives on, no byte is lost but at a cut, and cuts fall between characters.
pub fn text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let most = bytes.first().copied().unwrap_or(0).into();
    let line = visible(&text, most);
    assert!(is_harmless(&line) && !line.contains(['\n', '\t', '\u{2028}', '\u{2029}']), "{line:?}");
    let lines = harmless(&text);
    assert!(is_harmless(&lines), "{lines:?}");
    assert_eq!(harmless(&lines), lines, "shown twice, it is the same");
    assert!(text.starts_with(cut(&text, most)) && text.ends_with(tail(&text, most)));
    assert!(cut(&text, most).len() <= most && tail(&text, most).len() <= most);
    if !text.chars().any(|c| !c.is_ascii() || c.is_control()) {
        assert_eq!(lines, text, "plain text stays as it is");
    }
}

/// Whether a terminal, or a person, takes the text for what it is: nothing in it drives, reorders
/// or hides.
pub(crate) fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| match c {
        '\n' | '\t' => false,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    })
}
