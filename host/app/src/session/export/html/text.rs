//! Text from outside on a page: nothing of it is markup, and nothing of it hides.

use cofferdam_sandbox::text::harmless;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// The text with everything that HTML would take for its own replaced, and control characters and
/// those that turn the direction of writing written out.
pub(super) fn escaped(text: &str) -> String {
    let text = harmless(text);
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Markdown as HTML. Raw HTML in it is shown as the text that it is, pictures from elsewhere are
/// left out save for their texts, and only links to the web or to an address stay links.
pub(super) fn from_markdown(text: &str) -> String {
    let text = harmless(text);
    let parser = Parser::new_ext(&text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut out = String::with_capacity(text.len() * 2);
    html::push_html(&mut out, Safe { events: parser, links: Vec::new() });
    out
}

/// Markdown without what could reach beyond the page.
struct Safe<I> {
    events: I,
    /// Whether each link that is open stays one.
    links: Vec<bool>,
}

impl<'t, I: Iterator<Item = Event<'t>>> Iterator for Safe<I> {
    type Item = Event<'t>;

    fn next(&mut self) -> Option<Event<'t>> {
        loop {
            match self.events.next()? {
                Event::Html(text) | Event::InlineHtml(text) => return Some(Event::Text(text)),
                Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                    let stays = is_plain_link(&dest_url);
                    self.links.push(stays);
                    if stays {
                        let (title, id) = ("".into(), "".into());
                        return Some(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    }
                }
                Event::End(TagEnd::Link) => {
                    if self.links.pop() == Some(true) {
                        return Some(Event::End(TagEnd::Link));
                    }
                }
                Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
                // The page has headings of its own down to the third level.
                Event::Start(Tag::Heading { .. }) => {
                    let (level, id, classes, attrs) = (HeadingLevel::H4, None, vec![], vec![]);
                    return Some(Event::Start(Tag::Heading { level, id, classes, attrs }));
                }
                Event::End(TagEnd::Heading(_)) => {
                    return Some(Event::End(TagEnd::Heading(HeadingLevel::H4)));
                }
                other => return Some(other),
            }
        }
    }
}

fn is_plain_link(url: &str) -> bool {
    let url = url.to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| url.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(
            escaped("<script>alert('&\"')</script>\x1b\u{202e}"),
            "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;\\u{1b}\\u{202e}"
        );
    }

    #[test]
    fn markdown_stays_on_its_page() {
        for (text, html) in [
            ("a **b** `<c>`", "<p>a <strong>b</strong> <code>&lt;c&gt;</code></p>\n"),
            ("# T", "<h4>T</h4>\n"),
            (
                "<script>x</script>\n\n<b onclick=\"x\">y</b>",
                "&lt;script&gt;x&lt;/script&gt;\n<p>&lt;b onclick=\"x\"&gt;y&lt;/b&gt;</p>\n",
            ),
            ("[a](javascript:x) [b](JAVASCRIPT:x) [c](data:x)", "<p>a b c</p>\n"),
            ("[a](https://e.org/)", "<p><a href=\"https://e.org/\">a</a></p>\n"),
            ("[a](https://e.org/\"x=\"y)", "<p><a href=\"https://e.org/%22x=%22y\">a</a></p>\n"),
            ("![alt](https://e.org/spy.png)", "<p>alt</p>\n"),
            ("[![alt](x)](https://e.org/)", "<p><a href=\"https://e.org/\">alt</a></p>\n"),
        ] {
            assert_eq!(from_markdown(text), html, "{text}");
        }
    }
}
