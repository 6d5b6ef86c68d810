//! Writes a session as its runs go: as the journal of the agent, which gets messages in transcript
//! order and calls as they end, and as an observer, which sees the rest.
//!
//! What the recorder was told as a journal is in the file before anybody else hears of it.

use super::SessionError;
use super::format::{Entry, Header, Line, Setup, VERSION};
use super::reader::Record;
use super::transcript::Transcript;
use super::writer::Writer;
use cofferdam_agent::event::{CallEnd, Event, Observer};
use cofferdam_agent::journal::{Journal, JournalError};
use cofferdam_agent::message::{Arguments, Message};
use futures::future::BoxFuture;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads the time in microseconds since 1970.
pub type TimeSource = Box<dyn Fn() -> u64 + Send + Sync>;

/// A session that is being written, or is about to be.
pub struct Recorder {
    id: String,
    path: PathBuf,
    time: TimeSource,
    state: Mutex<State>,
}

struct State {
    output: Output,
    /// The call that is in preflight: there is one at a time.
    preflight: String,
    /// The arguments of the calls of this batch, as the model sent them.
    sent: Vec<(String, Arguments)>,
    /// Calls whose end the journal was told of, and the observer was not yet.
    ended: Vec<String>,
}

/// Where lines go.
enum Output {
    /// A file that does not exist yet.
    Fresh,
    /// A file that has been read and locked, and nothing else.
    Opened { writer: Writer, record: Box<Record> },
    /// A file that is written.
    File(Writer),
    /// Nowhere but here.
    Memory(Vec<Line>),
}

impl Recorder {
    /// A new session in this file, which is made when the session begins.
    pub(super) fn fresh(id: String, path: PathBuf, time: TimeSource) -> Self {
        Self::new(id, path, time, Output::Fresh)
    }

    /// An old session to go on with. Nothing is written before it begins.
    pub(super) fn open(path: PathBuf, time: TimeSource) -> Result<Self, SessionError> {
        let opened = Writer::open(&path).map_err(|problem| match problem.kind() {
            io::ErrorKind::WouldBlock => SessionError::Locked { path: path.clone() },
            _ => SessionError::Read { path: path.clone(), problem },
        });
        let (writer, bytes) = opened?;
        let record = Record::read_to_go_on(&bytes)
            .map_err(|problem| SessionError::NoRecord { path: path.clone(), problem })?;
        let id = record.header.id.clone();
        Ok(Self::new(id, path, time, Output::Opened { writer, record: Box::new(record) }))
    }

    /// A session that is kept in memory only.
    pub(super) fn in_memory(id: String, time: TimeSource) -> Self {
        Self::new(id, PathBuf::new(), time, Output::Memory(Vec::new()))
    }

