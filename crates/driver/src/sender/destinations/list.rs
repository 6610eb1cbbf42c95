//! The destinations of a channel that has several. Source: specification, multi-destination cast.

use headrace_buffers::counters::Counter;

use super::Route;
use crate::endpoint::ShownDestination;

/// Most destinations of one channel that the conductor shows by name.
const SHOWN_MAX: usize = 100;
/// Shortest time between two reports of changes to the conductor.
const TELLING_INTERVAL_NS: i64 = 100_000_000;

/// One of several.
pub(super) trait Destination {
    /// Where to send to it; none while its name has no address.
    fn route(&self) -> Option<Route<'_>>;

    fn shown(&self) -> ShownDestination;
}

/// Every datagram goes to each destination, one of them first in turn, so that a socket without room does not always miss
/// the same ones.
pub(super) struct DestinationList<D> {
    pub(super) all: Vec<D>,
    first: usize,
    // Shows how many there are.
    count: Counter,
    // The conductor, who shows which they are, knows them.
    is_told: bool,
    told_ns: i64,
}

impl<D: Destination> DestinationList<D> {
    /// None yet.
    pub(super) fn new(count: Counter) -> Self {
        Self {
            all: Vec::new(),
            first: 0,
            count,
            is_told: true,
            told_ns: i64::MIN,
        }
    }

    /// Another is the first to be sent to.
    pub(super) fn begin_turn(&mut self) {
        self.first = self
            .first
            .checked_add(1)
            .filter(|first| *first < self.all.len())
            .unwrap_or(0);
    }

    /// As of all [`Destinations`](super::Destinations). Where none has an address, all there is to take is taken.
    pub(super) fn send_to_each(
        &self,
        whole: usize,
        mut send: impl FnMut(Route<'_>) -> Option<usize>,
    ) -> usize {
        let (earlier, later) = self.all.split_at(self.first.min(self.all.len()));
        let mut least = whole;
        for route in later.iter().chain(earlier).filter_map(Destination::route) {
            least = least.min(send(route).unwrap_or(whole));
            if least == 0 {
                // A socket has no room. All is sent again to all: what the others took now would be sent twice.
                break;
            }
        }
        least
    }

    /// There are others, or one is at another address.
    pub(super) fn on_changed(&mut self) {
        self.is_told = false;
        self.count.set_release(self.all.len() as i64);
    }

    /// Reports the destinations to the conductor if they have changed. While the conductor is busy, the report waits.
    pub(super) fn tell(&mut self, now_ns: i64, take: impl FnOnce(Vec<ShownDestination>) -> bool) {
        if self.is_told || now_ns.saturating_sub(self.told_ns) < TELLING_INTERVAL_NS {
            return;
        }
        self.told_ns = now_ns;
        self.is_told = take(self.all.iter().take(SHOWN_MAX).map(D::shown).collect());
    }
}
