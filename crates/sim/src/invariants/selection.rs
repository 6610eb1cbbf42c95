//! Which streams of a driver a check looks at: those whose counters have moved, and some of the others in turn.
//!
//! What no counter tells is in the log: how far publishers claimed, where the stream ends, whether its room is clean.
//! None of that goes back to what it should be, so a check that comes some steps later still finds it.

use std::collections::{BTreeMap, BTreeSet};

use headrace_buffers::counters::{CounterRecord, CountersReader, STATE_UNUSED, system_counter, type_ids};

/// Streams that are looked at in each check though their counters stand still. A driver with no more streams than this
/// has all of them looked at each time.
const STILL_MAX: usize = 32;

/// What a counter was when it was looked at last.
struct Seen {
    state: i32,
    registration_id: i64,
    value: i64,
    /// The stream that it belongs to, if any.
    stream: Option<i64>,
}

/// The streams of one driver, and those of them that are to be checked now.
#[derive(Default)]
pub(super) struct Selection {
    /// Each counter that is no system counter, by id.
    seen: Vec<Seen>,
    streams: Vec<i64>,
    /// Where the turn of the streams that stand still is.
    next_still: usize,
    chosen: BTreeSet<i64>,
}

impl Selection {
    /// Chooses the streams of the next check. False when there are other counters than were listed.
    pub(super) fn choose(&mut self, counters: &CountersReader) -> bool {
        self.chosen.clear();
        let mut count = 0;
        for now in live(counters) {
            let Some(seen) = self.seen.get_mut(count) else {
                return false;
            };
            if (seen.state, seen.registration_id) != (now.state, now.registration_id) {
                return false;
            }
            if seen.value != now.value {
                seen.value = now.value;
                self.chosen.extend(seen.stream);
            }
            count += 1;
        }
        self.choose_still();
        count == self.seen.len()
    }

    fn choose_still(&mut self) {
        let count = self.streams.len();
        for _ in 0..count.min(STILL_MAX) {
            self.next_still = (self.next_still + 1) % count;
            self.chosen.insert(self.streams[self.next_still]);
        }
    }

    /// Notes counters and streams as they are, and chooses all streams.
    pub(super) fn list(
        &mut self,
        counters: &CountersReader,
        records: &[CounterRecord],
        streams: impl Iterator<Item = i64>,
    ) {
        self.streams = streams.collect();
        self.chosen = self.streams.iter().copied().collect();
        let owners: BTreeMap<i32, i64> = records.iter().map(|record| (record.id, owner(record))).collect();
        self.seen = live(counters).collect();
        for (id, seen) in (system_counter::COUNT as i32..).zip(&mut self.seen) {
            let owner = owners.get(&id).copied();
            seen.stream = owner.filter(|stream| self.chosen.contains(stream));
        }
    }

    /// Has the streams listed again before the next check.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }

    pub(super) fn chosen(&self) -> impl Iterator<Item = &i64> {
        self.chosen.iter()
    }

    /// Counters that are in use, but for system counters.
    pub(super) fn counters_count(&self) -> usize {
        self.seen.len()
    }
}

/// The stream that a counter is about, if it is about one.
fn owner(record: &CounterRecord) -> i64 {
    match record.type_id {
        type_ids::SUBSCRIBER_POSITION => record.reference_id,
        _ => record.registration_id,
    }
}

fn live(counters: &CountersReader) -> impl Iterator<Item = Seen> {
    (system_counter::COUNT as i32..counters.capacity() as i32).map_while(|id| {
        let state = counters.state(id).filter(|state| *state != STATE_UNUSED)?;
        Some(Seen {
            state,
            registration_id: counters.registration_id(id)?,
            value: counters.value(id)?,
            stream: None,
        })
    })
}
