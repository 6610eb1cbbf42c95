//! An image of a remote publication as its two halves see it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use headrace_buffers::counters::Counter;
use headrace_buffers::log::LogBuffers;
use headrace_buffers::seq_lock::SeqLock;
use headrace_protocol::loss::MeasuredRoundTrip;
use headrace_protocol::round_trips::{RoundTripEstimate, RoundTrips};

use super::drops::Drops;
use super::requests::RepairRequests;
use crate::event_recorder::{EventRecorder, Reason, Subject};
use crate::states::{State, states};

states! {
    /// One publisher's stream as the driver receives it. It only moves down this list.
    pub(crate) enum ImageState, "image" {
        /// The receiver does not know it yet.
        Init => [Active];
        /// The receiver takes its packets.
        Active => [Draining];
        /// No more bytes come; subscribers read the rest.
        Draining => [Linger];
        /// It has ended; the driver keeps the log for subscribers that have not heard yet.
        Linger => [Done];
        /// Nothing refers to it any more.
        Done => [];
    }
}

impl ImageState {
    fn from_u8(value: u8) -> Self {
        Self::ALL.get(usize::from(value)).copied().unwrap_or(Self::Done)
    }
}

/// A status message the conductor wants sent: the position consumed and the window beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusMessageDue {
    /// Lowest subscriber position.
    pub position: i64,
    /// Bytes the sender may send beyond it.
    pub window_length: i32,
}

/// A missing run of bytes the conductor wants repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossRange {
    /// Term of the gap.
    pub term_id: i32,
    /// First missing byte.
    pub term_offset: i32,
    /// Length of the gap.
    pub length: i32,
}

/// Shared by the conductor's and the receiver's half of one image.
///
/// The log's metadata carries three more shared words: end-of-stream position, active transport count and
/// the revoked flag, all stored by the receiver.
#[derive(Debug)]
pub(crate) struct ImageShared {
    /// Identifies the image and its log file.
    pub correlation_id: i64,
    /// Session of the stream.
    pub session_id: i32,
    /// Stream of the channel.
    pub stream_id: i32,
    /// Received terms.
    pub log: LogBuffers,
    /// Where the SETUP came from.
    pub source: SocketAddr,
    /// The path of the channel that it came on.
    pub source_path: usize,
    /// Gaps are repaired, not skipped.
    pub is_reliable: bool,
    /// Longest datagram of the publisher.
    pub mtu_length: i32,
    /// Position at which the stream is joined.
    pub join_position: i64,
    /// Window granted by the first status message.
    pub initial_window_length: i32,
    /// Widest window ever granted.
    pub window_length_max: i32,
    /// Measures round trips, if congestion control or the delays of loss use them: the receiver's initial state.
    pub round_trips: Option<RoundTrips>,
    /// Highest byte seen. Writer: receiver.
    pub high_water_mark: Counter,
    /// Contiguous up to here. Writer: conductor.
    pub rebuild_position: Counter,
    /// NAKs sent for this image. Writer: receiver.
    pub naks_sent: Counter,
    /// Datagrams that were not accepted.
    pub drops: Drops,
    /// Bytes that were asked for while the publisher was heard.
    pub repair_requests: RepairRequests,
    in_order_position: AtomicI64,
    state: AtomicU8,
    source_text: String,
    events: EventRecorder,
    status_message: SeqLock<2>,
    loss: SeqLock<3>,
    round_trip: SeqLock<4>,
    is_end_of_stream: AtomicBool,
    sends_end_of_stream_status: AtomicBool,
    status_message_requested: AtomicBool,
}

