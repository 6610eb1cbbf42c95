//! A network publication as its two halves see it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use headrace_buffers::counters::Counter;
use headrace_buffers::log::LogBuffers;
use headrace_protocol::channel::{PublicationParams, ResponseCorrelation};
use headrace_protocol::frame::StatusMessage;

use super::requests::RepairRequests;
use crate::event_recorder::{EventRecorder, Subject};
use crate::states::states;

states! {
    /// Whether a publication has readers: subscriptions over IPC, receivers that are heard over UDP. Spies count only
    /// where the channel says so.
    pub(crate) enum ConnectionState, "connection" {
        /// No subscription is linked, or fewer receivers are heard than flow control requires.
        Disconnected => [Connected];
        /// A subscription is linked, or enough receivers are heard.
        Connected => [Disconnected];
    }
}

impl ConnectionState {
    /// The state of one that has readers, or has not.
    pub(crate) fn of(has_readers: bool) -> Self {
        if has_readers {
            Self::Connected
        } else {
            Self::Disconnected
        }
    }
}

/// What a network publication has to do with responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Nothing.
    None,
    /// It carries requests.
    Requests {
        /// Of the subscription that reads the responses.
        responses_id: i64,
    },
    /// It carries the responses to the requests of an image.
    Responses {
        /// Of the image.
        image_id: i64,
    },
    /// It carries nothing: it holds the endpoint of responses open.
    Prototype,
}

impl Exchange {
    /// What the channel says.
    pub(crate) fn of(params: &PublicationParams) -> Self {
        match (params.response_correlation, params.is_response) {
            (ResponseCorrelation::Id(responses_id), false) => Self::Requests { responses_id },
            (ResponseCorrelation::Id(image_id), true) => Self::Responses { image_id },
            (ResponseCorrelation::Prototype, true) => Self::Prototype,
            (ResponseCorrelation::None, _) | (ResponseCorrelation::Prototype, false) => Self::None,
        }
    }

    /// The stream goes to the one that asks for it.
    pub(crate) fn is_responses(self) -> bool {
        matches!(self, Self::Responses { .. })
    }
}

/// Shared by the conductor's and the sender's half of one network publication.
///
/// The log's metadata carries three more shared words: `is_connected` (stored by the sender when a status
/// message or a time-out changes it, and by the conductor on its timer and when spies come or go; both derive it
/// from [`Self::is_connected`]), the end-of-stream position and the revoked flag (conductor).
#[derive(Debug)]
pub(crate) struct PublicationShared {
    /// Correlation id of the command that created the log.
    pub registration_id: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream of the channel.
    pub stream_id: i32,
    /// The terms being sent.
    pub log: LogBuffers,
    /// Largest datagram, header included.
    pub mtu_length: usize,
    /// Receivers form a group: more than one may send feedback.
    pub has_group_semantics: bool,
    /// The channel sets where the stream begins: another publisher may send the same stream, and its receivers may move
    /// here.
    pub may_have_a_twin: bool,
    /// What it has to do with responses.
    pub exchange: Exchange,
    /// Heartbeats carry the end-of-stream flag once the stream has ended.
    pub signals_end_of_stream: bool,
    /// Position up to which datagrams were sent. Writer: sender.
    pub sender_position: Counter,
    /// Position up to which flow control lets the sender go. Writer: sender.
    pub sender_limit: Counter,
    /// Times the sender ran into its limit. Writer: sender.
    pub back_pressure_events: Counter,
    /// NAKs received for this stream. Writer: sender.
    pub naks_received: Counter,
    /// Repairs of this stream. Writer: sender.
    pub retransmits_sent: Counter,
    /// Bytes that receivers ask for.
    pub repair_requests: RepairRequests,
    /// Receivers that hold the sender back, for a strategy that counts them. Writer: sender.
    pub flow_control_receivers: Option<Counter>,
    /// Spies alone make the publication connected.
    pub spies_simulate_connection: bool,
    connection: AtomicU8,
    events: EventRecorder,
    has_spies: AtomicBool,
    spy_position: AtomicI64,
    consumption_position: AtomicI64,
    is_end_of_stream: AtomicBool,
    end_of_stream_confirmed: AtomicBool,
    // Taken by the sender when another receiver becomes the limit, and by the conductor on its timer.
    limiting_receiver: Mutex<Option<SocketAddr>>,
}

