//! The loop at the terminal: whatever comes next, an event of the agent, a key, a question or a tick, is
//! taken to the screen, and what a key asks for is done.

use super::First;
use super::history::History;
use super::pane::{Frame, Pane};
use super::raw::{self, Raw};
use super::screen::{Intent, Screen, decided, words};
use super::theme::Theme;
use crate::exit::{self, ABORTED, DONE, Exit};
use crate::interrupts::{Interrupts, Terminations};
use crate::keyboard::forget_typed_ahead;
use crate::render::Paint;
use cofferdam_agent::event::{Event as AgentEvent, Observer};
use cofferdam_agent::hook::Approval;
use cofferdam_agent::queue::QueueKind;
use cofferdam_agent::{Agent, AgentError, EndReason, RunEnd, Subscription};
use cofferdam_app::approve::{OpenQuestion, Questions};
use cofferdam_app::reload::Reload;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyModifiers};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use std::future::poll_fn;
use std::io::{self, Stdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// How often the rows are drawn while something is going on.
const FRAME: Duration = Duration::from_millis(50);
const QUEUES: [QueueKind; 2] = [QueueKind::Steering, QueueKind::FollowUp];

/// The screen where the agent's events reach it.
struct View {
    screen: Mutex<Screen>,
    began: Instant,
}

impl View {
    /// The screen, as of this moment.
    fn screen(&self) -> MutexGuard<'_, Screen> {
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.at(self.began.elapsed());
        screen
    }
}

impl Observer for View {
    fn on_event<'a>(&'a self, event: &'a AgentEvent<'a>) -> BoxFuture<'a, ()> {
        self.screen().event(event);
        Box::pin(std::future::ready(()))
    }
}

/// A run, while it is polled.
type Running = BoxFuture<'static, Result<RunEnd, AgentError>>;

/// Everything that the loop joins.
pub(super) struct Desk {
    /// None while the terminal is somebody else's.
    raw: Option<Raw>,
    agent: Agent,
    _watching: Subscription,
    /// Watches over the agent's files.
    reload: Arc<Reload>,
    questions: Questions,
    /// The question that is shown.
    open: Option<OpenQuestion>,
    run: Option<Running>,
    view: Arc<View>,
    pane: Pane<Stdout>,
    columns: usize,
    keys: EventStream,
    interrupts: Interrupts,
    /// How the last run ended.
    exit: Exit,
}

impl Desk {
    pub(super) fn new(
        agent: Agent,
        reload: Arc<Reload>,
        questions: Questions,
        history: History,
    ) -> io::Result<Self> {
        let raw = Raw::enter()?;
        let screen = Mutex::new(Screen::new(Theme::new(Paint::of_stdout()), history));
        let view = Arc::new(View { screen, began: Instant::now() });
        Ok(Self {
            raw: Some(raw),
            _watching: agent.subscribe(view.clone()),
            agent,
            reload,
            questions,
            open: None,
            run: None,
            view,
            pane: Pane::new(io::stdout()),
            columns: 80,
            keys: EventStream::new(),
            interrupts: Interrupts::listen()?,
            exit: DONE,
        })
    }

