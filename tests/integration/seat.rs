//! Somebody at a terminal: a process behind a pseudo-terminal, and what the terminal would show.

use rexpect::process::{PtyProcess, Signal, WaitStatus};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longer than any step takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
const SCROLLBACK: usize = 2_000;

/// A person's seat.
pub(crate) struct Seat {
    process: PtyProcess,
    keyboard: File,
    seen: Arc<Seen>,
}

/// What came out, and that more came.
struct Seen {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    terminal: vt100::Parser,
    raw: Vec<u8>,
    ended: bool,
}

/// How a process ended, and all that it wrote.
pub(crate) struct Left {
    pub(crate) code: i32,
    /// As it came, escapes and all.
    pub(crate) raw: String,
    /// As a person reads it from the first row to the last.
    pub(crate) text: String,
}

impl Seat {
    /// Starts a program at a terminal of this size.
    pub(crate) fn at(mut command: Command, columns: u16, rows: u16) -> Self {
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        Self::with_environment(command, columns, rows)
    }

    /// The same, with the environment as it is.
    pub(crate) fn with_environment(command: Command, columns: u16, rows: u16) -> Self {
        let process = PtyProcess::new(command).unwrap();
        let keyboard = process.get_file_handle().unwrap();
        let size = |n| NonZeroU16::new(n).unwrap();
        let terminal = vt100::Parser::new(size(rows), size(columns), SCROLLBACK);
        let state = State { terminal, raw: Vec::new(), ended: false };
        let seen = Arc::new(Seen { state: Mutex::new(state), more: Condvar::new() });
        let seat = Self { process, keyboard, seen };
        seat.resize_window(columns, rows);
        seat.watch();
        seat
    }

    fn watch(&self) {
        let (mut output, seen) = (self.process.get_file_handle().unwrap(), self.seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            // A terminal that nobody has open any more is an error to read from.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let mut state = seen.state.lock().unwrap();
                state.terminal.process(&bytes[..read]);
                state.raw.extend(&bytes[..read]);
                seen.more.notify_all();
            }
            seen.state.lock().unwrap().ended = true;
            seen.more.notify_all();
        });
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the window another size.
    pub(crate) fn resizes(&self, columns: u16, rows: u16) {
        let size = |n| NonZeroU16::new(n).unwrap();
        self.seen.state.lock().unwrap().terminal.screen_mut().set_size(size(rows), size(columns));
        self.resize_window(columns, rows);
    }

    fn resize_window(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Sends the process a signal.
    pub(crate) fn signals(&mut self, signal: Signal) {
        self.process.signal(signal).unwrap();
    }

    /// Waits until the screen shows this. Returns the screen.
    pub(crate) fn sees(&self, what: &str) -> String {
        self.waits_for(what, |screen| screen.contains(what))
    }

    /// Waits until the screen is as it should be. Returns it.
    pub(crate) fn waits_for(&self, what: &str, is_right: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut state = self.seen.state.lock().unwrap();
        loop {
            let screen = state.terminal.screen().contents();
            if is_whole(&state.raw) && is_right(&screen) {
                return screen;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !state.ended, "never saw {what:?}:\n{screen}");
            state = self.seen.more.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn leaves(self) -> Left {
        let mut state = self.seen.state.lock().unwrap();
        let until = Instant::now() + PATIENCE;
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            let screen = state.terminal.screen().contents();
            assert!(!left.is_zero(), "it never ended:\n{screen}");
            state = self.seen.more.wait_timeout(state, left).unwrap().0;
        }
        let code = match self.process.wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        };
        let raw = String::from_utf8_lossy(&state.raw).into_owned();
        Left { code, raw, text: everything(&mut state.terminal) }
    }
}

/// Whether no frame has begun that has not ended: a terminal shows it when it has.
fn is_whole(raw: &[u8]) -> bool {
    const FRAME: &[u8] = b"\x1b[?2026";
    let last = raw.windows(FRAME.len()).rposition(|bytes| bytes == FRAME);
    last.is_none_or(|at| raw.get(at + FRAME.len()) == Some(&b'l'))
}

/// The scrollback and the screen below it.
fn everything(terminal: &mut vt100::Parser) -> String {
    terminal.screen_mut().set_scrollback(SCROLLBACK);
    let above = terminal.screen().scrollback();
    let mut text = String::new();
    for offset in (1..=above).rev() {
        terminal.screen_mut().set_scrollback(offset);
        let (_, columns) = terminal.screen().size();
        text.push_str(&terminal.screen().rows(0, columns.get()).next().unwrap_or_default());
        text.push('\n');
    }
    terminal.screen_mut().set_scrollback(0);
    text + &terminal.screen().contents()
}
