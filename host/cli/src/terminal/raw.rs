//! The mode of the terminal: keys one by one while somebody sits here, and as it was on every way out.

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// The terminal gives keys one by one until this is dropped.
pub(super) struct Raw(());

static ACTIVE: AtomicBool = AtomicBool::new(false);

impl Raw {
    pub(super) fn enter() -> io::Result<Self> {
        restore_before_panics();
        enable_raw_mode()?;
        ACTIVE.store(true, Ordering::SeqCst);
        let raw = Self(());
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

/// Stops the process, as its terminal would have done with the key, until somebody goes on with it.
#[cfg(unix)]
pub(super) fn stop() -> io::Result<()> {
    use rustix::process::{Signal, kill_current_process_group};
    Ok(kill_current_process_group(Signal::TSTP)?)
}

#[cfg(not(unix))]
pub(super) fn stop() -> io::Result<()> {
    Ok(())
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// A terminal that is gone needs no restoring, and there is nobody to tell.
fn restore() {
    if ACTIVE.swap(false, Ordering::SeqCst) {
        let mut out = io::stdout();
        let _ = execute!(out, DisableBracketedPaste);
        // Nothing is left below; it wraps, shows its cursor and what it is told, without colours.
        let _ = out.write_all(b"\x1b[J\x1b[?7h\x1b[?25h\x1b[?2026l\x1b[0m");
        let _ = out.flush();
        let _ = disable_raw_mode();
    }
}

/// So that what a panic says can be read.
fn restore_before_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
