//! Session files, whoever wrote them.

use crate::texts::is_harmless;
use cofferdam_agent::message::Message;
use cofferdam_agent::replay::replay;
use cofferdam_app::session::export::{document, markdown, page};
use cofferdam_app::session::format::Line;
use cofferdam_app::session::{Record, Summary, Transcript, as_events};
use std::sync::Arc;

/// A file is read as far as it goes, or is no session; what was read can be gone on with, shown and
/// written again.
pub fn session(bytes: &[u8]) {
    // A list has the sessions of later versions too.
    let summary = Summary::of(bytes);
    let Ok(record) = Record::read(bytes) else { return };
    assert!(summary.is_ok());
    assert_eq!(record.whole_bytes + record.cut_bytes, bytes.len() as u64);
    for line in &record.lines {
        let written = line.to_text();
        let again = Line::parse(&written).unwrap_or_else(|problem| panic!("{problem}: {written}"));
        assert_eq!(again.to_text(), written);
    }
    let Transcript { messages, missing } = Transcript::of(&record.lines);
    let whole: Vec<Arc<Message>> = messages.into_iter().chain(missing).collect();
    let sent = replay(&whole, true);
    assert_eq!(replay(&sent, true), sent);
    let to_go_on = Record::read_to_go_on(bytes).unwrap_or_else(|problem| panic!("{problem}"));
    let again = Transcript::of(&to_go_on.lines);
    assert_eq!(again.messages.into_iter().chain(again.missing).collect::<Vec<_>>(), whole);
    as_events(&record.lines, |_| {});
    assert!(document(&record).is_object());
    assert!(is_harmless(&markdown(&record)));
    let page = page(&record);
    assert!(is_harmless(&page));
    only_its_own_tags(&page);
}

/// What a page of ours is made of. Anything else would be something that a guest or a model wrote.
const TAGS: &str = "a article aside b blockquote body br button caption circle code dd del \
                    details dialog div dl doctype dt em figcaption figure footer form g h1 h2 h3 \
                    h4 h5 h6 head header hr html i img input kbd label li line link main mark \
                    meta nav ol optgroup option p path pre rect s samp script section select \
                    small span strong style sub summary sup svg table tbody td text tfoot th \
                    thead time title tr ul";

/// No tag that is not ours, no handler of events, no address that runs something.
fn only_its_own_tags(page: &str) {
    for tag in page.split('<').skip(1) {
        let tag = tag.strip_prefix(['/', '!']).unwrap_or(tag);
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            continue;
        }
        let inside = tag.split('>').next().unwrap_or_default().to_ascii_lowercase();
        let name = inside.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        assert!(TAGS.split(' ').any(|known| known == name), "<{inside}>");
        for (attribute, value) in attributes(&inside) {
            assert!(!attribute.starts_with("on"), "<{inside}>");
            let address = matches!(attribute, "href" | "src" | "action");
            let harmless = ["#", "http://", "https://", "mailto:", "data:image/", "data:,"];
            assert!(
                !address || harmless.iter().any(|start| value.starts_with(start)),
                "<{inside}>"
            );
        }
    }
    assert_eq!(page.matches("<script").count(), 1, "the page has one script");
}

fn attributes(tag: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut parts = tag.split('"');
    std::iter::from_fn(move || {
        let name = parts.next()?.trim().trim_end_matches('=');
        let value = parts.next()?;
        Some((name.rsplit(char::is_whitespace).next().unwrap_or(name), value))
    })
}
