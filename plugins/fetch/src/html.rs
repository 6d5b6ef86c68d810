//! Pages as text: headings, paragraphs, lists, tables, code, and links as numbers with a list of
//! their targets at the end.
//!
//! There is no tree: the tokens of the standard's tokenizer are written as they come, so that no
//! nesting, however deep or wrong, costs more than its length.

use std::mem;

use html5gum::emitters::default::{DefaultEmitter, StartTag, Token};
use html5gum::{HtmlString, Tokenizer};

use crate::address::Address;

/// The text of a page; `base` is where its links start.
pub(crate) fn text(html: &str, base: &Address) -> String {
    let mut emitter = DefaultEmitter::default();
    // Without a tree, the tokenizer itself must know that scripts and titles are no markup.
    emitter.naively_switch_states(true);
    let mut page = Page::new(base);
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        match token {
            Token::StartTag(tag) => page.open(&tag),
            Token::EndTag(tag) => page.close(&name(&tag.name)),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.finish()
}

const LIST_DEPTH_MAX: usize = 8;

/// What is written so far, and where in the markup we are.
struct Page<'a> {
    base: &'a Address,
    title: String,
    out: String,
    /// Line ends and a space that are due before the next text.
    lines: usize,
    space: bool,
    /// An element whose content is left out, and how often it is open.
    skipped: Option<(String, usize)>,
    in_title: bool,
    preformatted: bool,
    /// Open lists, with the next number of those that count.
    lists: Vec<Option<u32>>,
    link: Option<Address>,
    links: Vec<Address>,
}

impl<'a> Page<'a> {
    fn new(base: &'a Address) -> Self {
        Self {
            base,
            title: String::new(),
            out: String::new(),
            lines: 0,
            space: false,
            skipped: None,
            in_title: false,
            preformatted: false,
            lists: Vec::new(),
            link: None,
            links: Vec::new(),
        }
    }

