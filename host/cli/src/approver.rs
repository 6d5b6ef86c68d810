//! Approvals at the terminal: the call in full, one question at a time, yes, no or why not.

use crate::keyboard::Keyboard;
use crate::render::Output;
use crate::render::fold::{columns_at_most, folded_by};
use cofferdam_agent::hook::{Approval, Approver, Decision};
use cofferdam_app::approve::AskFirst;
use cofferdam_sandbox::text::{cut, harmless, visible};
use futures::future::BoxFuture;
use std::sync::Arc;

/// Bytes of a hook's own words: the arguments must stay in sight.
const WORDS_BYTES_MAX: usize = 2_000;
/// Columns of text below which a terminal has to wrap it itself.
const WIDTH_MIN: usize = 8;
/// Bytes of a reason that the model is told.
const REASON_BYTES_MAX: usize = 2_000;
const PROMPT: &str = "└ run it? y = yes, n = no, anything else = no, and why: ";

/// The person at the terminal.
pub(crate) struct Terminal {
    keyboard: Keyboard,
}

/// The approver of this process; none if nobody sits at its terminal.
pub(crate) fn at_this_terminal() -> Option<Arc<dyn Approver>> {
    Keyboard::of_this_terminal().map(|keyboard| Arc::new(Terminal { keyboard }) as _)
}

impl Approver for Terminal {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let mut turn = self.keyboard.turn().await;
            Output::Err.question(&format!("\n{}{PROMPT}", question(&approval, turn.columns())));
            let mut open = Open(true);
            let decision = loop {
                match turn.line().await {
                    None => break Decision::Unanswered { why: "the input ended".into() },
                    Some(line) => match decision(&line) {
                        Some(decision) => break decision,
                        None => Output::Err.question(PROMPT),
                    },
                }
            };
            open.0 = false;
            if let Decision::Unanswered { .. } = decision {
                Output::Err.line("no: the input ended");
            }
            decision
        })
    }
}

/// A question on the screen. One that is dropped was taken back, which the person is told.
struct Open(bool);

impl Drop for Open {
    fn drop(&mut self) {
        if self.0 {
            Output::Err.line("\n  (the question is taken back: the call does not run)");
        }
    }
}

/// What an answer means; none if there is none.
pub(crate) fn decision(line: &str) -> Option<Decision> {
    match line.trim().to_lowercase().as_str() {
        "" => None,
        "y" | "yes" => Some(Decision::Approved),
        "n" | "no" => Some(Decision::declined()),
        _ => Some(Decision::Declined { reason: Some(visible(line.trim(), REASON_BYTES_MAX)) }),
    }
}

/// The question as it is shown. What comes from a plugin or a model stands behind a bar, folded by
/// us: whatever it is, it cannot look like a line of ours.
pub(crate) fn question(approval: &Approval<'_>, columns: usize) -> String {
    let call = approval.call;
    let of = match approval.plugin {
        "" => String::new(),
        plugin => format!(" of the plugin {}", visible(plugin, 80)),
    };
    let (name, id) = (visible(&call.name, 80), visible(&call.id, 80));
    let mut lines = said("┌ ", &format!("approval needed: {name}{of}, call {id}"), columns);
    if approval.hook == AskFirst::NAME {
        let why = "asked for by the operator: `[approval] ask` names this tool";
        lines.push_str(&said("│ ", why, columns));
    } else {
        let hook = visible(approval.hook, 80);
        let who =
            format!("asked for by the plugin {hook}; its own words, which nobody has checked:");
        lines.push_str(&said("│ ", &who, columns));
        let words = format!("{}\n{}", approval.question.title, approval.question.message);
        lines.push_str(&quoted(words.trim(), WORDS_BYTES_MAX, columns));
    }
    lines.push_str(&said("│ ", "the arguments, in full, as the tool will get them:", columns));
    // A map of JSON values has nothing that could fail.
    let arguments = serde_json::to_string_pretty(&*call.arguments).unwrap_or_default();
    lines.push_str(&quoted(&arguments, usize::MAX, columns));
    lines
}

/// A sentence of ours, in which foreign names may stand.
fn said(first: &str, sentence: &str, columns: usize) -> String {
    let rows = folded_by(columns_at_most, sentence, columns.saturating_sub(3).max(WIDTH_MIN));
    let row = |(at, row)| format!("{}{row}\n", if at == 0 { first } else { "│ " });
    rows.iter().enumerate().map(row).collect()
}

/// A foreign text behind a bar, each row of the screen.
fn quoted(text: &str, bytes_max: usize, columns: usize) -> String {
    const BAR: &str = "│   ";
    let width = columns.saturating_sub(BAR.chars().count() + 1).max(WIDTH_MIN);
    let shown = cut(text, bytes_max);
    let mut rows = String::new();
    for line in harmless(shown).replace('\t', "    ").lines() {
        for row in chopped(line, width) {
            rows.push_str(&format!("{BAR}{row}\n"));
        }
    }
    if shown.len() < text.len() {
        rows.push_str(&format!("│   … and {} bytes more\n", text.len() - shown.len()));
    }
    rows
}

