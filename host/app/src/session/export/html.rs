//! A session as one HTML page that needs nothing else: no network, no other file, and no script to
//! be read. The policy in its head allows the one script and the one style of its own, by their
//! digests, so that nothing that a guest or a model wrote can become either.

mod batch;
mod text;

use super::super::Record;
use super::super::timeline::{Item, What, items};
use super::{Head, count, one_line, span, text as plain_text, utc};
use crate::receipt::thousands;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_agent::message::{
    AssistantBlock, AssistantMessage, Content, CustomMessage, Image, Message, StopReason,
};
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};
use text::{escaped, from_markdown};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Media types that are shown; none of them can hold a script.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The page.
pub fn page(record: &Record) -> String {
    let items = items(&record.lines);
    let head = Head::of(record, &items);
    let mut page = Page::default();
    // Writing to a `String` does not fail.
    let _ = page.write(&head, &items);
    page.out
}

/// A page that is being written.
#[derive(Default)]
struct Page {
    out: String,
    /// Calls so far: they number their places on the page.
    calls: usize,
    prompts: usize,
    runs: usize,
}

impl Page {
    fn write(&mut self, head: &Head, items: &[Item<'_>]) -> fmt::Result {
        self.head(head)?;
        self.outline(items)?;
        self.out.push_str("<main id=\"transcript\">\n");
        for (at, item) in items.iter().enumerate() {
            // What is far from the window is not laid out, part by part and message by message.
            if at == 0 || matches!(item.what, What::RunStart) {
                let close = if at == 0 { "" } else { "</section>\n" };
                writeln!(self.out, "{close}<section class=\"part\">")?;
            }
            self.item(item)?;
        }
        let close = if items.is_empty() { "" } else { "</section>\n" };
        write!(self.out, "{close}<p class=\"end\">End of the session</p>\n</main>\n</div>\n")?;
        self.out.push_str(FOOT);
        write!(self.out, "<script>{SCRIPT}</script>\n</body>\n</html>\n")
    }

    fn head(&mut self, head: &Head) -> fmt::Result {
        let title = escaped(&head.title);
        let policy = format!(
            "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; \
             form-action 'none'",
            digest(STYLE),
            digest(SCRIPT)
        );
        writeln!(
            self.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"cofferdam {}\">\n\
             <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n\
             </head>\n<body>",
            env!("CARGO_PKG_VERSION")
        )?;
        write!(
            self.out,
            "<a class=\"skip\" href=\"#transcript\">To the transcript</a>\n<header class=\"top\">\n\
             <p class=\"brand\"><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path d=\"{MARK}\"/>\
             </svg>Cofferdam session</p>\n<h1>{title}</h1>\n<ul class=\"facts\">"
        )?;
        for fact in facts(head) {
            write!(self.out, "<li>{fact}</li>")?;
        }
        self.out.push_str("</ul>\n");
        self.out.push_str(TOOLS);
        self.out.push_str("</header>\n<div class=\"columns\">\n");
        Ok(())
    }

    /// The prompts, to jump to.
    fn outline(&mut self, items: &[Item<'_>]) -> fmt::Result {
        self.out.push_str("<nav class=\"outline\" aria-label=\"Prompts\"><ol>\n");
        let mut prompts = 0;
        for item in items {
            if let What::Message(Message::User(user)) = &item.what {
                prompts += 1;
                let words = escaped(&one_line(&plain_text(&user.content), 70));
                writeln!(self.out, "<li><a href=\"#prompt-{prompts}\">{words}</a></li>")?;
            }
        }
        self.out.push_str("</ol></nav>\n");
        Ok(())
    }

    fn item(&mut self, item: &Item<'_>) -> fmt::Result {
        let at = item.at_us;
        match &item.what {
            What::RunStart => {
                self.runs += 1;
                let (run, time) = (self.runs, utc(at));
                writeln!(self.out, "<h2 class=\"run\"><span>Run {run}</span> {time}</h2>")
            }
            What::RunEnd => Ok(()),
            What::Opened { cut_bytes } => {
                let cut = match cut_bytes {
                    0 => String::new(),
                    bytes => format!(" A cut last line of {bytes} bytes was removed."),
                };
                self.note("", &format!("{}: the session was opened again.{cut}", utc(at)))
            }
            What::Retry(retry) => {
                let (wait, problem) = (span(micros(retry.wait)), escaped(&retry.problem));
                let (retry, max) = (retry.retry, retry.retries_max);
                self.note("warn", &format!("Retry {retry} of {max} after {wait}: {problem}"))
            }
            What::Message(Message::User(user)) => self.user(at, &user.content),
            What::Message(Message::Custom(custom)) => self.custom(at, custom),
            What::Message(Message::ToolResult(result)) => {
                let id = escaped(&result.tool_call_id);
                self.open_message(
                    "stray",
                    &format!("Result of {id}, which no answer asked for"),
                    at,
                )?;
                self.contents(&result.content)?;
                self.close_message()
            }
            What::Answer(Message::Assistant(answer), batch) => {
                self.answer(at, answer)?;
                if !batch.calls.is_empty() {
                    self.batch(batch, answer)?;
                }
                self.close_message()
            }
            What::Answer(..) | What::Message(Message::Assistant(_)) => Ok(()),
        }
    }

    fn user(&mut self, at: u64, content: &[Content]) -> fmt::Result {
        self.prompts += 1;
        let prompt = self.prompts;
        write!(self.out, "<span class=\"anchor\" id=\"prompt-{prompt}\"></span>")?;
        self.open_message("user", "User", at)?;
        self.contents(content)?;
        self.close_message()
    }

    fn custom(&mut self, at: u64, custom: &CustomMessage) -> fmt::Result {
        self.open_message("custom", &escaped(&custom.role), at)?;
        writeln!(self.out, "<pre>{}</pre>", escaped(&custom.content.to_string()))?;
        self.close_message()
    }

    /// An answer, as far as it is text; its element stays open for the calls.
    fn answer(&mut self, at: u64, answer: &AssistantMessage) -> fmt::Result {
        let model = if answer.model.is_empty() { "Model" } else { &answer.model };
        let kind = if answer.failed() { "answer failed" } else { "answer" };
        self.open_message(kind, &escaped(model), at)?;
        for block in &answer.content {
            match block {
                AssistantBlock::Text(block) if !block.text.trim().is_empty() => {
                    writeln!(self.out, "<div class=\"md\">{}</div>", from_markdown(&block.text))?;
                }
                AssistantBlock::Thinking(block) if block.redacted => {
                    self.note("", "The provider keeps this part of the reasoning to itself.")?;
                }
                AssistantBlock::Thinking(block) if !block.thinking.trim().is_empty() => writeln!(
                    self.out,
                    "<details class=\"thinking\"><summary>Reasoning</summary><div class=\"text\">{}\
                     </div></details>",
                    escaped(&block.thinking)
                )?,
                AssistantBlock::Text(_)
                | AssistantBlock::Thinking(_)
                | AssistantBlock::ToolCall(_) => {}
            }
        }
        self.how_it_ended(answer)?;
        self.tokens(answer)
    }

    fn how_it_ended(&mut self, answer: &AssistantMessage) -> fmt::Result {
        let problem = answer.error_message.as_deref().map(escaped).unwrap_or_default();
        match answer.stop_reason {
            StopReason::Error => self.note("bad", &format!("The model failed. {problem}")),
            StopReason::Aborted => self.note("bad", &format!("Aborted. {problem}")),
            StopReason::Length => self.note("warn", "The output limit cut this answer."),
            StopReason::Pending | StopReason::Stop | StopReason::ToolUse => Ok(()),
        }
    }

    fn tokens(&mut self, answer: &AssistantMessage) -> fmt::Result {
        let usage = answer.usage;
        let parts = [
            (usage.input, "in"),
            (usage.cache_read, "from cache"),
            (usage.cache_write, "to cache"),
            (usage.output, "out"),
        ];
        let parts = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
        let parts: Vec<String> =
            parts.map(|(tokens, word)| format!("{} {word}", thousands(tokens))).collect();
        if parts.is_empty() {
            return Ok(());
        }
        writeln!(self.out, "<p class=\"tokens\">Tokens: {}</p>", parts.join(", "))
    }

    fn contents(&mut self, content: &[Content]) -> fmt::Result {
        for block in content {
            match block {
                Content::Text(text) => {
                    writeln!(self.out, "<div class=\"text\">{}</div>", escaped(text))?;
                }
                Content::Image(image) => self.image(image)?,
            }
        }
        Ok(())
    }

    fn image(&mut self, image: &Image) -> fmt::Result {
        let (kind, bytes) = (&*image.media_type, image.data.len());
        if !IMAGES.contains(&kind) {
            return self.note("", &format!("[{}, {bytes} bytes]", escaped(kind)));
        }
        let data = BASE64.encode(&image.data);
        writeln!(self.out, "<img alt=\"{kind}, {bytes} bytes\" src=\"data:{kind};base64,{data}\">")
    }

    fn open_message(&mut self, kind: &str, who: &str, at: u64) -> fmt::Result {
        let time = utc(at);
        let clock = time.get(11..19).unwrap_or_default();
        writeln!(
            self.out,
            "<article class=\"msg {kind}\" tabindex=\"-1\"><header><h3>{who}</h3>\
             <time title=\"{time}\">{clock}</time></header>"
        )
    }

    fn close_message(&mut self) -> fmt::Result {
        self.out.push_str("</article>\n");
        Ok(())
    }

    /// A sentence of the host's own; `html` is safe already.
    fn note(&mut self, kind: &str, html: &str) -> fmt::Result {
        writeln!(self.out, "<p class=\"note {kind}\">{html}</p>")
    }
}

fn facts(head: &Head) -> Vec<String> {
    let mut facts = vec![
        utc(head.began_us),
        span(head.ended_us.saturating_sub(head.began_us)),
        count(head.messages, "message"),
        count(head.calls, "call"),
    ];
    if head.failed > 0 {
        let failed = thousands(head.failed as u64);
        facts.push(format!("<b class=\"bad\">{failed} failed</b>"));
    }
    facts.extend(head.models.iter().map(|model| escaped(model)));
    facts.push(format!("<code>{}</code>", escaped(&head.id)));
    facts
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A source of the policy: what is in the element, byte for byte.
fn digest(content: &str) -> String {
    format!("sha256-{}", BASE64.encode(Sha256::digest(content)))
}

/// A dam: three piles, and the water held back.
const MARK: &str = "M3 4v16M9 4v16M15 4v16M21 4v16M3 9h18M3 15h18";

/// What needs the script is shown by it.
const TOOLS: &str = "\
<div class=\"tools\" hidden>
<button type=\"button\" id=\"problems\" aria-pressed=\"false\">Only problems</button>
<button type=\"button\" id=\"unfold\" aria-pressed=\"false\">Open calls</button>
<button type=\"button\" id=\"theme\">Theme</button>
<button type=\"button\" id=\"help\" aria-label=\"Help\">?</button>
</div>
";

const FOOT: &str = "\
<pre id=\"tip\" popover=\"manual\" role=\"tooltip\"></pre>
<dialog id=\"keys\" aria-labelledby=\"keys-title\">
<h2 id=\"keys-title\">How to read this page</h2>
<p>Under an answer stand its calls, in the order in which the model asked. Each line is the time line of one call:</p>
<dl class=\"legend\">
<dt><svg aria-hidden=\"true\"><line class=\"pre\" x1=\"4%\" x2=\"96%\" y1=\"50%\" y2=\"50%\"/></svg></dt><dd>preflight: checked, hooked, waiting to start</dd>
<dt><svg aria-hidden=\"true\" class=\"done\"><line class=\"ran\" x1=\"10%\" x2=\"90%\" y1=\"50%\" y2=\"50%\"/></svg></dt><dd>running; the colour says how it came out</dd>
<dt><svg aria-hidden=\"true\" class=\"done\"><line class=\"ran\" x1=\"10%\" x2=\"90%\" y1=\"50%\" y2=\"50%\"/><circle class=\"said\" cx=\"50%\" cy=\"50%\" r=\"2.2\"/></svg></dt><dd>a report of progress</dd>
<dt><svg aria-hidden=\"true\" class=\"done\"><line class=\"kept\" x1=\"4%\" x2=\"86%\" y1=\"50%\" y2=\"50%\"/><circle class=\"home\" cx=\"90%\" cy=\"50%\" r=\"3\"/></svg></dt><dd>ended, and kept until its place in the order of the calls</dd>
</dl>
<p>Point at a line, or move the focus to it, for its receipt. Open it for arguments and result.</p>
<table>
<tr><td><kbd>j</kbd> <kbd>k</kbd></td><td>next, previous message or call</td></tr>
<tr><td><kbd>n</kbd> <kbd>p</kbd></td><td>next, previous problem</td></tr>
<tr><td><kbd>Enter</kbd></td><td>open or close the call in focus</td></tr>
<tr><td><kbd>o</kbd></td><td>open or close all calls</td></tr>
<tr><td><kbd>f</kbd></td><td>only problems</td></tr>
<tr><td><kbd>t</kbd></td><td>light, dark</td></tr>
<tr><td><kbd>?</kbd></td><td>this help</td></tr>
</table>
<form method=\"dialog\"><button>Close</button></form>
</dialog>
";