/// The parts of [`ImageShared`] that are fixed at creation.
#[derive(Debug)]
pub(crate) struct ImageIdentity {
    /// See [`ImageShared::correlation_id`].
    pub correlation_id: i64,
    /// See [`ImageShared::session_id`].
    pub session_id: i32,
    /// See [`ImageShared::stream_id`].
    pub stream_id: i32,
    /// See [`ImageShared::source`].
    pub source: SocketAddr,
    /// See [`ImageShared::source_path`].
    pub source_path: usize,
    /// See [`ImageShared::is_reliable`].
    pub is_reliable: bool,
    /// See [`ImageShared::mtu_length`].
    pub mtu_length: i32,
    /// See [`ImageShared::join_position`].
    pub join_position: i64,
    /// See [`ImageShared::initial_window_length`].
    pub initial_window_length: i32,
    /// See [`ImageShared::window_length_max`].
    pub window_length_max: i32,
    /// See [`ImageShared::round_trips`].
    pub round_trips: Option<RoundTrips>,
}

/// The counters both halves use.
#[derive(Debug)]
pub(crate) struct ImageCounters {
    /// `rcv-hwm`
    pub high_water_mark: Counter,
    /// `rcv-pos`
    pub rebuild_position: Counter,
    /// `rcv-naks-sent`
    pub naks_sent: Counter,
}

impl ImageShared {
    /// An image in [`ImageState::Init`], which tells `events` of each state it comes to.
    pub(crate) fn new(
        identity: ImageIdentity,
        log: LogBuffers,
        counters: ImageCounters,
        events: &EventRecorder,
    ) -> Self {
        let image = Self {
            correlation_id: identity.correlation_id,
            session_id: identity.session_id,
            stream_id: identity.stream_id,
            log,
            source: identity.source,
            source_path: identity.source_path,
            is_reliable: identity.is_reliable,
            mtu_length: identity.mtu_length,
            join_position: identity.join_position,
            initial_window_length: identity.initial_window_length,
            window_length_max: identity.window_length_max,
            round_trips: identity.round_trips,
            high_water_mark: counters.high_water_mark,
            rebuild_position: counters.rebuild_position,
            naks_sent: counters.naks_sent,
            drops: Drops::default(),
            repair_requests: RepairRequests::default(),
            in_order_position: AtomicI64::new(identity.join_position),
            state: AtomicU8::new(ImageState::Init as u8),
            source_text: identity.source.to_string(),
            events: events.clone(),
            status_message: SeqLock::new(),
            loss: SeqLock::new(),
            round_trip: SeqLock::new(),
            is_end_of_stream: AtomicBool::new(false),
            sends_end_of_stream_status: AtomicBool::new(false),
            status_message_requested: AtomicBool::new(true),
        };
        image
            .events
            .begin::<ImageState>("SETUP received", &image.subject());
        image
    }

    /// Told of each state that the image comes to.
    pub(crate) fn events(&self) -> &EventRecorder {
        &self.events
    }

