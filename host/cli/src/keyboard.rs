//! Lines that a person types at the terminal.
//!
//! One thread reads them from when the first is wanted, because a blocked read cannot be taken back:
//! whoever waits for a line can be dropped, and the next to wait gets the next line.

use std::io::{BufRead, IsTerminal as _};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The lines of one terminal.
pub(crate) struct Keyboard {
    /// Taken when the thread starts.
    reader: Mutex<Option<Box<dyn BufRead + Send>>>,
    lines: tokio::sync::Mutex<Option<UnboundedReceiver<String>>>,
    is_terminal: bool,
}

/// The right to read lines. Only one has it at a time.
pub(crate) struct Turn<'a> {
    lines: tokio::sync::MutexGuard<'a, Option<UnboundedReceiver<String>>>,
    is_terminal: bool,
}

impl Keyboard {
    /// The keyboard of the person who started this process; none if nobody sits at both ends.
    pub(crate) fn of_this_terminal() -> Option<Self> {
        let person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        person.then(|| Self::new(std::io::BufReader::new(std::io::stdin()), true))
    }

    fn new(reader: impl BufRead + Send + 'static, is_terminal: bool) -> Self {
        Self {
            reader: Mutex::new(Some(Box::new(reader))),
            lines: tokio::sync::Mutex::default(),
            is_terminal,
        }
    }

    /// Lines that come from somewhere else, for tests.
    #[cfg(test)]
    pub(crate) fn from_lines(reader: impl BufRead + Send + 'static) -> Self {
        Self::new(reader, false)
    }

    /// Waits until nobody else reads. What was typed before is not an answer to what comes, and is
    /// dropped.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let mut lines = self.lines.lock().await;
        if self.is_terminal {
            forget_typed_ahead();
        }
        match &mut *lines {
            Some(lines) if self.is_terminal => while lines.try_recv().is_ok() {},
            Some(_) => {}
            none => *none = self.start(),
        }
        Turn { lines, is_terminal: self.is_terminal }
    }

    fn start(&self) -> Option<UnboundedReceiver<String>> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let (sender, lines) = unbounded_channel();
        let read = move || {
            for line in reader.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        // Without a thread there are no lines, as without a person.
        let thread = std::thread::Builder::new().name("cofferdam-keyboard".into()).spawn(read);
        thread.is_ok().then_some(lines)
    }
}

impl Turn<'_> {
    /// The next line; none once there are no more.
    pub(crate) async fn line(&mut self) -> Option<String> {
        match &mut *self.lines {
            Some(lines) => lines.recv().await,
            None => None,
        }
    }

    /// Columns of the terminal.
    pub(crate) fn columns(&self) -> usize {
        if self.is_terminal { columns() } else { None }.unwrap_or(80)
    }
}

/// Forgets what was typed and not read yet.
#[cfg(unix)]
pub(crate) fn forget_typed_ahead() {
    use rustix::termios::{QueueSelector, tcflush};
    // A terminal that cannot do this keeps what was typed; the line then counts as typed later.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
pub(crate) fn forget_typed_ahead() {}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}