    fn open(&mut self, tag: &StartTag<()>) {
        let name = name(&tag.name);
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == name && !tag.self_closing);
            return;
        }
        match name.as_str() {
            "script" | "style" | "noscript" | "template" | "iframe" => {
                self.skipped = Some((name, 1));
            }
            "svg" if !tag.self_closing => self.skipped = Some((name, 1)),
            "title" => self.in_title = self.title.is_empty(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.break_lines(2);
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "br" => self.lines = (self.lines + 1).min(2),
            "hr" => {
                self.break_lines(2);
                self.mark("---");
                self.break_lines(2);
            }
            "ul" | "ol" => {
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((name == "ol").then_some(1));
            }
            "li" => self.item(),
            "pre" => {
                self.break_lines(2);
                self.mark("```\n");
                self.preformatted = true;
            }
            "code" if !self.preformatted => self.word("`"),
            "td" | "th" if self.lines == 0 => self.word(" | "),
            "img" => {
                let alt = attribute(tag, b"alt").unwrap_or_default();
                if !alt.trim().is_empty() {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "a" => {
                let target = attribute(tag, b"href").filter(|href| !href.starts_with('#'));
                self.link = target.and_then(|href| self.base.join(&href));
            }
            name => self.break_lines(lines_around(name)),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "ul" | "ol" => {
                self.lists.pop();
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" if self.preformatted => {
                self.preformatted = false;
                let start = if self.out.ends_with('\n') { "" } else { "\n" };
                self.out.push_str(start);
                self.out.push_str("```");
                self.break_lines(2);
            }
            "code" if !self.preformatted => self.out.push('`'),
            "a" => self.end_link(),
            name => self.break_lines(lines_around(name)),
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.in_title {
            self.title.push_str(text);
        } else if self.preformatted {
            self.out.push_str(text);
        } else {
            self.space |= text.starts_with(char::is_whitespace);
            for word in text.split_whitespace() {
                self.word(word);
                self.space = true;
            }
            self.space = text.ends_with(char::is_whitespace) && !text.is_empty();
        }
    }

    fn item(&mut self) {
        self.break_lines(1);
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(LIST_DEPTH_MAX));
        let bullet = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.mark(&format!("{indent}{bullet}"));
    }

    fn end_link(&mut self) {
        let Some(link) = self.link.take() else { return };
        let known = self.links.iter().position(|other| *other == link);
        let number = known.unwrap_or_else(|| {
            self.links.push(link);
            self.links.len() - 1
        });
        self.out.push_str(&format!("[{}]", number + 1));
    }

    /// Something that text follows directly.
    fn mark(&mut self, mark: &str) {
        self.word(mark);
        self.space = false;
    }

    fn word(&mut self, word: &str) {
        let lines = mem::take(&mut self.lines);
        let space = mem::take(&mut self.space);
        let glued = self.out.is_empty() || self.out.ends_with([' ', '\n']) || word.starts_with(' ');
        if lines > 0 && !self.out.is_empty() {
            self.out.push_str(&"\n".repeat(lines));
        } else if space && !glued {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    fn break_lines(&mut self, lines: usize) {
        if !self.preformatted {
            self.lines = self.lines.max(lines);
        }
    }

    fn finish(self) -> String {
        let mut text = String::new();
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let headed = self.out.lines().next() == Some(&format!("# {title}"));
        if !title.is_empty() && !headed {
            text.push_str(&format!("Title: {title}\n\n"));
        }
        let lines: Vec<_> = self.out.lines().map(str::trim_end).collect();
        text.push_str(lines.join("\n").trim_end());
        if !self.links.is_empty() {
            text.push_str("\n\nLinks:");
            for (number, link) in self.links.iter().enumerate() {
                text.push_str(&format!("\n[{}] {link}", number + 1));
            }
        }
        text
    }
}

/// How far an element stands from its neighbours.
fn lines_around(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" | "table" | "figure"
        | "section" | "article" => 2,
        "div" | "li" | "tr" | "dt" | "dd" | "dl" | "header" | "footer" | "main" | "nav"
        | "aside" | "form" | "body" | "caption" | "figcaption" | "option" | "details"
        | "summary" | "address" | "fieldset" => 1,
        _ => 0,
    }
}

/// Names of tags and attributes are lower case already.
fn name(name: &HtmlString) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    let value = tag.attributes.get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &str) {
        let base = Address::parse("https://a.org/docs/").unwrap();
        assert_eq!(text(html, &base), expected);
    }

    #[test]
    fn a_page() {
        check(
            "<!doctype html><title>Tea</title><style>p{}</style><h1>Tea</h1><p>Boil\n  water, <b>then</b>\
             <a href=more>read</a>.<p>Caf&eacute; &lt;3<script>if (a<b) x()</script>",
            "# Tea\n\nBoil water, thenread[1].\n\nCafé <3\n\nLinks:\n[1] https://a.org/docs/more",
        );
    }

    #[test]
    fn spaces_are_those_of_the_page() {
        check("<p>one <b>two</b> three<i>four</i> <i>five</i></p>", "one two threefour five");
    }

    #[test]
    fn lists_and_code() {
        check(
            "<ul><li>one<ol><li>a<li>b</ol><li>two</ul><p>Run <code>ls -l</code>:<pre>a  b\n  c</pre>end",
            "- one\n  1. a\n  2. b\n- two\n\nRun `ls -l`:\n\n```\na  b\n  c\n```\n\nend",
        );
    }

    #[test]
    fn tables_images_and_the_same_link_twice() {
        check("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2");
        check(
            "<img alt='A cat' src=x><a href='/x'>1</a> <a href='/x#y'>2</a> <a href='#z'>3</a>",
            "[image: A cat]1[1] 2[1] 3\n\nLinks:\n[1] https://a.org/x",
        );
    }

    #[test]
    fn hidden_parts_and_broken_markup() {
        check("<svg><title>no</title><g>no</svg>yes<template><p>no</template>", "yes");
        check("<title>Only</title>text", "Title: Only\n\ntext");
        check("<title>T</title><h1>Tea</h1>", "Title: T\n\n# Tea");
        check("</b></ul></a><p>still <b>here", "still here");
        check(&"<ul><li>".repeat(2_000), &nested(2_000));
    }

    fn nested(depth: usize) -> String {
        let line = |at: usize| format!("{}-", "  ".repeat(at.min(LIST_DEPTH_MAX)));
        (0..depth).map(line).collect::<Vec<_>>().join("\n")
    }
}
