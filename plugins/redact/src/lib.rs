//! Masks secrets in results, before the model, the transcript or anybody else sees them.
//!
//! `pattern` is the list of what secrets look like, `mask` goes over texts and JSON.

mod mask;
mod pattern;

use cofferdam_plugin::{Amendment, Content, HookedCall, Outcome, Result, Value, export, json};

use mask::Masker;
use pattern::Patterns;

fn redact(_call: &HookedCall, outcome: &Outcome) -> Result<Amendment> {
    let patterns = Patterns::configured()?;
    let mut masker = Masker::new(&patterns);
    let content: Vec<_> =
        outcome.reply.content.iter().map(|piece| masked(&mut masker, piece)).collect();
    let mut details = outcome.reply.details.clone();
    if let Some(details) = &mut details {
        masker.json(details);
    }
    if masker.count == 0 {
        return Ok(Amendment::keep());
    }
    // Details that are no object keep their shape: somebody may rely on it.
    if let Some(Value::Object(map)) = &mut details {
        map.entry("redacted").or_insert(json!(masker.count));
    }
    Ok(Amendment { content: Some(content), details, ..Amendment::keep() })
}

fn masked(masker: &mut Masker<'_>, content: &Content) -> Content {
    match content {
        Content::Text(text) => Content::Text(masker.text(text)),
        Content::Other { kind, data } => {
            Content::Other { kind: kind.clone(), data: masker.json_text(data) }
        }
        image @ Content::Image { .. } => image.clone(),
    }
}

export! { after: redact }

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_plugin::{Reply, testing};

    fn run(reply: Reply) -> Amendment {
        redact(&HookedCall::default(), &reply.into()).unwrap()
    }

    #[test]
    fn nothing_to_mask_keeps_all() {
        assert_eq!(run(Reply::text("all is well").details(json!({ "a": 1 }))), Amendment::keep());
    }

    #[test]
    fn content_and_details_are_masked_and_counted() {
        let reply = Reply::text("password=hunter2")
            .details(json!({ "env": ["TOKEN=abc12345"], "password": "x" }));
        let amendment = run(reply);
        assert_eq!(amendment.content.unwrap(), [Content::from("password=[redacted]")]);
        let expected =
            json!({ "env": ["TOKEN=[redacted]"], "password": "[redacted]", "redacted": 3 });
        assert_eq!(amendment.details.unwrap(), expected);
        assert_eq!((amendment.is_error, amendment.terminate), (None, None));
    }

    #[test]
    fn other_content_is_masked_inside() {
        let data = json!({ "token": "abc", "uri": "https://u:p@h/" }).to_string();
        let reply = Reply::default().and(Content::Other { kind: "resource-link".to_owned(), data });
        let Some([Content::Other { data, .. }]) =
            run(reply).content.as_deref().map(<[_]>::to_vec).map(|c| [c[0].clone()])
        else {
            panic!("one piece of content")
        };
        assert_eq!(data, r#"{"token":"[redacted]","uri":"https://u:[redacted]@h/"}"#);
    }

    #[test]
    fn the_operators_patterns_come_on_top() {
        let _host = testing::host().config("patterns", "EMP-[0-9]{6}\nroom (?P<secret>\\w+)");
        let amendment = run(Reply::text("EMP-123456 is in room blue"));
        assert_eq!(amendment.content.unwrap(), [Content::from("[redacted] is in room [redacted]")]);
    }

    #[test]
    fn a_bad_pattern_fails_the_hook() {
        let _host = testing::host().config("patterns", "a(");
        assert!(
            redact(&HookedCall::default(), &Outcome::default())
                .unwrap_err()
                .message
                .contains("pattern `a(`")
        );
    }
}
