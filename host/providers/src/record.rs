//! A run recorded: what a model answers, written as a script that [`crate::scripted`] plays again
//! without any network.

use crate::scripted::PROVIDER;
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{AssistantBlock, AssistantMessage, StopReason};
use cofferdam_agent::model::{Model, Request, Step};
use futures::stream::{BoxStream, StreamExt};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A model whose answers are written to a file, each as soon as it is complete.
pub struct Recording {
    model: Arc<dyn Model>,
    tape: Arc<Tape>,
}

/// A recording that cannot be begun.
#[derive(Debug, thiserror::Error)]
#[error("begin the recording {}: {problem}", path.display())]
pub struct RecordError {
    path: PathBuf,
    problem: std::io::Error,
}

struct Tape {
    path: PathBuf,
    answers: Mutex<Vec<Value>>,
}

/// What one answer was sent in.
#[derive(Default)]
struct Heard {
    started: bool,
    pieces: BTreeMap<usize, Vec<String>>,
}

impl Recording {
    /// Records `model` into a new file. One that is there already is not overwritten.
    pub fn new(model: Arc<dyn Model>, path: &Path) -> Result<Self, RecordError> {
        let tape = Tape { path: path.into(), answers: Mutex::default() };
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .and_then(|mut file| file.write_all(b"[]\n"))
            .map_err(|problem| RecordError { path: path.into(), problem })?;
        Ok(Self { model, tape: Arc::new(tape) })
    }
}

impl Model for Recording {
    fn stream(&self, request: Request, abort: AbortSignal) -> BoxStream<'static, Step> {
        let tape = self.tape.clone();
        let mut heard = Heard::default();
        let listen = move |mut step| {
            heard.hear(&step);
            if let Step::Done(message) = &mut step
                && let Err(problem) = tape.keep(&heard, message)
            {
                // Whoever asked for a recording does not want a run without one.
                message.stop_reason = StopReason::Error;
                message.error_message =
                    Some(format!("write the recording {}: {problem}", tape.path.display()));
            }
            step
        };
        self.model.stream(request, abort).map(listen).boxed()
    }
}

impl Heard {
    fn hear(&mut self, step: &Step) {
        match step {
            Step::Start => self.started = true,
            Step::TextDelta { index, delta }
            | Step::ThinkingDelta { index, delta }
            | Step::ToolCallDelta { index, delta } => {
                self.pieces.entry(*index).or_default().push(escaped(delta));
            }
            _ => {}
        }
    }
}

impl Tape {
    fn keep(&self, heard: &Heard, message: &AssistantMessage) -> std::io::Result<()> {
        // A call that was aborted before it began uses up no answer of a script either.
        if !heard.started && message.stop_reason == StopReason::Aborted {
            return Ok(());
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.push(answer(heard, message));
        let text = serde_json::to_string_pretty(&*answers)?;
        // The file is a whole script at any time.
        let mut half = self.path.clone().into_os_string();
        half.push(".part");
        std::fs::write(&half, text + "\n")?;
        std::fs::rename(&half, &self.path)
    }
}

fn answer(heard: &Heard, message: &AssistantMessage) -> Value {
    let blocks = message.content.iter().enumerate();
    let content: Vec<Value> =
        blocks.map(|(index, one)| block(one, heard.pieces.get(&index))).collect();
    let mut fields = Map::new();
    fields.insert("content".into(), content.into());
    fields.insert("stop_reason".into(), message.stop_reason.as_str().into());
    put(&mut fields, "raw_stop_reason", message.raw_stop_reason.as_deref());
    put(&mut fields, "error_message", message.error_message.as_deref());
    let stream = if heard.started { "deltas" } else { "none" };
    fields.insert("stream".into(), stream.into());
    let usage = &message.usage;
    fields.insert(
        "usage".into(),
        json!({
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "cache_read_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        }),
    );
    // For readers; the model that plays it calls itself by its own name.
    if message.provider != PROVIDER {
        fields.insert(
            "recorded_from".into(),
            format!("{} {}", message.provider, message.model).into(),
        );
    }
    Value::Object(fields)
}

fn block(block: &AssistantBlock, pieces: Option<&Vec<String>>) -> Value {
    let mut fields = Map::new();
    match block {
        AssistantBlock::Text(text) => {
            fields.insert("type".into(), "text".into());
            fields.insert("text".into(), escaped(&text.text).into());
            put(&mut fields, "signature", text.signature.as_deref());
        }
        AssistantBlock::Thinking(thinking) => {
            fields.insert("type".into(), "thinking".into());
            fields.insert("thinking".into(), escaped(&thinking.thinking).into());
            put(&mut fields, "signature", thinking.signature.as_deref());
            put(&mut fields, "id", thinking.id.as_deref());
            if thinking.redacted {
                fields.insert("redacted".into(), true.into());
            }
        }
        AssistantBlock::ToolCall(call) => {
            fields.insert("type".into(), "tool_call".into());
            fields.insert("id".into(), call.id.as_str().into());
            fields.insert("name".into(), call.name.as_str().into());
            let arguments = call.arguments.iter();
            let arguments = arguments.map(|(key, value)| (key.clone(), escaped_value(value)));
            fields.insert("arguments".into(), Value::Object(arguments.collect()));
            if let Some(malformed) = &call.malformed {
                fields.insert("arguments_text".into(), escaped(&malformed.text).into());
            }
            put(&mut fields, "signature", call.signature.as_deref());
        }
    }
    if let Some(pieces) = pieces {
        fields.insert("chunks".into(), json!(pieces));
    }
    Value::Object(fields)
}

/// A text that a script would take for a reference is marked as none.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

fn escaped_value(value: &Value) -> Value {
    match value {
        Value::String(text) => escaped(text).into(),
        Value::Array(items) => items.iter().map(escaped_value).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), escaped_value(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn put(fields: &mut Map<String, Value>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        fields.insert(key.into(), value.into());
    }
}
