//! Ids of calls, as far as providers restrict them. A call and its result are renamed together, and
//! no two calls of one request share an id (earendil-works/pi 6796: ids cut to a shared prefix
//! collide; anomalyco/opencode 1680, zed-industries/zed 53034: foreign ids are refused).

use cofferdam_agent::message::{AssistantBlock, AssistantMessage, Message, ToolCall};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// What ids of calls that the provider gave no id begin with.
pub(crate) const MADE_PREFIX: &str = "call_made_";

/// Which ids a provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdRule {
    /// Letters, digits, `_` and `-`, up to this many.
    Plain {
        /// Characters at most.
        max: usize,
        /// Whether ids that this very model gave are sent back as they are: some models write
        /// better calls when they see their own (`functions.bash:0`).
        keep_own: bool,
    },
    /// Exactly so many letters and digits.
    Exact(usize),
}

/// The messages with ids that the rule takes.
pub(crate) fn rewritten(
    messages: &[Arc<Message>],
    rule: IdRule,
    own: impl Fn(&AssistantMessage) -> bool,
) -> Vec<Arc<Message>> {
    let mut names = Names { rule, used: HashSet::new() };
    // Results follow the answer with their calls, in any order; calls of one id in source order.
    let mut open: HashMap<&str, VecDeque<String>> = HashMap::new();
    let mut out = Vec::with_capacity(messages.len());
    for message in messages {
        out.push(match &**message {
            Message::Assistant(answer) => {
                let own = own(answer);
                open.clear();
                let new: Vec<String> =
                    answer.tool_calls().map(|call| names.name(&call.id, own)).collect();
                for (call, new) in answer.tool_calls().zip(&new) {
                    open.entry(&call.id).or_default().push_back(new.clone());
                }
                renamed(message, answer, &new)
            }
            Message::ToolResult(result) => {
                let new = open.get_mut(result.tool_call_id.as_str()).and_then(VecDeque::pop_front);
                match new {
                    Some(new) if new != result.tool_call_id => {
                        let mut result = result.clone();
                        result.tool_call_id = new;
                        Arc::new(Message::ToolResult(result))
                    }
                    _ => message.clone(),
                }
            }
            Message::User(_) | Message::Custom(_) => message.clone(),
        });
    }
    out
}

fn renamed(message: &Arc<Message>, answer: &AssistantMessage, new: &[String]) -> Arc<Message> {
    if answer.tool_calls().zip(new).all(|(call, new)| call.id == *new) {
        return message.clone();
    }
    let mut new = new.iter();
    let mut answer = answer.clone();
    for block in &mut answer.content {
        if let AssistantBlock::ToolCall(ToolCall { id, .. }) = block {
            new.next().into_iter().for_each(|new| id.clone_from(new));
        }
    }
    Arc::new(Message::Assistant(answer))
}

struct Names {
    rule: IdRule,
    used: HashSet<String>,
}

impl Names {
    fn name(&mut self, id: &str, own: bool) -> String {
        let mut wanted = self.wanted(id, own);
        let mut next = 0usize;
        while wanted.is_empty() || !self.used.insert(wanted.clone()) {
            wanted = self.numbered(id, next);
            next += 1;
        }
        wanted
    }

    /// The id as the rule takes it; empty if nothing of it is left.
    fn wanted(&self, id: &str, own: bool) -> String {
        match self.rule {
            IdRule::Plain { keep_own: true, .. } if own => id.to_owned(),
            IdRule::Plain { max, .. } => {
                let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let plain = id.chars().map(|c| if legal(c) { c } else { '_' });
                plain.take(max).collect()
            }
            IdRule::Exact(length) => {
                let fits = id.len() == length && id.bytes().all(|b| b.is_ascii_alphanumeric());
                if fits { id.to_owned() } else { self.numbered(id, 0) }
            }
        }
    }

