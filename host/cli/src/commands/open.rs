//! An operator's file opened: the one way for every command that runs an agent's tools, so that each
//! honours every key of it.

use super::session;
use crate::args::{FileArgs, RecordArgs};
use crate::exit::Refused as _;
use crate::observe::Observing;
use crate::render::Output;
use cofferdam_agent::Agent;
use cofferdam_app::reload::Reload;
use cofferdam_app::session::{Recorder, Sessions};
use cofferdam_app::{Assembled, Config, Options, Pinning, assemble};
use cofferdam_observe::Subject;
use cofferdam_sandbox::Chance;

/// An agent that was opened.
pub(crate) struct Opened {
    pub(crate) agent: Agent,
    /// Whether a session is written.
    pub(crate) is_recorded: bool,
}

/// The agent of a file. The flags decide on pinning and on the session, this program on the sandbox,
/// `options` on the rest. Without `record` there is no session. What the operator should know goes to
/// standard error; whatever is wrong is a refusal. The agent is observed as it was asked for.
pub(crate) async fn open(
    file: &FileArgs,
    record: Option<&RecordArgs>,
    observing: &Observing,
    options: Options,
) -> anyhow::Result<Opened> {
    let config = Config::load(&file.config, &file.over.layers()).refused()?;
    let session = match record {
        Some(record) => session(file, record, &config)?,
        None => None,
    };
    let pinning = if file.allow_unpinned { Pinning::Optional } else { Pinning::Required };
    let mut sandbox = super::sandbox_config();
    if record.is_some_and(|record| record.record_seeds) {
        sandbox.chance = Chance::Recorded;
    }
    sandbox.log = observing.plugin_log();
    let model = config.model.as_ref().filter(|_| options.model.is_none());
    let mut subject = Subject {
        provider: model.map(|model| model.provider().to_owned()),
        model: model.and_then(|model| model.remote()).map(|remote| remote.name.clone()),
        session: None,
    };
    let reload = options.reload.or_else(|| Some(Reload::new(note)));
    let options = Options { pinning, session, sandbox, reload, ..options };
    let Assembled { agent, notices, session, .. } = assemble(&config, options).await.refused()?;
    for notice in notices {
        Output::Err.line(&format!("note: {notice}"));
    }
    if let Some(session) = &session {
        Output::Err.line(&format!("session {}", session.id()));
        subject.session = Some(session.id().to_string());
    }
    observing.watch(&agent, &subject);
    Ok(Opened { agent, is_recorded: session.is_some() })
}

/// Tells what became of a file that changed.
pub(crate) fn note(told: &str) {
    Output::Err.line(&format!("note: {told}"));
}

impl RecordArgs {
    /// Whether an old session goes on.
    pub(crate) fn resumes(&self) -> bool {
        self.continue_latest || self.session.is_some()
    }
}

/// The session to write: a new one, an old one, or none.
fn session(
    file: &FileArgs,
    record: &RecordArgs,
    config: &Config,
) -> anyhow::Result<Option<Recorder>> {
    let resumes = record.resumes();
    if record.no_session || !(config.session.record || resumes) {
        return Ok(None);
    }
    let sessions = match session::folder_of(Some(config)) {
        Ok(sessions) => sessions,
        Err(problem) if resumes => return Err(problem).refused(),
        Err(problem) => {
            Output::Err.line(&format!("note: no session is kept: {problem}"));
            return Ok(None);
        }
    };
    let session = match &record.session {
        Some(wanted) => sessions.open(wanted),
        None if record.continue_latest => sessions.open_latest_of(&file.config),
        None => return fresh(&sessions, config),
    };
    session.map(Some).refused()
}

/// Nobody asked for the folder that is used by default: where it cannot be made, the run goes on
/// without a session.
fn fresh(sessions: &Sessions, config: &Config) -> anyhow::Result<Option<Recorder>> {
    match sessions.make_folder() {
        Ok(()) => Ok(Some(sessions.fresh())),
        Err(problem) if config.session.dir.is_some() => Err(problem).refused(),
        Err(problem) => {
            Output::Err.line(&format!("note: no session is kept: {problem}"));
            Ok(None)
        }
    }
}