/// The parts of [`PublicationShared`] that are fixed at creation.
#[derive(Debug)]
pub(crate) struct PublicationIdentity {
    /// See [`PublicationShared::registration_id`].
    pub registration_id: i64,
    /// See [`PublicationShared::session_id`].
    pub session_id: i32,
    /// See [`PublicationShared::stream_id`].
    pub stream_id: i32,
    /// See [`PublicationShared::mtu_length`].
    pub mtu_length: usize,
    /// See [`PublicationShared::has_group_semantics`].
    pub has_group_semantics: bool,
    /// See [`PublicationShared::may_have_a_twin`].
    pub may_have_a_twin: bool,
    /// See [`PublicationShared::exchange`].
    pub exchange: Exchange,
    /// See [`PublicationShared::signals_end_of_stream`].
    pub signals_end_of_stream: bool,
    /// See [`PublicationShared::spies_simulate_connection`].
    pub spies_simulate_connection: bool,
}

/// The counters both halves use.
#[derive(Debug)]
pub(crate) struct PublicationCounters {
    /// `snd-pos`
    pub sender_position: Counter,
    /// `snd-lmt`
    pub sender_limit: Counter,
    /// `snd-bpe`
    pub back_pressure_events: Counter,
    /// `snd-naks-received`
    pub naks_received: Counter,
    /// `snd-retransmits`
    pub retransmits_sent: Counter,
    /// `fc-receivers`
    pub flow_control_receivers: Option<Counter>,
}

impl PublicationShared {
    /// A publication without a receiver yet.
    pub(crate) fn new(
        identity: PublicationIdentity,
        log: LogBuffers,
        counters: PublicationCounters,
        events: &EventRecorder,
    ) -> Self {
        Self {
            registration_id: identity.registration_id,
            session_id: identity.session_id,
            stream_id: identity.stream_id,
            log,
            mtu_length: identity.mtu_length,
            has_group_semantics: identity.has_group_semantics,
            may_have_a_twin: identity.may_have_a_twin,
            exchange: identity.exchange,
            signals_end_of_stream: identity.signals_end_of_stream,
            spies_simulate_connection: identity.spies_simulate_connection,
            has_spies: AtomicBool::new(false),
            spy_position: AtomicI64::new(counters.sender_position.get()),
            consumption_position: AtomicI64::new(counters.sender_position.get()),
            sender_position: counters.sender_position,
            sender_limit: counters.sender_limit,
            back_pressure_events: counters.back_pressure_events,
            naks_received: counters.naks_received,
            retransmits_sent: counters.retransmits_sent,
            repair_requests: RepairRequests::default(),
            flow_control_receivers: counters.flow_control_receivers,
            connection: AtomicU8::new(ConnectionState::Disconnected as u8),
            events: events.clone(),
            is_end_of_stream: AtomicBool::new(false),
            end_of_stream_confirmed: AtomicBool::new(false),
            limiting_receiver: Mutex::new(None),
        }
    }

    /// At least one receiver is alive and flow control has all the receivers it requires.
    pub(crate) fn has_receivers(&self) -> bool {
        self.connection() == ConnectionState::Connected
    }

    /// Whether the receivers are heard.
    pub(crate) fn connection(&self) -> ConnectionState {
        if self.connection.load(Ordering::Acquire) == ConnectionState::Connected as u8 {
            ConnectionState::Connected
        } else {
            ConnectionState::Disconnected
        }
    }

