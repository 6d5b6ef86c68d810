//! Interrupts: of the keyboard of a terminal that is not the process's own, or by another process. None
//! is lost while another is dealt with.

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