    /// The image, as events name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            id: self.correlation_id,
            parent_id: None,
            stream_id: Some(self.stream_id),
            session_id: Some(self.session_id),
            detail: &self.source_text,
        }
    }

    /// Where the image is in its life.
    pub(crate) fn state(&self) -> ImageState {
        ImageState::from_u8(self.state.load(Ordering::Acquire))
    }

    /// Moves the image on, and says why; false when it was already there or further. Both halves may call this: a
    /// state is never left twice, because it only grows.
    pub(crate) fn advance_to<'a>(&self, new: ImageState, reason: impl Into<Reason<'a>>) -> bool {
        let mut old = self.state();
        while old < new {
            if !self.events.allows(old, new, self.correlation_id) {
                return false;
            }
            let exchanged =
                self.state
                    .compare_exchange(old as u8, new as u8, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => {
                    self.events.record(Some(old), new, reason.into(), &self.subject());
                    return true;
                }
                // The other half was faster.
                Err(current) => old = ImageState::from_u8(current),
            }
        }
        false
    }

    /// Up to here datagrams came one after the other: no gap need be looked for before it.
    pub(crate) fn in_order_position(&self) -> i64 {
        self.in_order_position.load(Ordering::Acquire)
    }

    /// Writer: receiver, after the frames are written.
    pub(crate) fn set_in_order_position(&self, position: i64) {
        self.in_order_position.store(position, Ordering::Release);
    }

    /// Writer: conductor.
    pub(crate) fn schedule_status_message(&self, due: StatusMessageDue) {
        self.status_message
            .write([due.position, i64::from(due.window_length)]);
    }

    /// Reader: receiver. The latest scheduled status message, if it is newer than change `seen`.
    pub(crate) fn status_message_after(&self, seen: i64) -> Option<(i64, StatusMessageDue)> {
        let (change, [position, window_length]) = self.status_message.read_after(seen)?;
        Some((
            change,
            StatusMessageDue {
                position,
                window_length: window_length as i32,
            },
        ))
    }

    /// Writer: conductor.
    pub(crate) fn report_loss(&self, loss: LossRange) {
        self.loss.write([
            i64::from(loss.term_id),
            i64::from(loss.term_offset),
            i64::from(loss.length),
        ]);
    }

    /// Where a gap begins in the stream.
    pub(crate) fn position_of(&self, loss: LossRange) -> i64 {
        let geometry = self.log.geometry();
        geometry.position(loss.term_id, loss.term_offset as usize)
    }

    /// Writer: receiver, which asks for a gap of a publisher that it heard last at `heard_ns`.
    pub(crate) fn note_request(&self, loss: LossRange, heard_ns: i64) {
        let position = self.position_of(loss);
        self.repair_requests.note_if_heard(position, heard_ns);
    }

    /// Reader: receiver. The latest reported gap, if it is newer than change `seen`.
    pub(crate) fn loss_after(&self, seen: i64) -> Option<(i64, LossRange)> {
        let (change, [term_id, term_offset, length]) = self.loss.read_after(seen)?;
        let loss = LossRange {
            term_id: term_id as i32,
            term_offset: term_offset as i32,
            length: length as i32,
        };
        Some((change, loss))
    }

    /// Writer: receiver.
    pub(crate) fn report_round_trip(&self, measured: MeasuredRoundTrip) {
        let count = measured.receiver_count.unwrap_or_default();
        let [smoothed_ns, deviation_ns] = measured.estimate.to_parts();
        self.round_trip
            .write([measured.rtt_ns, smoothed_ns, deviation_ns, count.into()]);
    }

    /// Reader: conductor. The latest measured round trip, if it is newer than change `seen`.
    pub(crate) fn round_trip_after(&self, seen: i64) -> Option<(i64, MeasuredRoundTrip)> {
        let (change, [rtt_ns, smoothed_ns, deviation_ns, count]) = self.round_trip.read_after(seen)?;
        let measured = MeasuredRoundTrip {
            rtt_ns,
            estimate: RoundTripEstimate::from_parts([smoothed_ns, deviation_ns]),
            receiver_count: u32::try_from(count).ok().filter(|count| *count > 0),
        };
        Some((change, measured))
    }

    /// Every path of the image that lives signalled the end of the stream.
    pub(crate) fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream.load(Ordering::Acquire)
    }

    /// Writer: receiver.
    pub(crate) fn set_end_of_stream(&self) {
        self.is_end_of_stream.store(true, Ordering::Release);
    }

    /// Status messages say that this receiver is going away.
    pub(crate) fn sends_end_of_stream_status(&self) -> bool {
        self.sends_end_of_stream_status.load(Ordering::Acquire)
    }

    /// Written by either half, only ever to true.
    pub(crate) fn set_sends_end_of_stream_status(&self) {
        self.sends_end_of_stream_status.store(true, Ordering::Release);
    }

    /// Asks the receiver for a status message on its next cycle, whatever the timer says.
    pub(crate) fn request_status_message(&self) {
        self.status_message_requested.store(true, Ordering::Release);
    }

    /// Reader: receiver. True once per request.
    pub(crate) fn take_status_message_request(&self) -> bool {
        self.status_message_requested.load(Ordering::Relaxed)
            && self.status_message_requested.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_ordered_as_an_image_lives_them() {
        assert!(ImageState::ALL.is_sorted());
        assert!(
            ImageState::ALL
                .iter()
                .all(|state| ImageState::from_u8(*state as u8) == *state)
        );
        assert_eq!(ImageState::from_u8(99), ImageState::Done);
    }
}
