//! Rules about an image.

use std::fmt;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_buffers::log::LogBuffers;
use headrace_buffers::log::frame::{FRAME_ALIGNMENT, FrameHeader};

use super::readers::Readers;
use super::room::{is_aligned, is_empty};
use super::rule::{Rule, Violation, broken};
use super::stream::{Own, SentStreams};

pub(super) const RULES: &[Rule<Image>] = &[
    Rule {
        name: "rebuilt-within-received",
        holds: |it| {
            it.before.rebuilt <= it.now.rebuilt
                && it.now.rebuilt <= it.now.received
                && is_aligned(it.now.rebuilt)
        },
    },
    Rule {
        name: "received-within-window",
        holds: |it| {
            // A heartbeat may tell of up to a term; what is written begins within half of it.
            let (room_end, told_end) = (it.let_go + it.term_length() / 2, it.let_go + it.term_length());
            it.before.received <= it.now.received
                && it.now.received <= told_end
                && !it.has_frame_within(room_end, it.now.received)
        },
    },
    Rule {
        name: "received-is-sent",
        holds: |it| it.sent.is_none_or(|sent| it.now.received <= sent),
    },
    Rule {
        name: "readers-within-received",
        holds: |it| it.readers.are_within(it.now.received),
    },
    Rule {
        name: "reader-is-at-a-frame",
        holds: |it| {
            it.readers.0.iter().all(|reader| {
                let position = reader.position.get_acquire();
                let stands_aside = !reader.is_tethered && position == reader.before;
                stands_aside || it.has_frame_at(position)
            })
        },
    },
    Rule {
        name: "end-is-final",
        // A revoked stream ends wherever it was when its publisher heard of it.
        holds: |it| {
            (it.before.end == i64::MAX || it.before.end == it.now.end)
                && (it.now.received <= it.now.end || it.log.metadata().is_publication_revoked_acquire())
        },
    },
    Rule {
        name: "end-is-empty",
        holds: |it| is_empty(&it.log, it.now.received),
    },
];

#[derive(Clone, Copy, Debug, Default)]
struct Values {
    received: i64,
    rebuilt: i64,
    end: i64,
}

pub(super) struct Image {
    log: LogBuffers,
    received: Counter,
    rebuilt: Counter,
    pub(super) readers: Readers,
    /// The furthest that the slowest reader ever was: status messages said no more.
    consumed: i64,
    /// How far status messages may have said that it was. Readers without tether may all rest: then it counts as read what arrives.
    let_go: i64,
    /// How far its publisher has sent, if that is in the world.
    sent: Option<i64>,
    before: Values,
    now: Values,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("session", &self.log.session_id())
            .field("stream", &self.log.stream_id())
            .field("readers", &self.readers.0)
            .field("consumed", &self.consumed)
            .field("sent", &self.sent)
            .field("before", &self.before)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Image {
    pub(super) fn new(own: &Own<'_>, log: LogBuffers) -> Option<Self> {
        let mut image = Self {
            received: own.counter(type_ids::RECEIVER_HIGH_WATER_MARK)?,
            rebuilt: own.counter(type_ids::RECEIVER_POSITION)?,
            readers: Readers(own.readers()),
            consumed: 0,
            let_go: 0,
            sent: None,
            before: Values::default(),
            now: Values::default(),
            log,
        };
        image.now = image.values();
        // It starts where it was joined, and nothing was received since: the driver has had one turn.
        image.consumed = image.now.rebuilt;
        image.let_go = image.now.rebuilt;
        Some(image)
    }

    fn values(&self) -> Values {
        Values {
            received: self.received.get_acquire(),
            rebuilt: self.rebuilt.get_acquire(),
            end: self.log.metadata().end_of_stream_position_acquire(),
        }
    }

    pub(super) fn look(&mut self, sent: &SentStreams) {
        self.before = self.now;
        self.now = self.values();
        let slowest = self.readers.slowest_tethered().or_else(|| self.readers.fastest());
        self.consumed = slowest.unwrap_or(0).max(self.consumed);
        let let_go = self.readers.slowest_tethered().unwrap_or(self.now.rebuilt);
        self.let_go = let_go.max(self.let_go);
        self.sent = sent.highest((self.log.session_id(), self.log.stream_id()));
    }

    pub(super) fn check(&mut self) -> Result<(), Violation> {
        broken(RULES, self)?;
        self.readers.note();
        Ok(())
    }

    fn term_length(&self) -> i64 {
        self.log.term_length() as i64
    }

    /// Where something was rebuilt, there is a frame of this stream and this place.
    fn has_frame_at(&self, position: i64) -> bool {
        position >= self.now.rebuilt || self.is_frame(position)
    }

    fn has_frame_within(&self, from: i64, to: i64) -> bool {
        // Readers stand at frames, and half a term is a multiple of their alignment.
        (from..to)
            .step_by(FRAME_ALIGNMENT)
            .any(|position| self.is_frame(position))
    }

    fn is_frame(&self, position: i64) -> bool {
        let geometry = self.log.geometry();
        let offset = geometry.term_offset(position);
        let header = FrameHeader::read(self.log.term(geometry.partition(position)), offset);
        header.frame_length > 0
            && header.term_offset == offset as i32
            && header.term_id == geometry.term_id(position)
            && (header.session_id, header.stream_id) == (self.log.session_id(), self.log.stream_id())
    }
}
