//! Rules about a publication, sent or local.

use std::fmt;

use headrace_buffers::counters::{Counter, type_ids};
use headrace_buffers::log::descriptor::{framed_length, max_message_length, max_payload_length};
use headrace_buffers::log::frame::{self, FRAME_ALIGNMENT};
use headrace_buffers::log::{LogBuffers, LogType};

use super::readers::Readers;
use super::room::{is_aligned, is_clean};
use super::rule::{Rule, Violation, broken};
use super::stream::{Own, SentStreams, StreamName};

/// End of a stream that has not ended.
const NO_END: i64 = i64::MAX;

pub(super) const RULES: &[Rule<Publication>] = &[
    Rule {
        name: "produced-is-told",
        holds: |it| it.before.told <= it.now.told && it.now.told <= it.now.produced,
    },
    Rule {
        name: "produced-within-limit",
        holds: |it| it.before.produced <= it.now.produced && it.now.produced <= it.reach(),
    },
    Rule {
        name: "limit-within-window",
        holds: |it| it.now.limit <= it.slowest() + it.window || it.now.limit == it.now.end,
    },
    Rule {
        name: "limit-goes-back-to-what-was-taken",
        holds: |it| {
            it.now.limit >= it.before.limit
                || it.now.limit == it.now.end
                || (it.taken_before() <= it.now.limit && it.now.limit <= it.now.produced)
        },
    },
    Rule {
        name: "connected-has-room",
        holds: |it| {
            let is_told = it.now.is_connected && !it.before.is_connected;
            // Readers on this host may hold it back rightly, without tether for a while; its publisher may close it in
            // the same step.
            !is_told
                || it.sender.is_none()
                || it.now.limit == it.now.end
                || !it.readers.0.is_empty()
                || it.now.limit >= it.before.sent + it.window
        },
    },
    Rule {
        name: "sent-within-produced",
        holds: |it| {
            it.before.sent <= it.now.sent && it.now.sent <= it.now.produced && is_aligned(it.now.sent)
        },
    },
    Rule {
        name: "sent-within-sender-limit",
        holds: |it| {
            // What does not move was checked when it came there.
            let is_still = it.now.sent == it.before.sent;
            let is_within = it.sender.is_none() || it.now.sent <= it.sender_limit_max;
            is_within || is_still || it.ends_with_padding_within_limit()
        },
    },
    Rule {
        name: "sender-limit-within-window",
        holds: |it| {
            let may_go_back = it.spies_connect || it.has_slowest_of_group;
            let is_steady = it.before.sender_limit <= it.now.sender_limit || may_go_back;
            is_steady && (it.sender.is_none() || it.now.sender_limit <= it.sent_by_any + it.term_length() / 2)
        },
    },
    Rule {
        name: "readers-within-produced",
        holds: |it| it.readers.are_within(it.now.produced),
    },
    Rule {
        name: "end-is-final",
        holds: |it| {
            (it.before.end == NO_END || it.before.end == it.now.end)
                && it.now.produced <= it.now.end
                && it.now.sent <= it.now.end
        },
    },
    Rule {
        name: "room-is-clean",
        holds: |it| it.now.end != NO_END || is_clean(&it.log, it.now.produced, it.now.limit, it.looks),
    },
];

/// Counters of a publication that is sent.
struct Sender {
    position: Counter,
    limit: Counter,
}

#[derive(Clone, Copy, Debug, Default)]
struct Values {
    /// End of what publishers have claimed, from the log.
    produced: i64,
    /// The same, as the driver tells it.
    told: i64,
    limit: i64,
    sent: i64,
    sender_limit: i64,
    /// The furthest reader.
    read: i64,
    is_connected: bool,
    end: i64,
}