    /// Writer: sender, which says why. Does nothing in that state.
    pub(crate) fn set_connection(&self, new: ConnectionState, reason: &str) {
        let mut state = self.connection();
        let subject = Subject {
            id: self.registration_id,
            stream_id: Some(self.stream_id),
            session_id: Some(self.session_id),
            ..Subject::default()
        };
        if state != new && self.events.change(&mut state, new, reason, &subject) {
            self.connection.store(state as u8, Ordering::Release);
        }
    }

    /// A publisher may write: a receiver is there, or a spy where that is enough.
    pub(crate) fn is_connected(&self) -> bool {
        self.has_receivers() || (self.spies_simulate_connection && self.has_spies())
    }

    /// At least one spy holds the stream back.
    pub(crate) fn has_spies(&self) -> bool {
        self.has_spies.load(Ordering::Acquire)
    }

    /// Writer: conductor.
    pub(crate) fn set_has_spies(&self, value: bool) {
        self.has_spies.store(value, Ordering::Release);
    }

    /// How far the fastest spy has ever been; where the stream starts without one.
    pub(crate) fn spy_position(&self) -> i64 {
        self.spy_position.load(Ordering::Acquire)
    }

    /// Raises [`Self::spy_position`], which must be between two frames that are written. Writer: conductor.
    pub(crate) fn advance_spy_position(&self, position: i64) {
        if position > self.spy_position.load(Ordering::Relaxed) {
            self.spy_position.store(position, Ordering::Release);
        }
    }

    /// No more bytes will be appended, and all that were have been sent.
    pub(crate) fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream.load(Ordering::Acquire)
    }

    /// Writer: conductor.
    pub(crate) fn set_end_of_stream(&self) {
        self.is_end_of_stream.store(true, Ordering::Release);
    }

    /// The unicast receiver said that it wants no more of the stream, and none has said otherwise since.
    pub(crate) fn is_end_of_stream_confirmed(&self) -> bool {
        self.end_of_stream_confirmed.load(Ordering::Acquire)
    }

    /// Writer: sender.
    pub(crate) fn set_end_of_stream_confirmed(&self, is_confirmed: bool) {
        self.end_of_stream_confirmed
            .store(is_confirmed, Ordering::Release);
    }

    /// Where the receiver is from whose status messages the sender has its limit.
    pub(crate) fn limiting_receiver(&self) -> Option<SocketAddr> {
        *self
            .limiting_receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writer: sender.
    pub(crate) fn set_limiting_receiver(&self, address: SocketAddr) {
        *self
            .limiting_receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// The lowest position that a receiver may be at. That is more than a window below the sender, because padding at the
    /// end of a term takes the sender beyond the window; and the log still has all bytes from there on.
    pub(crate) fn lowest_receiver_position(&self) -> i64 {
        self.sender_position.get() - self.log.term_length() as i64
    }

    /// The highest position that a receiver may be at.
    pub(crate) fn highest_receiver_position(&self) -> i64 {
        self.sender_position.get() + self.log.term_length() as i64 / 2
    }

    /// Up to where a receiver has read.
    pub(crate) fn position_of(&self, message: &StatusMessage) -> i64 {
        let geometry = self.log.geometry();
        message.position(geometry.initial_term_id(), geometry.position_bits_to_shift())
    }

    /// The only receiver has read up to here and asks for no byte before it again. Where there are several receivers, and
    /// while there is none, it stays where it is.
    pub(crate) fn consumption_position(&self) -> i64 {
        self.consumption_position.load(Ordering::Acquire)
    }

    /// Writer: sender, whose reads of what lies before the position come before.
    pub(crate) fn advance_consumption_position(&self, position: i64) {
        let sent = self.sender_position.get();
        self.consumption_position
            .fetch_max(position.min(sent), Ordering::Release);
    }

    /// The sender repairs nothing before it, which the log may no longer have. Only the sender's thread moves it.
    pub(crate) fn lowest_repairable_position(&self) -> i64 {
        let consumed = self.consumption_position.load(Ordering::Relaxed);
        self.lowest_receiver_position().max(consumed)
    }
}
