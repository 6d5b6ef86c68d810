//! Interrupts, by a key of the terminal or by another process, and requests of the system to end. None is
//! lost while another is dealt with.

use std::io;

/// The interrupts from when it is made.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signals: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    /// Interrupts no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        let signals = {
            use tokio::signal::unix::{SignalKind, signal};
            signal(SignalKind::interrupt())?
        };
        #[cfg(windows)]
        let signals = tokio::signal::windows::ctrl_c()?;
        Ok(Self { signals })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if self.signals.recv().await.is_none() {
            // There will be no more.
            std::future::pending::<()>().await;
        }
    }
}

/// Requests to end, for a process that has something to leave in order. None on systems that have no
/// such signal.
pub(crate) struct Terminations {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
}

impl Terminations {
    /// Such requests no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self { signals: signal(SignalKind::terminate())? })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signals.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
