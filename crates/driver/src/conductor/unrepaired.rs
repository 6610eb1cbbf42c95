//! Shows operators a stream whose receivers ask for the same bytes again and again.
//!
//! A repair may be lost by chance once or twice. If none arrives for seconds while the publisher is heard, its
//! datagrams are most often longer than the path allows: short frames, such as heartbeats, get through.

use std::fmt;

use super::counters::{Counters, StreamKey};
use super::marks::{Mark, Trouble};
use crate::shared::requests::RepairRequests;

/// A publication whose repairs do not arrive: epoch time in ms since when, 0 when nothing is asked for in vain. An id of
/// this driver's own, as that of images is, in the range that applications use.
pub(crate) const PUBLICATION_UNREPAIRED: (i32, &str) = (2109, "snd-unrepaired");
/// The same of an image.
pub(crate) const IMAGE_UNREPAIRED: (i32, &str) = (2110, "rcv-unrepaired");

/// Looks in a row at which the same bytes were asked for since the look before.
const LOOKS: u32 = 3;

/// Bytes of a datagram that Ethernet takes, and the setting's default.
const ETHERNET: usize = 1408;
/// What each path of IPv6 takes, less the headers of IP and UDP, in whole frames.
const TUNNEL: usize = 1216;

/// The longest datagrams of such a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Datagrams {
    mtu: usize,
}

impl Trouble for Datagrams {
    fn goes_on_from(self, _before: Self) -> bool {
        true
    }
}

impl fmt::Display for Datagrams {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "mtu={}", self.mtu)
    }
}

/// What the conductor knows of it.
#[derive(Debug, Default)]
pub(crate) struct Unrepaired {
    seen: (i64, i64),
    looks: u32,
    mark: Mark<Datagrams>,
}

impl Unrepaired {
    /// Takes a look, on the timer. True when the trouble has just begun.
    pub(crate) fn look(
        &mut self,
        requests: &RepairRequests,
        mtu: usize,
        kind: (i32, &str),
        stream: StreamKey<'_>,
        counters: &mut Counters,
    ) -> bool {
        let now = requests.look();
        let before = std::mem::replace(&mut self.seen, now);
        let goes_on = before.1 > 0 && now.0 == before.0 && now.1 > before.1;
        self.looks = if goes_on { self.looks.saturating_add(1) } else { 0 };
        let trouble = (self.looks >= LOOKS).then_some(Datagrams { mtu });
        self.mark.look(trouble, kind, stream, counters);
        self.looks == LOOKS
    }

    /// The stream is over.
    pub(crate) fn free(self, counters: &mut Counters) {
        self.mark.free(counters);
    }
}

/// What to do about it. `known`: what the kernel knows of the path.
pub(crate) fn advice(mtu: usize, known: Option<&str>, stream: StreamKey<'_>) -> String {
    let smaller = match known {
        Some(known) => format!(" ({known})"),
        None => format!(", such as mtu={}", if mtu > ETHERNET { ETHERNET } else { TUNNEL }),
    };
    format!(
        "its datagrams of up to mtu={mtu} bytes may be longer than the path takes, or a firewall drops them: give the \
         publication's channel a smaller mtu{smaller}, channel={} streamId={} sessionId={}",
        stream.channel, stream.stream_id, stream.session_id
    )
}

#[cfg(test)]
mod tests {
    use headrace_buffers::AtomicBuffer;
    use headrace_buffers::counters::CountersManager;

    use super::*;

    const STREAM: StreamKey<'_> = StreamKey {
        registration_id: 7,
        owner_id: 1,
        session_id: 8,
        stream_id: 9,
        channel: "aeron:udp?endpoint=b:1",
    };

    #[test]
    fn the_same_bytes_are_asked_for_at_several_looks_before_it_is_told() {
        let (metadata, values) = (AtomicBuffer::allocate(8192), AtomicBuffer::allocate(2048));
        let manager = CountersManager::new(metadata, values, 0);
        let reader = manager.reader().clone();
        let mut counters = Counters::new(manager);
        counters.set_time(1_000);
        let (requests, mut unrepaired) = (RepairRequests::default(), Unrepaired::default());
        let mut look = |asked: &[i64]| {
            for position in asked {
                requests.note(*position);
            }
            let begins = unrepaired.look(&requests, 8192, IMAGE_UNREPAIRED, STREAM, &mut counters);
            let id = reader.find(IMAGE_UNREPAIRED.0, 7);
            (begins, id.and_then(|id| reader.value(id)).unwrap_or(0))
        };
        // What comes at last, what is asked for once, and another gap at each look.
        for asked in [
            &[0, 0][..],
            &[0],
            &[0],
            &[64, 64],
            &[64],
            &[],
            &[],
            &[128],
            &[160],
            &[160],
        ] {
            assert_eq!(look(asked), (false, 0), "{asked:?}");
        }
        assert_eq!(look(&[160, 160]), (false, 0));
        assert_eq!(look(&[160]), (true, 1_000));
        assert_eq!(look(&[160]), (false, 1_000), "it is told once");
        assert_eq!(look(&[]), (false, 0));
    }
}
