//! Sessions for people and programs: Markdown, JSON, and one HTML page.

mod html;
mod json;
mod markdown;

pub use html::page;
pub use json::document;
pub use markdown::markdown;

use super::Record;
use super::format::Line;
use super::timeline::{Item, What};
use cofferdam_agent::message::{Content, Message};

/// What stands at the head of an export.
struct Head {
    /// The session's id.
    id: String,
    /// The first prompt, on one line.
    title: String,
    /// The models that answered, in the order of their first answers.
    models: Vec<String>,
    began_us: u64,
    ended_us: u64,
    messages: usize,
    calls: usize,
    /// Calls that came to no result.
    failed: usize,
    runs: usize,
}

impl Head {
    fn of(record: &Record, items: &[Item<'_>]) -> Self {
        let at = |line: Option<&Line>| line.map_or(0, |line| line.at_us);
        let mut head = Self {
            id: record.header.id.clone(),
            title: String::new(),
            models: Vec::new(),
            began_us: at(record.lines.first()),
            ended_us: at(record.lines.last()),
            messages: record.messages().count(),
            calls: 0,
            failed: 0,
            runs: 0,
        };
        for item in items {
            head.add(item);
        }
        if head.title.is_empty() {
            head.title = format!("Session {}", head.id);
        }
        head
    }

    fn add(&mut self, item: &Item<'_>) {
        match &item.what {
            What::RunStart => self.runs += 1,
            What::Message(Message::User(user)) if self.title.is_empty() => {
                self.title = one_line(&text(&user.content), 120);
            }
            What::Answer(Message::Assistant(answer), batch) => {
                if !answer.model.is_empty() && !self.models.contains(&answer.model) {
                    self.models.push(answer.model.clone());
                }
                self.calls += batch.calls.len();
                self.failed += batch.calls.iter().filter(|call| !call.is_done()).count();
            }
            _ => {}
        }
    }
}

/// The texts of a content, one below the other.
fn text(content: &[Content]) -> String {
    let one = |block: &Content| match block {
        Content::Text(text) => text.clone(),
        Content::Image(image) => format!("[{}, {} bytes]", image.media_type, image.data.len()),
    };
    content.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The beginning of a text, on one line.
fn one_line(text: &str, chars_max: usize) -> String {
    // No word is empty, so there is no use for more of them than characters.
    let words: Vec<&str> = text.split_whitespace().take(chars_max + 1).collect();
    let line = words.join(" ");
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A span of time in the unit that fits it: `812 µs`, `3.24 ms`, `1.02 s`, `2 min 3 s`.
fn span(us: u64) -> String {
    let (ms, s) = (us as f64 / 1e3, us as f64 / 1e6);
    match us {
        0 => "0".into(),
        1..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{ms:.2} ms"),
        10_000..100_000 => format!("{ms:.1} ms"),
        100_000..1_000_000 => format!("{ms:.0} ms"),
        1_000_000..60_000_000 => format!("{s:.2} s"),
        60_000_000..3_600_000_000 => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
        _ => format!("{} h {} min", us / 3_600_000_000, us / 60_000_000 % 60),
    }
}

/// A time in UTC: an export says the same wherever it is made.
fn utc(at_us: u64) -> String {
    let time = i64::try_from(at_us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    time.map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()).unwrap_or_default()
}

/// `1 call`, `2 calls`.
fn count(number: usize, noun: &str) -> String {
    let number_text = crate::receipt::thousands(number as u64);
    if number == 1 { format!("1 {noun}") } else { format!("{number_text} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_fits() {
        for (us, want) in [
            (0, "0"),
            (812, "812 µs"),
            (3_240, "3.24 ms"),
            (32_400, "32.4 ms"),
            (324_000, "324 ms"),
            (1_020_000, "1.02 s"),
            (123_000_000, "2 min 3 s"),
            (7_260_000_000, "2 h 1 min"),
        ] {
            assert_eq!(span(us), want);
        }
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(one_line("  a\n b\tc ", 10), "a b c");
        assert_eq!(one_line("abcdefghij", 4), "abcd…");
        assert_eq!(one_line("ab cdefgh", 5), "ab cd…");
    }
}
