//! Results that are too long for a model.

use crate::text::cut;
use cofferdam_agent::message::Content;
use cofferdam_agent::tool::ToolResult;

/// Cuts a result to so many bytes of content, on character boundaries, and marks where.
pub(crate) fn result(
    mut result: ToolResult,
    bytes_max: usize,
    cuts: &mut Vec<String>,
) -> ToolResult {
    let bytes: usize = result.content.iter().map(size).sum();
    if bytes <= bytes_max {
        return result;
    }
    let mut left = bytes_max;
    let mut content = Vec::new();
    for block in result.content {
        match block {
            Content::Text(text) if left > 0 => {
                let kept = cut(&text, left);
                left = if kept.len() < text.len() { 0 } else { left - kept.len() };
                content.push(Content::Text(kept.into()));
            }
            Content::Image(image) if image.data.len() <= left => {
                left -= image.data.len();
                content.push(Content::Image(image));
            }
            // What comes after a cut would read as if nothing were missing.
            _ => left = 0,
        }
    }
    let shown: usize = content.iter().map(size).sum();
    content.push(Content::Text(format!(
        "[cut by the host: the first {shown} of {bytes} bytes are above (limit result_kib); ask for less at a time]"
    )));
    cuts.push(format!("the result had {bytes} bytes, {shown} were kept (limit result_kib)"));
    result.content = content;
    result
}

/// Cuts a text that is no result, such as a message or a question, and marks where.
pub(crate) fn text(text: &mut String, bytes_max: usize, cuts: &mut Vec<String>) {
    let bytes = text.len();
    if bytes <= bytes_max {
        return;
    }
    let shown = cut(text, bytes_max).len();
    text.truncate(shown);
    text.push_str(&format!(
        "\n[cut by the host: the first {shown} of {bytes} bytes are above (limit result_kib)]"
    ));
    cuts.push(format!("a text had {bytes} bytes, {shown} were kept (limit result_kib)"));
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
        let long = ToolResult {
            content: vec![Content::Text("aé".into()), Content::Text("more".into())],
            ..Default::default()
        };
        let whole = result(long.clone(), 7, &mut cuts);
        assert_eq!((whole, cuts.len()), (long.clone(), 0));
        let short = result(long, 2, &mut cuts);
        assert_eq!(short.content[0], Content::Text("a".into()));
        assert!(
            matches!(&short.content[1], Content::Text(text) if text.contains("the first 1 of 7 bytes"))
        );
        assert_eq!((short.content.len(), cuts.len()), (2, 1));
    }
}