    fn new(id: String, path: PathBuf, time: TimeSource, output: Output) -> Self {
        let state = State { output, preflight: String::new(), sent: Vec::new(), ended: Vec::new() };
        Self { id, path, time, state: Mutex::new(state) }
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the whole of long results goes, if the operator wants that: beside the file.
    pub fn results_folder(&self) -> PathBuf {
        self.path.with_extension("results")
    }

    /// Begins, or goes on: a new file gets its header; in an old one a cut last line is mended and
    /// calls without a result get one. Returns the transcript so far.
    pub fn begin(&self, setup: Setup) -> Result<Vec<Arc<Message>>, SessionError> {
        let failed = |problem| SessionError::Write { path: self.path.clone(), problem };
        let mut state = self.state();
        match std::mem::replace(&mut state.output, Output::Fresh) {
            Output::Fresh => {
                state.output = Output::File(self.created(setup).map_err(failed)?);
                Ok(Vec::new())
            }
            Output::Opened { writer, record } => {
                let (writer, messages) = self.reopened(writer, &record, setup).map_err(failed)?;
                state.output = Output::File(writer);
                Ok(messages)
            }
            begun => {
                state.output = begun;
                Ok(Vec::new())
            }
        }
    }

    fn created(&self, setup: Setup) -> io::Result<Writer> {
        let mut writer = Writer::create(&self.path)?;
        let header = Header {
            version: VERSION,
            id: self.id.clone(),
            cofferdam: env!("CARGO_PKG_VERSION").into(),
        };
        // At once: a file with a header alone would say nothing of whose it is.
        let begun = writer.append(&self.text([Entry::Session(header), Entry::Setup(setup.into())]));
        if begun.is_err() {
            let _ = std::fs::remove_file(&self.path);
        }
        begun.map(|()| writer)
    }

    fn reopened(
        &self,
        mut writer: Writer,
        record: &Record,
        setup: Setup,
    ) -> io::Result<(Writer, Vec<Arc<Message>>)> {
        let Transcript { mut messages, missing } = Transcript::of(&record.lines);
        writer.mend(record.whole_bytes)?;
        let mut entries = vec![Entry::Opened { cut_bytes: record.cut_bytes }];
        entries.extend(missing.iter().cloned().map(Entry::Message));
        if record.last_setup() != Some(&setup) {
            entries.push(Entry::Setup(setup.into()));
        }
        writer.append(&self.text(entries))?;
        writer.sync()?;
        messages.extend(missing);
        Ok((writer, messages))
    }

    fn text(&self, entries: impl IntoIterator<Item = Entry>) -> String {
        let line = |entry| Line { at_us: (self.time)(), entry }.to_text();
        entries.into_iter().map(line).collect()
    }

    /// The lines of a session in memory.
    pub(super) fn lines(&self) -> Vec<Line> {
        match &self.state().output {
            Output::Memory(lines) => lines.clone(),
            Output::Fresh | Output::Opened { .. } | Output::File(_) => Vec::new(),
        }
    }

    /// Notes that the turns that follow are made of something else.
    pub(crate) fn changed(&self, setup: Setup) {
        let mut state = self.state();
        self.note(&mut state, Entry::Setup(setup.into()));
    }

    /// Notes that the tool of the call in preflight has prepared its arguments.
    pub(super) fn prepared(&self, prepared: Result<serde_json::Value, String>) {
        let mut state = self.state();
        let id = state.preflight.clone();
        self.note(&mut state, Entry::CallPrepared { id, prepared });
    }

    /// Notes that a tool begins to run.
    pub(super) fn runs(&self, id: &str, arguments: &Arguments) {
        let mut state = self.state();
        let sent = state.sent.iter().find(|(sent, _)| sent == id);
        let as_sent = sent.is_some_and(|(_, sent)| sent == arguments);
        let arguments = (!as_sent).then(|| arguments.clone());
        self.note(&mut state, Entry::CallRun { id: id.to_owned(), arguments });
    }

    fn observe(&self, event: &Event<'_>) {
        let mut state = self.state();
        let entry = match event {
            Event::AgentStart => Entry::RunStart,
            Event::TurnStart => {
                state.sent.clear();
                state.ended.clear();
                Entry::TurnStart
            }
            Event::ModelRetry { retry } => Entry::ModelRetry((*retry).clone()),
            Event::ToolExecutionStart { call } => {
                state.preflight = call.id.to_owned();
                state.sent.push((call.id.to_owned(), call.arguments.clone()));
                Entry::CallStart { id: call.id.to_owned(), name: call.name.to_owned() }
            }
            Event::ToolExecutionUpdate { call, partial } => {
                let partial = (*partial).clone();
                Entry::CallProgress { id: call.id.to_owned(), partial }
            }
            Event::ToolExecutionEnd { call, end } => {
                if let Some(at) = state.ended.iter().position(|id| id == call.id) {
                    state.ended.swap_remove(at);
                    return;
                }
                call_end(call.id, call.name, end)
            }
            Event::TurnEnd { .. } => Entry::TurnEnd,
            Event::AgentEnd { .. } => Entry::RunEnd,
            // Messages come through the journal.
            Event::MessageStart { .. } | Event::MessageUpdate { .. } | Event::MessageEnd { .. } => {
                return;
            }
        };
        let turn_is_over = matches!(entry, Entry::TurnEnd | Entry::RunEnd);
        self.note(&mut state, entry);
        if turn_is_over && let Output::File(writer) = &state.output {
            // A disk that fails here fails the next message too, which ends the run.
            let _ = writer.sync();
        }
    }

    /// Writes what is not a message. A failure shows again when the next message is written, and
    /// ends the run there.
    fn note(&self, state: &mut State, entry: Entry) {
        let _ = self.write(state, entry);
    }

    fn write(&self, state: &mut State, entry: Entry) -> Result<(), JournalError> {
        let line = Line { at_us: (self.time)(), entry };
        let written = match &mut state.output {
            Output::File(writer) => writer.append(&line.to_text()),
            Output::Memory(lines) => {
                lines.push(line);
                Ok(())
            }
            Output::Fresh | Output::Opened { .. } => {
                Err(io::Error::other("the session has not begun"))
            }
        };
        written.map_err(|problem| {
            JournalError(format!(
                "{}: {problem}; what was written before is kept",
                self.path.display()
            ))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for Recorder {
    fn append<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Result<(), JournalError>> {
        let written = self.write(&mut self.state(), Entry::Message(message.clone()));
        Box::pin(std::future::ready(written))
    }

    fn finished<'a>(
        &'a self,
        tool_call_id: &'a str,
        tool_name: &'a str,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let mut state = self.state();
        let written = self.write(&mut state, call_end(tool_call_id, tool_name, end));
        if written.is_ok() {
            state.ended.push(tool_call_id.to_owned());
        }
        Box::pin(std::future::ready(written))
    }
}

impl Observer for Recorder {
    fn on_event<'a>(&'a self, event: &'a Event<'a>) -> BoxFuture<'a, ()> {
        self.observe(event);
        Box::pin(std::future::ready(()))
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path).finish_non_exhaustive()
    }
}

fn call_end(id: &str, name: &str, end: &CallEnd) -> Entry {
    Entry::CallEnd { id: id.to_owned(), name: name.to_owned(), end: Box::new(end.clone()) }
}
