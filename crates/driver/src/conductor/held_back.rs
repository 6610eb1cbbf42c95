//! Who keeps a stream from going on, and since when, for a person who looks.
//!
//! The conductor looks at each stream when its timer is due. One that has used up its window is held back by the party
//! whose position the window hangs on. A stream that was never seen so has no counter.

use std::fmt;
use std::net::SocketAddr;

use headrace_buffers::counters::Counter;

use super::counters::{Counters, StreamKey};
use super::subscriptions::links::Link;

/// A publication of this driver that is held back: epoch time in ms since when by the same party, 0 when it goes on. An
/// id of this driver's own, as that of images is, in the range that applications use.
pub(crate) const PUBLISHER_HELD: i32 = 2103;
/// The same of an image, whose sender may send no more.
pub(crate) const IMAGE_HELD: i32 = 2104;

/// A window of which less than this part is left counts as used up: limits are raised in steps of that length.
const STEPS_OF_A_WINDOW: i64 = 8;

/// True when hardly anything of the window below `limit` is left.
pub(crate) fn is_used_up(limit: i64, position: i64, window_length: i64) -> bool {
    limit - position < window_length / STEPS_OF_A_WINDOW
}

/// The party that a stream waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A subscription of a client of this driver.
    Subscription { id: i64, client_id: i64 },
    /// The receiver whose status messages are the limit, by where they come from.
    Receiver(SocketAddr),
    /// Receivers would take more: this driver's sender, or the network before it.
    Sender,
}

impl Holder {
    /// The subscriber that reads through a link.
    pub(crate) fn reader(link: &Link) -> Self {
        Self::Subscription {
            id: link.subscription_id,
            client_id: link.client_id,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subscription { id, client_id } => write!(text, "subscription {id} of client {client_id}"),
            Self::Receiver(address) => write!(text, "receiver at {address}"),
            Self::Sender => text.write_str("the sender"),
        }
    }
}

/// What is known of one stream.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    counter: Option<Counter>,
    /// At the last look.
    holder: Option<Holder>,
}

impl HeldBack {
    /// Takes a look: `holder` is who holds the stream back now. Does without a counter where none can be had.
    pub(crate) fn look(
        &mut self,
        holder: Option<Holder>,
        (type_id, name): (i32, &str),
        stream: StreamKey<'_>,
        counters: &mut Counters,
    ) {
        let before = std::mem::replace(&mut self.holder, holder);
        let Some(holder) = holder else {
            if let (Some(_), Some(counter)) = (before, &self.counter) {
                counter.set_release(0);
            }
            return;
        };
        if before == Some(holder) {
            return;
        }
        if self.counter.is_none() {
            self.counter = counters.stream(type_id, name, stream.of_driver(), 0).ok();
        }
        if let Some(counter) = &self.counter {
            counters.set_stream_label(counter.id(), name, stream, &format!(" by {holder}"));
            counter.set_release(counters.now_ms());
        }
    }

    /// The stream is over.
    pub(crate) fn free(self, counters: &mut Counters) {
        counters.free_all(&self.counter);
    }
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::{CountersManager, CountersReader};

    use super::*;

    const KIND: (i32, &str) = (PUBLISHER_HELD, "pub-held");
    const STREAM: StreamKey<'_> = StreamKey {
        registration_id: 7,
        owner_id: 1,
        session_id: 8,
        stream_id: 9,
        channel: "aeron:ipc",
    };
    const READER: Holder = Holder::Subscription { id: 17, client_id: 3 };

    fn counters() -> (Counters, CountersReader) {
        let (metadata, values) = (AtomicBuffer::allocate(8192), AtomicBuffer::allocate(2048));
        let manager = CountersManager::new(metadata, values, 0);
        let reader = manager.reader().clone();
        (Counters::new(manager), reader)
    }

    fn seen(reader: &CountersReader) -> Option<(i64, String)> {
        let id = reader.find(PUBLISHER_HELD, 7)?;
        Some((reader.value(id)?, reader.label(id)?))
    }

    #[test]
    fn a_stream_that_is_held_back_says_by_whom_and_since_when() {
        let (mut counters, reader) = counters();
        let mut held = HeldBack::default();
        let mut look = |now_ms, holder| {
            counters.set_time(now_ms);
            held.look(holder, KIND, STREAM, &mut counters);
            seen(&reader)
        };
        assert_eq!(look(1_000, None), None, "nothing to tell");
        let by = |who: &str| format!("pub-held: 7 8 9 aeron:ipc by {who}");
        let reader_text = by("subscription 17 of client 3");
        assert_eq!(look(2_000, Some(READER)), Some((2_000, reader_text.clone())));
        assert_eq!(look(3_000, Some(READER)), Some((2_000, reader_text)));
        assert_eq!(
            look(4_000, Some(Holder::Sender)),
            Some((4_000, by("the sender"))),
            "another one, since then"
        );
        assert_eq!(look(5_000, None), Some((0, by("the sender"))));
        let receiver = Holder::Receiver("10.0.0.2:40456".parse().unwrap());
        assert_eq!(
            look(6_000, Some(receiver)),
            Some((6_000, by("receiver at 10.0.0.2:40456")))
        );
        held.free(&mut counters);
        assert_eq!(seen(&reader), None);
    }

    #[test]
    fn a_window_is_used_up_when_less_than_a_step_is_left() {
        assert!(is_used_up(1_000, 1_000, 800) && is_used_up(1_000, 901, 800));
        assert!(!is_used_up(1_000, 900, 800));
        assert!(is_used_up(1_000, 2_000, 800), "the last message may go beyond");
    }
}