    /// A legal id from the hash of this one, so that it stays the same from request to request and
    /// a provider's cache of the conversation keeps its worth.
    fn numbered(&self, id: &str, number: usize) -> String {
        let digits = base36(fnv(id, number));
        match self.rule {
            IdRule::Plain { .. } => format!("call_{digits}"),
            IdRule::Exact(length) => {
                let padded = format!("{digits:0>length$}");
                padded[padded.len() - length..].to_owned()
            }
        }
    }
}

/// FNV-1a, 64 bits: stable over versions and machines, which the standard hasher is not.
fn fnv(text: &str, number: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes().chain(number.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    while number > 0 || digits.is_empty() {
        digits.push(char::from(DIGITS[(number % 36) as usize]));
        number /= 36;
    }
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_agent::message::{StopReason, ToolResultMessage};

    fn transcript(turns: &[&[&str]]) -> Vec<Arc<Message>> {
        let mut messages = Vec::new();
        for ids in turns {
            let call = |id: &&str| AssistantBlock::ToolCall(ToolCall::from_text(*id, "t", ""));
            messages.push(Arc::new(Message::Assistant(AssistantMessage {
                content: ids.iter().map(call).collect(),
                stop_reason: StopReason::ToolUse,
                ..AssistantMessage::pending()
            })));
            for id in *ids {
                messages.push(Arc::new(Message::ToolResult(ToolResultMessage {
                    tool_call_id: (*id).into(),
                    tool_name: "t".into(),
                    content: Vec::new(),
                    details: None,
                    is_error: false,
                })));
            }
        }
        messages
    }

    /// The ids of calls, after checking that each result still has its call's.
    fn ids(messages: &[Arc<Message>]) -> Vec<String> {
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for message in messages {
            match &**message {
                Message::Assistant(answer) => {
                    calls.extend(answer.tool_calls().map(|c| c.id.clone()));
                }
                Message::ToolResult(result) => results.push(result.tool_call_id.clone()),
                _ => {}
            }
        }
        assert_eq!(calls, results);
        let distinct: HashSet<&String> = calls.iter().collect();
        assert_eq!(distinct.len(), calls.len(), "{calls:?}");
        calls
    }

    const LONG: &str = "call_0123456789012345678901234567890123456789";

    #[test]
    fn every_rule_gets_legal_distinct_ids_and_keeps_legal_ones() {
        let other_long = format!("{LONG}x");
        let turns: &[&[&str]] = &[
            &["functions.bash:0", "functions.bash:1", "", "::"],
            &[LONG, &other_long, "ok-1", "ok-1", "g6fVbXS8K"],
            &["functions.bash:0"],
        ];
        for (rule, legal) in
            [(IdRule::Plain { max: 40, keep_own: false }, 1..=40), (IdRule::Exact(9), 9..=9)]
        {
            let ids = ids(&rewritten(&transcript(turns), rule, |_| false));
            for id in &ids {
                assert!(legal.contains(&id.len()), "{id}");
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
                assert!(id.bytes().all(plain), "{id}");
            }
            assert!(ids.contains(&"g6fVbXS8K".to_owned()), "{ids:?}");
        }
    }

    #[test]
    fn a_models_own_ids_go_back_as_they_are() {
        let messages = transcript(&[&["functions.bash:0"]]);
        let rule = IdRule::Plain { max: 40, keep_own: true };
        assert_eq!(ids(&rewritten(&messages, rule, |_| true)), ["functions.bash:0"]);
        assert_eq!(ids(&rewritten(&messages, rule, |_| false)), ["functions_bash_0"]);
    }

    #[test]
    fn an_id_is_renamed_alike_in_every_request() {
        let rule = IdRule::Exact(9);
        let short = ids(&rewritten(&transcript(&[&["toolu_1"]]), rule, |_| false));
        let long = ids(&rewritten(&transcript(&[&["toolu_1"], &["toolu_2"]]), rule, |_| false));
        assert_eq!(short[0], long[0]);
    }
}
