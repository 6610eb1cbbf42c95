//! Counters that show operators what is wrong with a stream, and since when.
//!
//! A stream without trouble has no counter.

use std::fmt::Display;

use headrace_buffers::counters::Counter;

use super::counters::{Counters, StreamKey};

/// One kind of trouble of one stream: a counter whose label ends with what it is, and whose value is the epoch time in
/// ms since when each look found the like, or 0.
#[derive(Debug)]
pub(crate) struct Mark<T> {
    counter: Option<Counter>,
    /// At the last look.
    trouble: Option<T>,
}

impl<T> Default for Mark<T> {
    fn default() -> Self {
        Self {
            counter: None,
            trouble: None,
        }
    }
}

/// What can be the matter.
pub(crate) trait Trouble: Copy + PartialEq + Display {
    /// True when it is what the look before found, though the text may be another.
    fn goes_on_from(self, before: Self) -> bool;
}

impl<T: Trouble> Mark<T> {
    /// Takes a look. Does without a counter where none can be had.
    pub(crate) fn look(
        &mut self,
        trouble: Option<T>,
        (type_id, name): (i32, &str),
        stream: StreamKey<'_>,
        counters: &mut Counters,
    ) {
        let before = std::mem::replace(&mut self.trouble, trouble);
        let Some(trouble) = trouble else {
            if let (Some(_), Some(counter)) = (before, &self.counter) {
                counter.set_release(0);
            }
            return;
        };
        if before == Some(trouble) {
            return;
        }
        let goes_on = before.is_some_and(|before| trouble.goes_on_from(before));
        if self.counter.is_none() {
            self.counter = counters.stream(type_id, name, stream.of_driver(), 0).ok();
        }
        if let Some(counter) = &self.counter {
            counters.set_stream_label(counter.id(), name, stream, &format!(" {trouble}"));
            if !goes_on {
                counter.set_release(counters.now_ms());
            }
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

    use super::super::held_back::{Holder, PUBLISHER_HELD};
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
        let mut held = Mark::default();
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
}