    /// Until the person leaves. The exit code is that of the last run.
    pub(super) async fn sit(&mut self, first: Option<First>) -> anyhow::Result<Exit> {
        self.draw()?;
        self.view.screen().recall(&self.agent.messages());
        match first {
            Some(First::Prompt(text)) => {
                self.view.screen().remember(&text);
                self.begin(text);
            }
            Some(First::GoOn) if self.stopped_short() => self.go_on(),
            Some(First::GoOn) | None => {}
        }
        if let Some(exit) = self.typed_before().await? {
            return Ok(exit);
        }
        let mut terminated = Terminations::listen()?;
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.draw()?;
            let intent = tokio::select! { biased;
                key = self.keys.next() => match key {
                    Some(key) => self.keys(key?).await,
                    // The terminal is gone.
                    None => return Ok(ABORTED),
                },
                () = self.interrupts.next() => Some(self.view.screen().interrupt()),
                () = terminated.next() => return Ok(ABORTED),
                end = ended(&mut self.run) => {
                    self.ended(end)?;
                    continue;
                }
                told = self.reload.told() => {
                    let mut screen = self.view.screen();
                    told.iter().for_each(|told| screen.told(told));
                    continue;
                }
                () = taken_back(&mut self.open) => {
                    self.open = None;
                    self.view.screen().asked("taken back: the call does not run");
                    continue;
                }
                Some(question) = self.questions.next(), if self.open.is_none() => {
                    self.ask(question).await;
                    continue;
                }
                _ = frames.tick(), if self.run.is_some() => continue,
            };
            if let Some(intent) = intent
                && let Some(exit) = self.act(intent)?
            {
                return Ok(exit);
            }
        }
    }

    /// What a key asks for, or the first of those that are there already behind it: a pasted text may
    /// come as many. Those behind that one wait, because they may mean something else then.
    async fn keys(&mut self, first: Event) -> Option<Intent> {
        let mut next = Some(first);
        while let Some(event) = next {
            if let Some(intent) = self.take(event) {
                return Some(intent);
            }
            next = self.typed().await;
        }
        None
    }

    /// What was typed before the keys came one by one: whole lines, with a line feed at their ends.
    async fn typed_before(&mut self) -> anyhow::Result<Option<Exit>> {
        while let Some(mut event) = self.typed().await {
            if event == Event::Key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL)) {
                event = Event::Key(KeyEvent::from(KeyCode::Enter));
            }
            if let Some(intent) = self.take(event)
                && let Some(exit) = self.act(intent)?
            {
                return Ok(Some(exit));
            }
        }
        Ok(None)
    }

    fn take(&mut self, event: Event) -> Option<Intent> {
        match event {
            Event::Key(key) => self.view.screen().key(key),
            Event::Paste(text) => {
                self.view.screen().paste(&text);
                None
            }
            // The size is looked up for each frame.
            Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
        }
    }

    /// The next key if it is there already. It is asked for as the task that waits for keys: the
    /// stream wakes whoever asked first.
    async fn typed(&mut self) -> Option<Event> {
        poll_fn(|cx| match self.keys.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(event))) => Poll::Ready(Some(event)),
            Poll::Ready(Some(Err(_)) | None) | Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// Does what the person wants. Returns the exit code if that is to leave.
    fn act(&mut self, intent: Intent) -> anyhow::Result<Option<Exit>> {
        match intent {
            Intent::Prompt(text) => self.begin(text),
            Intent::Steer(text) => self.agent.steer(text),
            Intent::FollowUp(text) => self.agent.follow_up(text),
            Intent::Answer(decision) => {
                if let Some(open) = self.open.take() {
                    self.view.screen().asked(&decided(&decision));
                    open.answer(decision);
                }
            }
            Intent::Abort => {
                self.view.screen().aborts();
                self.agent.abort();
            }
            Intent::Redraw => self.pane.clear()?,
            Intent::Suspend => {
                self.clear()?;
                drop(self.raw.take());
                raw::stop()?;
                self.raw = Some(Raw::enter()?);
            }
            // Dropped, a run that is active ends like one whose process ended.
            Intent::Leave => return Ok(Some(if self.run.is_some() { ABORTED } else { self.exit })),
        }
        Ok(None)
    }

    fn begin(&mut self, text: String) {
        let agent = self.agent.clone();
        self.start(async move { agent.prompt(text).await }.boxed());
    }

    /// Whether the transcript stops where a model would have had to answer.
    fn stopped_short(&self) -> bool {
        self.agent.messages().last().is_some_and(|last| last.as_assistant().is_none())
    }

    fn go_on(&mut self) {
        let agent = self.agent.clone();
        self.start(async move { agent.continue_run().await }.boxed());
    }

    fn start(&mut self, run: Running) {
        self.view.screen().begins();
        self.run = Some(run);
    }

    fn ended(&mut self, end: Result<RunEnd, AgentError>) -> anyhow::Result<()> {
        self.run = None;
        let end = end?;
        self.exit = exit::of_run(end.reason);
        let (how, is_bad) = match end.reason {
            EndReason::Finished | EndReason::Terminated | EndReason::Stopped => {
                ("done".into(), false)
            }
            EndReason::Aborted => ("aborted".into(), false),
            EndReason::ModelFailed => ("the model failed".into(), true),
            limit @ (EndReason::TurnLimit(_) | EndReason::TruncationLimit(_)) => {
                (format!("{limit},"), true)
            }
        };
        self.view.screen().ends(&how, is_bad);
        let queued = self.queued();
        if queued.is_empty() {
            return Ok(());
        }
        if self.exit == DONE {
            // Said a moment too late for the run that it was said to.
            self.go_on();
        } else {
            QUEUES.into_iter().for_each(|queue| self.agent.clear_queue(queue));
            let texts: Vec<String> = queued.into_iter().map(|(_, text)| text).collect();
            self.view.screen().give_back(&texts);
        }
        Ok(())
    }

    fn queued(&self) -> Vec<(QueueKind, String)> {
        let of = |queue| self.agent.queued(queue).into_iter().map(move |m| (queue, words(&m)));
        QUEUES.into_iter().flat_map(of).collect()
    }

    /// Shows a question. What was typed before it is no answer to it.
    async fn ask(&mut self, question: OpenQuestion) {
        if question.is_taken_back() {
            return;
        }
        forget_typed_ahead();
        while self.typed().await.is_some() {}
        let OpenQuestion { hook, question: asks, plugin, call, .. } = &question;
        self.view.screen().ask(&Approval { hook, question: asks, plugin, call });
        self.open = Some(question);
    }

    /// What is finished stays, what is live goes.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.pane.draw(&self.view.screen().take_done(), Frame::default(), self.columns)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (columns, rows) = match crossterm::terminal::size() {
            Ok((columns, rows)) if columns > 0 && rows > 0 => (columns.into(), rows.into()),
            _ => (80, 24),
        };
        self.columns = columns;
        let queued = self.queued();
        let mut screen = self.view.screen();
        screen.resize(columns, rows);
        screen.queue(queued);
        let (done, frame) = (screen.take_done(), screen.frame());
        drop(screen);
        self.pane.draw(&done, frame, columns)
    }
}

async fn ended(run: &mut Option<Running>) -> Result<RunEnd, AgentError> {
    match run {
        Some(run) => run.await,
        None => std::future::pending().await,
    }
}

async fn taken_back(open: &mut Option<OpenQuestion>) {
    match open {
        Some(open) => open.taken_back().await,
        None => std::future::pending().await,
    }
}