pub(super) struct Publication {
    log: LogBuffers,
    window: i64,
    spies_connect: bool,
    /// Its receivers are a group, and the slowest decides.
    has_slowest_of_group: bool,
    told: Counter,
    limit: Counter,
    sender: Option<Sender>,
    pub(super) readers: Readers,
    limit_max: i64,
    sender_limit_max: i64,
    /// How far this stream was sent, or another of the same name: a receiver may take both as one.
    sent_by_any: i64,
    before: Values,
    now: Values,
    looks: u64,
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("session", &self.log.session_id())
            .field("stream", &self.log.stream_id())
            .field("is_sent", &self.sender.is_some())
            .field("window", &self.window)
            .field("limit_max", &self.limit_max)
            .field("sender_limit_max", &self.sender_limit_max)
            .field("readers", &self.readers.0)
            .field("before", &self.before)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Publication {
    pub(super) fn new(own: &Own<'_>, log: LogBuffers) -> Option<Self> {
        let position = own.counter(type_ids::SENDER_POSITION);
        let sender = position.zip(own.counter(type_ids::SENDER_LIMIT));
        let mut publication = Self {
            window: i64::from(log.metadata().publication_window_length()),
            spies_connect: log.metadata().spies_simulate_connection(),
            has_slowest_of_group: own.counter(type_ids::FLOW_CONTROL_RECEIVERS).is_some(),
            told: own.counter(type_ids::PUBLISHER_POSITION)?,
            limit: own.counter(type_ids::PUBLISHER_LIMIT)?,
            sender: sender.map(|(position, limit)| Sender { position, limit }),
            readers: Readers(own.readers()),
            limit_max: 0,
            sender_limit_max: 0,
            sent_by_any: 0,
            before: Values::default(),
            now: Values::default(),
            looks: 0,
            log,
        };
        publication.now = publication.values();
        Some(publication)
    }

    fn values(&self) -> Values {
        let sender = self.sender.as_ref();
        Values {
            produced: self.log.producer_position(),
            told: self.told.get_acquire(),
            limit: self.limit.get_acquire(),
            sent: sender.map_or(0, |sender| sender.position.get_acquire()),
            sender_limit: sender.map_or(0, |sender| sender.limit.get_acquire()),
            read: self.readers.fastest().unwrap_or(0),
            is_connected: self.log.metadata().is_connected_acquire(),
            end: self.log.metadata().end_of_stream_position_acquire(),
        }
    }

    pub(super) fn look(&mut self) {
        self.looks += 1;
        self.before = self.now;
        self.now = self.values();
        self.limit_max = self.limit_max.max(self.now.limit);
        self.sender_limit_max = self.sender_limit_max.max(self.now.sender_limit);
    }

    /// After each driver has looked at what it sends.
    pub(super) fn look_around(&mut self, sent: &SentStreams) {
        self.sent_by_any = sent.highest(self.stream()).unwrap_or(self.now.sent);
    }

    pub(super) fn check(&mut self) -> Result<(), Violation> {
        broken(RULES, self)?;
        self.readers.note();
        Ok(())
    }

    pub(super) fn stream(&self) -> StreamName {
        (self.log.session_id(), self.log.stream_id())
    }

    /// How far it was sent, if it is sent at all.
    pub(super) fn sent(&self) -> Option<i64> {
        self.sender.as_ref().map(|_| self.now.sent)
    }

    fn term_length(&self) -> i64 {
        self.log.term_length() as i64
    }

    /// True when padding was sent last, which travels as its header alone: that must be within the limit, and what it
    /// spans goes beyond. Padding ends terms, and stands within them where it was replayed or unblocked.
    fn ends_with_padding_within_limit(&self) -> bool {
        let geometry = self.log.geometry();
        let mut position = self.before.sent;
        while position < self.now.sent {
            let term = self.log.term(geometry.partition(position));
            let offset = geometry.term_offset(position);
            let length = frame::frame_length_acquire(term, offset);
            if length <= 0 {
                return false;
            }
            let end = position + (length as usize).next_multiple_of(FRAME_ALIGNMENT) as i64;
            if end >= self.now.sent {
                return frame::is_padding(term, offset) && position < self.sender_limit_max;
            }
            position = end;
        }
        false
    }

    /// How far the stream had been taken from publishers: sent, or read where it is local.
    fn taken_before(&self) -> i64 {
        if self.sender.is_some() {
            self.before.sent
        } else {
            self.before.read
        }
    }

    /// What the limit is counted from: the sender or the slowest reader that holds it back.
    fn slowest(&self) -> i64 {
        let own = if self.sender.is_some() {
            self.now.sent
        } else {
            self.now.produced
        };
        self.readers
            .slowest_tethered()
            .map_or(own, |slowest| slowest.min(own))
    }

    /// How far publishers can come: who is below the limit may append one message, an exclusive publisher a block up
    /// to the end of the term.
    fn reach(&self) -> i64 {
        let longest = max_message_length(self.log.term_length());
        let message = self.limit_max + framed_length(longest, max_payload_length(self.log.mtu())) as i64;
        let term_end = (self.limit_max | (self.term_length() - 1)) + 1;
        match self.log.metadata().log_type() {
            Some(LogType::ExclusivePublication) => message.max(term_end),
            _ => message,
        }
    }
}
