//! One client's session: its requests, the run that it started, the questions that it owes answers.

use super::PROTOCOL;
use super::lines::{LINE_MAX, Line, Lines};
use super::outbox::Outbox;
use super::request::{Id, Malformed, Request, What};
use crate::approve::{OpenQuestion, Questions};
use crate::json;
use crate::reload::{Reload, Rights};
use cofferdam_agent::hook::Decision;
use cofferdam_agent::queue::QueueKind;
use cofferdam_agent::{AbortSignal, Agent, AgentError, RunEnd};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::AsyncBufRead;

type Run = BoxFuture<'static, Result<RunEnd, AgentError>>;

pub(super) struct Session {
    agent: Agent,
    reload: Option<Arc<Reload>>,
    questions: Questions,
    /// Questions that wait for an answer, by number.
    open: BTreeMap<u64, OpenQuestion>,
    asked: u64,
    run: Option<Run>,
    out: Arc<Outbox>,
}

/// Why a request was not carried out: a code for programs and a sentence for people.
struct Refusal(&'static str, String);

impl Session {
    pub(super) fn new(
        agent: Agent,
        reload: Option<Arc<Reload>>,
        questions: Questions,
        out: Arc<Outbox>,
    ) -> Self {
        Self { agent, reload, questions, open: BTreeMap::new(), asked: 0, run: None, out }
    }

    /// Until there is nobody to serve any more.
    pub(super) async fn run(
        mut self,
        mut lines: Lines<impl AsyncBufRead + Unpin>,
        stop: AbortSignal,
    ) -> io::Result<()> {
        self.greet();
        let served = loop {
            let out = self.out.clone();
            let line = async {
                out.room().await;
                lines.next().await
            };
            tokio::select! {
                line = line => match line {
                    Ok(Some(line)) => self.line(line).await,
                    Ok(None) => break Ok(()),
                    Err(problem) => break Err(problem),
                },
                ended = ended(&mut self.run) => self.ended(ended),
                Some(question) = self.questions.next() => self.ask(question),
                number = taken_back(&mut self.open) => self.withdraw(number),
                told = told(&self.reload) => self.tell(told),
                () = stop.cancelled() => break Ok(()),
                () = self.out.gone() => break Ok(()),
            }
        };
        self.leave().await;
        served
    }

    fn greet(&self) {
        let tools = self.tools();
        let version = env!("CARGO_PKG_VERSION");
        self.say(json!({
            "type": "hello", "protocol": PROTOCOL, "version": version, "tools": tools,
        }));
    }

    /// The client is gone: nobody answers questions, and nobody waits for the run.
    async fn leave(mut self) {
        self.open.clear();
        drop(self.questions);
        if let Some(run) = self.run.take() {
            self.agent.abort();
            let ended = run.await;
            self.out.line(run_end(&self.agent, ended).to_string());
        }
    }

    async fn line(&mut self, line: Line) {
        let line = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => return,
            Line::Whole(line) => line,
            Line::TooLong => {
                let problem = format!("a line has at most {LINE_MAX} bytes");
                return self.answer(None, Err(Refusal("malformed", problem)));
            }
        };
        match Request::parse(&line) {
            Ok(Request { id, what }) => {
                let answer = self.carry_out(what).await;
                self.answer(id, answer);
            }
            Err(Malformed { id, problem }) => {
                self.answer(id, Err(Refusal("malformed", problem)));
            }
        }
    }

    async fn carry_out(&mut self, what: What) -> Result<Value, Refusal> {
        match what {
            What::Prompt { text } => {
                let agent = self.agent.clone();
                self.start(Box::pin(async move { agent.prompt(text).await })).await
            }
            What::Continue => {
                let agent = self.agent.clone();
                self.start(Box::pin(async move { agent.continue_run().await })).await
            }
            What::Steer { text } => Ok(self.enqueue(QueueKind::Steering, text)),
            What::FollowUp { text } => Ok(self.enqueue(QueueKind::FollowUp, text)),
            What::Abort => {
                self.agent.abort();
                Ok(json!({"running": self.agent.is_running()}))
            }
            What::State => Ok(self.state()),
            What::Messages { from } => Ok(self.messages(from)),
            What::Answer { question, approved, reason } => self.decide(&question, approved, reason),
            What::Reload { approved } => self.look(approved).await,
        }
    }

    /// Begins a run. One that cannot begin says so at its first step.
    async fn start(&mut self, mut run: Run) -> Result<Value, Refusal> {
        if self.run.is_some() {
            return Err(Refusal("busy", AgentError::Busy.to_string()));
        }
        match futures::poll!(run.as_mut()) {
            Poll::Pending => self.run = Some(run),
            Poll::Ready(Err(AgentError::Busy)) => {
                return Err(Refusal("busy", AgentError::Busy.to_string()));
            }
            Poll::Ready(Err(
                problem @ (AgentError::NothingToContinue | AgentError::AssistantTail),
            )) => return Err(Refusal("nothing_to_continue", problem.to_string())),
            Poll::Ready(ended) => self.run = Some(Box::pin(std::future::ready(ended))),
        }
        Ok(json!({}))
    }

    /// Looks at the files now. Rights that grew are agreed to with the request, or wait: a question could
    /// not be answered while this is.
    async fn look(&mut self, approved: bool) -> Result<Value, Refusal> {
        let Some(reload) = self.reload.clone() else {
            return Err(Refusal("not_watched", "no file of this agent is watched over".into()));
        };
        // What was told before is not the answer.
        self.tell(reload.take_told());
        let rights = if approved { Rights::Agreed } else { Rights::Wait };
        let settings = reload.look(rights).await;
        let changed = settings.is_some();
        if let Some(settings) = settings {
            self.agent.set_settings(settings);
        }
        Ok(json!({"changed": changed, "tools": self.tools(), "messages": reload.take_told()}))
    }

    fn tell(&self, told: Vec<String>) {
        for message in told {
            self.say(json!({"type": "notice", "message": message}));
        }
    }

    fn tools(&self) -> Vec<String> {
        let settings = self.agent.settings();
        settings.toolset.declarations().iter().map(|tool| tool.name.clone()).collect()
    }

    fn enqueue(&self, queue: QueueKind, text: String) -> Value {
        self.agent.enqueue(queue, text);
        json!({"queued": self.agent.queued(queue).len()})
    }

    fn state(&self) -> Value {
        let questions: Vec<String> = self.open.keys().map(|number| name(*number)).collect();
        json!({
            "running": self.run.is_some(),
            "messages": self.agent.messages().len(),
            "queued": {
                "steering": self.agent.queued(QueueKind::Steering).len(),
                "follow_up": self.agent.queued(QueueKind::FollowUp).len(),
            },
            "pending_tool_calls": self.agent.pending_tool_calls(),
            "open_questions": questions,
            "last_error": self.agent.last_error(),
        })
    }

    fn messages(&self, from: usize) -> Value {
        let all = self.agent.messages();
        let messages: Vec<Value> = all.iter().skip(from).map(|one| json::message(one)).collect();
        json!({"from": from, "total": all.len(), "messages": messages})
    }

    fn decide(
        &mut self,
        question: &str,
        approved: bool,
        reason: Option<String>,
    ) -> Result<Value, Refusal> {
        let number = self.open.keys().copied().find(|number| name(*number) == question);
        let Some(open) = number.and_then(|number| self.open.remove(&number)) else {
            let problem = format!("no question {question:?} waits for an answer");
            return Err(Refusal("no_such_question", problem));
        };
        open.answer(match approved {
            true => Decision::Approved,
            false => Decision::Declined { reason },
        });
        Ok(json!({}))
    }

    fn ask(&mut self, question: OpenQuestion) {
        self.asked += 1;
        let call = &question.call;
        self.say(json!({
            "type": "question",
            "question": name(self.asked),
            "hook": question.hook,
            "title": question.question.title,
            "message": question.question.message,
            "plugin": question.plugin,
            "tool_call_id": *call.id,
            "tool_name": *call.name,
            "arguments": *call.arguments,
        }));
        self.open.insert(self.asked, question);
    }

    fn withdraw(&mut self, number: u64) {
        self.open.remove(&number);
        self.say(json!({"type": "question_withdrawn", "question": name(number)}));
    }

    fn ended(&mut self, ended: Result<RunEnd, AgentError>) {
        self.run = None;
        // What the run left open is closed before its end is told.
        let open = self.open.iter().filter(|(_, question)| question.is_taken_back());
        for number in open.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.withdraw(number);
        }
        if let Some(reload) = &self.reload {
            self.tell(reload.take_told());
        }
        self.say(run_end(&self.agent, ended));
    }

    fn answer(&self, id: Option<Id>, answer: Result<Value, Refusal>) {
        self.say(match answer {
            Ok(result) => json!({"type": "answer", "id": id, "ok": true, "result": result}),
            Err(Refusal(code, message)) => json!({
                "type": "answer",
                "id": id,
                "ok": false,
                "error": {"code": code, "message": message},
            }),
        });
    }

    fn say(&self, line: Value) {
        self.out.line(line.to_string());
    }
}

fn name(question: u64) -> String {
    format!("q{question}")
}

async fn ended(run: &mut Option<Run>) -> Result<RunEnd, AgentError> {
    match run {
        Some(run) => run.await,
        None => pending().await,
    }
}

/// Waits for something that the client should know of its files.
async fn told(reload: &Option<Arc<Reload>>) -> Vec<String> {
    match reload {
        Some(reload) => reload.told().await,
        None => pending().await,
    }
}

/// Waits for a question that its asker takes back.
async fn taken_back(open: &mut BTreeMap<u64, OpenQuestion>) -> u64 {
    poll_fn(|cx| {
        let back = open.iter_mut().find_map(|(number, question)| {
            pin!(question.taken_back()).poll(cx).is_ready().then_some(*number)
        });
        back.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

fn run_end(agent: &Agent, ended: Result<RunEnd, AgentError>) -> Value {
    let (reason, error) = match ended {
        Ok(end) => (end.reason.as_str(), agent.last_error()),
        Err(problem) => ("failed", Some(problem.to_string())),
    };
    json!({"type": "run_end", "reason": reason, "error": error})
}
