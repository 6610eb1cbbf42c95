//! Shows operators whether an image accepts its arriving datagrams.
//!
//! One datagram outside the window is not reported: it may be a late repair, or a stranger's. If more follow, a reader
//! is about to lose its image, or one path carries a different stream than the others.

use crate::conductor::counters::{Counters, StreamKey};
use crate::conductor::marks::{Mark, Trouble};
use crate::event_recorder::Reason;
use crate::shared::drops::{Dropped, Outside};
use crate::shared::{ImageShared, ImageState};
use crate::states::states;

/// An image of which datagrams are dropped: epoch time in ms since when, 0 when all are taken. An id of this driver's own,
/// in the range that applications use.
const IMAGE_DROPS: i32 = 2108;

const AHEAD: Reason<'static> =
    Reason::fault("what arrives is more than half a term ahead of the slowest reader");
const OLD: Reason<'static> =
    Reason::fault("something that arrives is more than a window older than what was read");

states! {
    /// Whether the packets of an image lie in its window. The conductor looks once each `aeron.timer.interval`.
    pub(crate) enum IntakeState, "intake" {
        /// They lie in the window, or repeat packets that did.
        Taking => [Dropping];
        /// At two looks in a row the driver had dropped packets outside of it since the look before.
        Dropping => [Taking];
    }
}

impl Trouble for Dropped {
    /// Several publishers may be dropped from at once: at each look the last of them is seen.
    fn goes_on_from(self, before: Self) -> bool {
        self.outside == before.outside
    }
}

/// What the conductor knows of it.
#[derive(Debug)]
pub(super) struct Intake {
    state: IntakeState,
    count: i64,
    /// Something was dropped before the last look.
    has_dropped: bool,
    mark: Mark<Dropped>,
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            state: IntakeState::Taking,
            count: 0,
            has_dropped: false,
            mark: Mark::default(),
        }
    }
}

impl Intake {
    /// Takes a look, on the timer.
    pub(super) fn look(&mut self, image: &ImageShared, stream: StreamKey<'_>, counters: &mut Counters) {
        let (count, last) = image.drops.look();
        let has_dropped = count != self.count && image.state() == ImageState::Active;
        self.count = count;
        let goes_on = std::mem::replace(&mut self.has_dropped, has_dropped) && has_dropped;
        let dropped = last.filter(|_| goes_on);
        self.mark
            .look(dropped, (IMAGE_DROPS, "rcv-drops"), stream, counters);
        let (new, reason) = match dropped.map(|dropped| dropped.outside) {
            Some(Outside::Ahead) => (IntakeState::Dropping, AHEAD),
            Some(Outside::Old) => (IntakeState::Dropping, OLD),
            None => (
                IntakeState::Taking,
                "nothing was dropped since the last look".into(),
            ),
        };
        if new != self.state {
            image
                .events()
                .change(&mut self.state, new, reason, &image.subject());
        }
    }

    /// The image is over.
    pub(super) fn free(self, counters: &mut Counters) {
        self.mark.free(counters);
    }
}
