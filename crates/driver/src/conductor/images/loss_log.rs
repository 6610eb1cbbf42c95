//! The part of an image's loss that is in the loss report.

use headrace_buffers::log::gap::Gap;
use headrace_buffers::loss_report::LossEntry;

/// What was reported of one image, so that nothing is counted twice.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    entry: Option<LossEntry>,
    is_full: bool,
    // Term, first byte and end of the last report.
    last: Option<(i32, usize, usize)>,
}

impl LossLog {
    /// A gap is reported; `create` makes the entry of the report for the bytes of the first.
    pub(crate) fn on_report(&mut self, gap: Gap, now_ms: i64, create: impl FnOnce(i64) -> Option<LossEntry>) {
        let end = gap.offset + gap.length;
        let new_bytes = match self.last {
            Some((term_id, start, last_end))
                if term_id == gap.term_id && gap.offset >= start && gap.offset < last_end =>
            {
                end.saturating_sub(last_end)
            }
            _ => gap.length,
        };
        if new_bytes == 0 {
            return;
        }
        self.last = Some((gap.term_id, gap.offset, end));
        match &self.entry {
            Some(entry) => entry.observe(new_bytes as i64, now_ms),
            None if !self.is_full => {
                self.entry = create(new_bytes as i64);
                self.is_full = self.entry.is_none();
            }
            None => {}
        }
    }
}
