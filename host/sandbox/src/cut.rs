//! What is too long for a model, cut on character boundaries and marked.

use crate::spill::Spilled;
use crate::text::cut;
use cofferdam_agent::message::Content;

/// Pieces of a result: what is more is no longer content but a load.
const PIECES_MAX: usize = 1_000;

/// Whether content has more bytes, or more pieces, than a model gets.
pub(crate) fn is_too_long(content: &[Content], bytes_max: usize) -> bool {
    total(content) > bytes_max || content.len() > PIECES_MAX
}

/// Cuts content to so many bytes, and says where, and where the rest is.
pub(crate) fn content(
    content: Vec<Content>,
    bytes_max: usize,
    kept: Option<&Spilled>,
    cuts: &mut Vec<String>,
) -> Vec<Content> {
    let (bytes, pieces) = (total(&content), content.len());
    if !is_too_long(&content, bytes_max) {
        return content;
    }
    let mut left = bytes_max;
    let mut short = Vec::new();
    for block in content.into_iter().take(PIECES_MAX) {
        match block {
            Content::Text(text) if left > 0 => {
                let kept = cut(&text, left);
                left = if kept.len() < text.len() { 0 } else { left - kept.len() };
                short.push(Content::Text(kept.into()));
            }
            Content::Image(image) if image.data.len() <= left => {
                left -= image.data.len();
                short.push(Content::Image(image));
            }
            // What comes after a cut would read as if nothing were missing.
            _ => left = 0,
        }
    }
    let shown = total(&short);
    let (marked, noted) = match bytes > bytes_max {
        true => (
            marker(shown, bytes),
            format!("the result had {bytes} bytes, {shown} were kept (limit result_kib)"),
        ),
        false => (
            format!("cut by the host: the first {PIECES_MAX} of {pieces} pieces are above"),
            format!("the result had {pieces} pieces, {PIECES_MAX} were kept"),
        ),
    };
    short.push(Content::Text(format!("[{marked}; {}]", rest(kept))));
    cuts.push(noted);
    short
}

/// Cuts a text that is no result, such as a message or a question, and marks where.
pub(crate) fn text(text: &mut String, bytes_max: usize, cuts: &mut Vec<String>) {
    let bytes = text.len();
    let shown = cut(text, bytes_max).len();
    if shown < bytes {
        text.truncate(shown);
        text.push_str(&format!("\n[{}]", marker(shown, bytes)));
        cuts.push(format!("a text had {bytes} bytes, {shown} were kept (limit result_kib)"));
    }
}

fn marker(shown: usize, bytes: usize) -> String {
    format!("cut by the host: the first {shown} of {bytes} bytes are above (limit result_kib)")
}

/// Where the rest of a result is, or how to get it.
fn rest(kept: Option<&Spilled>) -> String {
    match kept {
        None => "ask for less at a time".into(),
        Some(Spilled { path, whole: true, .. }) => format!("the whole is in {path}"),
        Some(Spilled { path, bytes, whole: false }) => format!("{bytes} bytes of it are in {path}"),
    }
}

fn total(content: &[Content]) -> usize {
    content.iter().map(size).sum()
}

fn size(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Image(image) => image.data.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_result_is_cut_and_marked() {
        let mut cuts = Vec::new();
        let long = vec![Content::Text("aé".into()), Content::Text("more".into())];
        let whole = content(long.clone(), 7, None, &mut cuts);
        assert_eq!((whole, cuts.len()), (long.clone(), 0));
        let short = content(long.clone(), 2, None, &mut cuts);
        assert_eq!(short[0], Content::Text("a".into()));
        assert!(
            matches!(&short[1], Content::Text(text) if text.contains("the first 1 of 7 bytes"))
        );
        assert_eq!((short.len(), cuts.len()), (2, 1));
        let kept = Spilled { path: "spill/c.txt".into(), bytes: 7, whole: true };
        let short = content(long, 2, Some(&kept), &mut cuts);
        assert!(
            matches!(&short[1], Content::Text(text) if text.contains("the whole is in spill/c.txt"))
        );
    }

    #[test]
    fn too_many_pieces_are_cut_and_marked() {
        let mut cuts = Vec::new();
        let many = vec![Content::Text(String::new()); 1_001];
        let short = content(many, 7, None, &mut cuts);
        assert_eq!((short.len(), cuts.len()), (1_001, 1));
        assert!(
            matches!(&short[1_000], Content::Text(text) if text.contains("the first 1000 of 1001 pieces"))
        );
    }

    #[test]
    fn a_long_message_is_cut_and_marked() {
        let mut cuts = Vec::new();
        let (mut short, mut long) = ("short".to_owned(), "é is long".to_owned());
        text(&mut short, 5, &mut cuts);
        text(&mut long, 1, &mut cuts);
        assert_eq!(short, "short");
        assert!(long.contains("the first 0 of 10 bytes"), "{long}");
        assert_eq!(cuts.len(), 1);
    }
}
