//! Partial results while a call runs: shown to people, bounded, dropped where nobody may report.

use crate::limits::{Limits, kib};
use crate::mask;
use crate::receipt::ProgressBill;
use crate::state::{State, exceeded};
use cofferdam_agent::message::Content;
use cofferdam_agent::progress::Progress;
use cofferdam_agent::tool::ToolResult;
use serde_json::Value;

/// The reports of one call.
pub(crate) struct Reports {
    /// None for hooks and for `list-tools`.
    progress: Option<Progress>,
    count_max: u64,
    bytes_max: usize,
    count: u64,
    bytes: usize,
    /// Handed on.
    reported: u64,
    dropped: u64,
}

impl Reports {
    pub(crate) fn new(progress: Option<Progress>, limits: &Limits) -> Self {
        Self {
            progress,
            count_max: limits.progress_count,
            bytes_max: kib(limits.progress_kib),
            count: 0,
            bytes: 0,
            reported: 0,
            dropped: 0,
        }
    }

    pub(crate) fn bill(&self) -> ProgressBill {
        let late = self.progress.as_ref().map_or(0, Progress::late);
        ProgressBill { shown: self.reported.saturating_sub(late), dropped: self.dropped, late }
    }

    /// Counts one report, which ends the call if it is one too many.
    fn take(&mut self, bytes: usize) -> wasmtime::Result<()> {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.count > self.count_max {
            let what =
                format!("stopped after {} progress reports (limit progress_count)", self.count_max);
            return Err(exceeded("output-limit", "progress_count", what));
        }
        if self.bytes > self.bytes_max {
            let what = format!(
                "stopped after {} KiB of progress reports (limit progress_kib)",
                self.bytes_max >> 10
            );
            return Err(exceeded("output-limit", "progress_kib", what));
        }
        Ok(())
    }
}

/// Shows one partial result, and waits until observers have been handed it: what a guest does next
/// comes after its report for them too, and reports do not pile up.
pub(crate) async fn report(
    state: &mut State,
    content: impl FnOnce() -> Vec<Content> + Send,
    bytes: usize,
    details: Option<Value>,
) -> wasmtime::Result<()> {
    state.receipt.host_calls.progress.add(bytes);
    // Also where nobody may report, so that a flood ends.
    state.reports.take(bytes)?;
    let Some(progress) = &state.reports.progress else {
        state.reports.dropped += 1;
        return Ok(());
    };
    state.reports.reported += 1;
    let partial = ToolResult { content: content(), details, ..ToolResult::default() };
    progress.report(mask::result(partial, &state.terms.secrets));
    progress.announced().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_report_too_many() {
        let mut reports =
            Reports::new(None, &Limits { progress_count: 2, progress_kib: 1, ..Limits::default() });
        assert!(reports.take(1_024).is_ok());
        assert!(reports.take(1).expect_err("bytes").to_string().contains("progress_kib"));
        assert!(reports.take(0).expect_err("count").to_string().contains("progress_count"));
    }
}
