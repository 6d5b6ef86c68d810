//! From the events of a body to steps, by the rules that hold for every wire: what ends an answer,
//! and what a body that ends too soon means.

use crate::draft::{Draft, Ending, Stop};
use crate::endpoint::Wire;
use crate::events::{Event, Events};
use crate::mask::Mask;
use crate::wire::{Decoder, Flow};
use bytes::Bytes;
use cofferdam_agent::message::Message;
use cofferdam_agent::model::Step;
use serde_json::Value;
use std::sync::Arc;

/// Characters of an event that is none, shown.
const EVENT_CHARS_MAX: usize = 200;
/// What a body says that ends without an ending.
const CUT: &str = "the stream ended before the answer did, without a finish reason: the server or something \
                   on the way cut it";

/// One answer that is being read.
pub(crate) struct Reader {
    decoder: Box<dyn Decoder>,
    draft: Draft,
    provider: String,
    model: String,
    mask: Mask,
}

/// The steps of an answer whose body was kept, in the pieces in which it came. For tools that look
/// at recorded traffic; a model call reads in the same way.
pub async fn read_body(wire: Wire, pieces: Vec<Bytes>) -> Vec<Step> {
    let mut reader = Reader::new(wire, &[], "recorded", "recorded");
    let mut events = Events::of_pieces(pieces);
    while reader.take(events.next().await) != Flow::Over {}
    std::iter::from_fn(|| reader.next_step()).collect()
}

impl Reader {
    /// An answer to these messages.
    pub(crate) fn new(wire: Wire, messages: &[Arc<Message>], provider: &str, model: &str) -> Self {
        Self {
            decoder: wire.decoder(),
            draft: Draft::new(messages),
            provider: provider.into(),
            model: model.into(),
            mask: Mask::default(),
        }
    }

    /// Keeps the credential of the call out of all that the server says beside the answer itself.
    pub(crate) fn keep_out(&mut self, mask: Mask) {
        self.draft.mask = mask.clone();
        self.mask = mask;
    }

    /// The next step that nobody has seen yet.
    pub(crate) fn next_step(&mut self) -> Option<Step> {
        self.draft.next_step()
    }

    /// Takes what came next: an event, what broke, or nothing more. The last step is made where it
    /// is [`Flow::Over`].
    pub(crate) fn take(&mut self, came: Option<Result<Event, String>>) -> Flow {
        let flow = match came {
            Some(Ok(event)) => {
                self.draft.start();
                self.event(&event)
            }
            Some(Err(problem)) => return self.ended(problem),
            None => return self.ended(CUT.into()),
        };
        if flow == Flow::Over { self.ended(CUT.into()) } else { flow }
    }

    fn event(&mut self, event: &Event) -> Flow {
        if event.data.trim() == "[DONE]" {
            return Flow::Over;
        }
        match serde_json::from_str::<Value>(&event.data) {
            Ok(mut data) => {
                // Some servers name the kind of an event in the frame only.
                if let (Value::Object(fields), false) = (&mut data, event.name.is_empty()) {
                    fields.entry("type").or_insert_with(|| event.name.as_str().into());
                }
                self.decoder.event(&data, &mut self.draft)
            }
            // Half an event at the end of the bytes: the rule for bodies that are cut applies.
            Err(_) if event.unclosed => Flow::More,
            Err(_) => {
                // Masked first: half a credential would not be found.
                let shown: String =
                    self.masked(&event.data).chars().take(EVENT_CHARS_MAX).collect();
                self.fail(match event.name.as_str() {
                    "error" => shown,
                    _ => format!("the server sent an event that is no JSON: {shown}"),
                });
                Flow::Over
            }
        }
    }

    /// Ends with what was stated, or with `otherwise` if nothing was. How the bytes ended does not
    /// matter once the answer's ending was stated.
    fn ended(&mut self, otherwise: String) -> Flow {
        // A decoder that closes what is open would add steps to an answer that is over.
        if self.draft.is_finished() {
            return Flow::Over;
        }
        let ending = self.decoder.ending(&mut self.draft);
        self.end(ending.unwrap_or(Ending { stop: Stop::Failed(otherwise), raw: None }));
        Flow::Over
    }

    /// Ends with a failure.
    pub(crate) fn fail(&mut self, problem: String) {
        self.end(Ending { stop: Stop::Failed(problem), raw: None });
    }

    /// Ends because the run was aborted.
    pub(crate) fn abort(&mut self) {
        self.end(Ending { stop: Stop::Aborted, raw: None });
    }

    /// The only way to the last step. Taken twice, the first counts.
    fn end(&mut self, mut ending: Ending) {
        if self.draft.is_finished() {
            return;
        }
        if let Stop::Failed(problem) = ending.stop {
            ending.stop = Stop::Failed(self.masked(&problem));
        }
        ending.raw = ending.raw.map(|word| self.masked(&word));
        self.draft.finish(ending, &self.provider, &self.model);
    }

    /// A text without the credential.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.mask.apply(text)
    }
}
