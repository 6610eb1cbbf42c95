//! The positions of the readers of a stream.

use std::fmt;

use headrace_buffers::counters::Counter;

use super::room::is_aligned;

/// The position of one subscription in one stream.
pub(super) struct Reader {
    pub(super) position: Counter,
    /// It holds the stream back: it is linked for as long as its counter lives.
    pub(super) is_tethered: bool,
    pub(super) before: i64,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tether = if self.is_tethered { "" } else { " untethered" };
        let (id, now) = (self.position.id(), self.position.get_acquire());
        write!(f, "counter {id} at {now}, before at {}{tether}", self.before)
    }
}

/// How far the readers of a stream are.
#[derive(Debug, Default)]
pub(super) struct Readers(pub(super) Vec<Reader>);

impl Readers {
    /// The lowest of those that hold the stream back.
    pub(super) fn slowest_tethered(&self) -> Option<i64> {
        let tethered = self.0.iter().filter(|reader| reader.is_tethered);
        tethered.map(|reader| reader.position.get_acquire()).min()
    }

    pub(super) fn fastest(&self) -> Option<i64> {
        self.0.iter().map(|reader| reader.position.get_acquire()).max()
    }

    /// None is beyond `position`, and none that is tethered has gone back: one that is not joins again where others are.
    pub(super) fn are_within(&self, position: i64) -> bool {
        self.0.iter().all(|reader| {
            let now = reader.position.get_acquire();
            (reader.before <= now || !reader.is_tethered) && now <= position && is_aligned(now)
        })
    }

    pub(super) fn note(&mut self) {
        for reader in &mut self.0 {
            reader.before = reader.position.get_acquire();
        }
    }

    /// The same readers as before with what is known of them, and new ones where they start.
    pub(super) fn replace(&mut self, found: Vec<Reader>) {
        let known = std::mem::take(&mut self.0);
        self.0 = found;
        for reader in &mut self.0 {
            let same = known
                .iter()
                .find(|before| before.position.id() == reader.position.id());
            if let Some(same) = same {
                reader.before = same.before;
            }
        }
    }
}