/// A line in rows of at most so many columns, with every space of it.
fn chopped(line: &str, width: usize) -> Vec<&str> {
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (at, c) in line.char_indices() {
        let wide = columns_at_most(&line[at..at + c.len_utf8()]);
        if used + wide > width {
            rows.push(&line[start..at]);
            (start, used) = (at, 0);
        }
        used += wide;
    }
    rows.push(&line[start..]);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_agent::hook::Question;
    use cofferdam_agent::message::Arguments;
    use cofferdam_agent::tool::Call;
    use serde_json::json;
    use std::io::Cursor;

    fn call(arguments: serde_json::Value) -> Call {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Call { id: "c1".into(), name: "write\x1b[2J".into(), arguments: Arguments::new(arguments) }
    }

    fn shown(hook: &str, title: &str, message: &str, call: &Call, columns: usize) -> String {
        let question = Question { title: title.into(), message: message.into() };
        self::question(&Approval { hook, question: &question, plugin: "files", call }, columns)
    }

    #[test]
    fn a_call_is_shown_in_full_and_drives_nothing() {
        let long = "x".repeat(5_000);
        let call = call(json!({"path": "a\u{202e}txt.\u{9b}2J", "content": long, "z\u{200b}": 1}));
        let text = shown("guard", "Sure?\x1b]52;c;aGk=\x07", "\r└ run it? yes", &call, 100);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        for hidden in ['\u{202e}', '\u{200b}', '\u{9b}'] {
            assert!(!text.contains(hidden), "{text}");
            assert!(text.contains(&hidden.escape_unicode().to_string()), "{text}");
        }
        assert_eq!(text.matches('x').count(), 5_000 + "txt".len() - 2, "the arguments are whole");
        assert!(text.contains("plugin guard; its own words"), "{text}");
        assert!(text.contains("write\\u{1b}[2J of the plugin files, call c1"), "{text}");
    }

    #[test]
    fn nothing_foreign_begins_a_row_of_the_screen() {
        let fake = format!("{}└ run it? y", " ".repeat(97));
        let call = call(json!({"path": fake, "wide": "日".repeat(200)}));
        for columns in [20, 40, 100] {
            let text = shown("guard", &fake, &format!("a\n\n{fake}\u{2028}b"), &call, columns);
            for (at, row) in text.lines().enumerate() {
                assert!(row.starts_with(if at == 0 { "┌ " } else { "│ " }), "{row}");
                // The bar is ours, and one column wide for most.
                assert!(columns_at_most(row) <= columns + 1, "{columns}: {row}");
            }
            let said = text.lines().map(|row| &row["│ ".len()..]).collect::<Vec<_>>().join(" ");
            assert!(said.contains("which nobody has checked:"), "{said}");
        }
    }

    #[test]
    fn long_words_of_a_hook_do_not_push_the_arguments_away() {
        let text = shown("guard", "t", &"word\n".repeat(100_000), &call(json!({"n": 1})), 80);
        assert!(text.lines().count() < 450 && text.contains("bytes more"), "{}", text.len());
        let operator = shown(AskFirst::NAME, "t", "m", &call(json!({"n": 1})), 80);
        assert!(operator.contains("by the operator") && !operator.contains("its own words"));
    }

    #[test]
    fn answers() {
        for (line, meant) in [
            ("y", Some(Decision::Approved)),
            (" YES ", Some(Decision::Approved)),
            ("n", Some(Decision::declined())),
            ("No", Some(Decision::declined())),
            ("", None),
            ("yes, but later", Some(Decision::Declined { reason: Some("yes, but later".into()) })),
            ("\x1b[A", Some(Decision::Declined { reason: Some("\\u{1b}[A".into()) })),
        ] {
            assert_eq!(decision(line), meant, "{line:?}");
        }
    }

    #[tokio::test]
    async fn questions_take_turns_and_the_end_of_input_is_a_no() {
        let keyboard = Keyboard::from_lines(Cursor::new("\ny\nnot there\n"));
        let person = Terminal { keyboard };
        let call = call(json!({}));
        let question = Question { title: "Sure?".into(), message: String::new() };
        let approval =
            Approval { hook: "guard", question: &question, plugin: "files", call: &call };
        let ask = || person.approve(approval);
        let (first, second, third) = futures::join!(ask(), ask(), ask());
        assert_eq!(first, Decision::Approved);
        assert_eq!(second, Decision::Declined { reason: Some("not there".into()) });
        assert_eq!(third, Decision::Unanswered { why: "the input ended".into() });
        assert_eq!(ask().await, Decision::Unanswered { why: "the input ended".into() });
    }
}
